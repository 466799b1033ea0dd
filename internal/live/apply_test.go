package live

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestApplyChange(t *testing.T) {
	const entry = `{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Apply","apiVersion":"example.org/v1alpha1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}}]}}`
	held := []xptest.Option{xptest.Policy("Manual"), xptest.Annotated(adoption.AnnotationHold, "h")}
	release := map[string]any{
		"metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]any{adoption.AnnotationHold: nil}}, "spec": map[string]any{"compositionUpdatePolicy": "Automatic"},
	}
	of := xorders.GroupResource()
	cases := map[string]struct {
		reason string
		entry  string
		// err is the API server's error, and policy is the default that it sets.
		err    error
		policy string
		want   []types.PatchType
		failed func(error) bool
	}{
		"Applied": {reason: "One request is enough.", entry: entry, policy: "Automatic", want: []types.PatchType{types.ApplyPatchType}},
		"AnotherDefault": {
			reason: "The API server sets a default, and the patch corrects it.", entry: entry, policy: "Manual",
			want: []types.PatchType{types.ApplyPatchType, types.MergePatchType},
		},
		"Patched": {reason: "The hold was not applied, so the release is a merge patch.", entry: "{}", want: []types.PatchType{types.MergePatchType}},
		"NotOfItsSchema": {
			reason: "An object that breaks its schema takes a merge patch, and the plugin then gives up its fields.", entry: entry, err: apierrors.NewBadRequest("cannot be converted"),
			want: []types.PatchType{types.ApplyPatchType, types.MergePatchType, types.MergePatchType},
		},
		"Unsupported": {
			reason: "Not every API server supports server-side apply.", entry: entry, err: apierrors.NewGenericServerResponse(415, "patch", of, "x", "", 0, false),
			want: []types.PatchType{types.ApplyPatchType, types.MergePatchType, types.MergePatchType},
		},
		"Conflict": {
			reason: "Another writer has changed the object.", entry: entry, err: apierrors.NewConflict(of, "x", errors.New("it has changed")),
			want: []types.PatchType{types.ApplyPatchType}, failed: apierrors.IsConflict,
		},
		"Gone": {
			reason: "The object is gone, and the release must not create it.", entry: entry, err: apierrors.NewNotFound(of, "x"),
			want: []types.PatchType{types.ApplyPatchType}, failed: apierrors.IsNotFound,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := xptest.XR("x", append(held, xptest.Version("1"), xptest.JSON(tc.entry))...)
			s := newServer(u)
			var carried []types.PatchType
			s.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				patch := action.(clienttesting.PatchActionImpl) //nolint:forcetypeassert // The reactor gets only patches.
				carried = append(carried, patch.GetPatchType())
				if patch.GetPatchType() != types.ApplyPatchType {
					return false, nil, nil
				}
				var configuration unstructured.Unstructured
				if err := json.Unmarshal(patch.GetPatch(), &configuration.Object); err != nil {
					return true, nil, err
				}
				if _, ok := (xp.Instance{Unstructured: &configuration}).UpdatePolicy(); ok || configuration.GetUID() != u.GetUID() || configuration.GetResourceVersion() != "1" {
					t.Errorf("the applied configuration is %v", configuration.Object)
				}
				if tc.err != nil {
					return true, nil, tc.err
				}

				return true, s.put(xorders, xptest.XR("x", xptest.Policy(tc.policy))), nil
			})
			after, err := withoutPauses(s.cluster()).ApplyChange(t.Context(), adoption.Change{Target: u, Patch: release, Defaults: [][]string{{"spec", "compositionUpdatePolicy"}}})
			if diff := cmp.Diff(tc.want, carried); diff != "" {
				t.Errorf("%s\npatches: -want, +got:\n%s", tc.reason, diff)
			}
			if tc.failed != nil {
				if !tc.failed(err) {
					t.Errorf("%s\ngot %v", tc.reason, err)
				}

				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if policy, _ := (xp.Instance{Unstructured: after}).UpdatePolicy(); policy != "Automatic" || xp.HasAnnotation(after, adoption.AnnotationHold) {
				t.Errorf("%s\ngot %v", tc.reason, after.Object)
			}
		})
	}
}

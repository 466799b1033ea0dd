package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func TestApplyChange(t *testing.T) {
	const entry = `{"metadata":{"managedFields":[{"manager":"velero-plugin-for-crossplane","operation":"Apply","apiVersion":"example.org/v1alpha1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:velero.crossplane.x-k8s.io/hold":{}}},"f:spec":{"f:compositionUpdatePolicy":{}}}},` +
		`{"manager":"crossplane","operation":"Update","apiVersion":"example.org/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:compositionRef":{}}}}]}}`
	held := []xptest.Option{xptest.Policy("Manual"), xptest.Annotated(hold.Annotation, "h")}
	release := map[string]any{
		"metadata": map[string]any{"resourceVersion": "1", "annotations": map[string]any{hold.Annotation: nil}}, "spec": map[string]any{"compositionUpdatePolicy": "Automatic"},
	}
	of := apiserver.XOrders.GroupResource()
	type args struct {
		reason string
		entry  string
		// err is the API server's error, and policy is the default that it sets.
		err    error
		policy string
		want   string
		failed func(error) bool
	}
	xptest.Each(t, map[string]args{
		"Applied":        {reason: "One request is enough.", entry: entry, policy: "Automatic", want: "apply"},
		"AnotherDefault": {reason: "The API server sets a default, and the patch corrects it.", entry: entry, policy: "Manual", want: "apply merge"},
		"Patched":        {reason: "The hold was not applied, so the release is a merge patch.", entry: "{}", want: "merge"},
		"NotOfItsSchema": {
			reason: "An object that breaks its schema takes a merge patch, and the plugin then gives up its fields.", entry: entry, err: apierrors.NewBadRequest("cannot be converted"),
			want: "apply merge merge", //nolint:dupword // They are two.
		},
		"Unsupported": {
			reason: "Not every API server supports server-side apply.", entry: entry, err: apierrors.NewGenericServerResponse(415, "patch", of, "x", "", 0, false),
			want: "apply merge merge", //nolint:dupword // They are two.
		},
		"Conflict": {reason: "Another writer has changed the object.", entry: entry, err: apierrors.NewConflict(of, "x", apiserver.ErrDown), want: "apply", failed: apierrors.IsConflict},
		"Gone":     {reason: "The object is gone, and the release must not create it.", entry: entry, err: apierrors.NewNotFound(of, "x"), want: "apply", failed: apierrors.IsNotFound},
	}, func(t *testing.T, tc args) {
		u := xptest.XR("x", append(held, xptest.Version("1"), xptest.JSON(tc.entry))...)
		s := apiserver.NewServer(u)
		var carried []string
		s.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			patch := action.(clienttesting.PatchActionImpl) //nolint:forcetypeassert // The reactor gets only patches.
			if patch.GetPatchType() != types.ApplyPatchType {
				carried = append(carried, "merge")

				return false, nil, nil
			}
			carried = append(carried, "apply")
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

			return true, s.Put(apiserver.XOrders, xptest.XR("x", xptest.Policy(tc.policy))), nil
		})
		after, err := withoutPauses(clusterOf(s)).ApplyChange(t.Context(), hold.Change{Target: u, Patch: release, Defaults: [][]string{{"spec", "compositionUpdatePolicy"}}})
		if got := strings.Join(carried, " "); got != tc.want || (err != nil) != (tc.failed != nil) || err != nil && !tc.failed(err) {
			t.Fatalf("%s\npatches: %s, error %v", tc.reason, got, err)
		}
		if err != nil {
			return
		}
		if policy, _ := (xp.Instance{Unstructured: after}).UpdatePolicy(); policy != "Automatic" || xp.HasAnnotation(after, hold.Annotation) {
			t.Errorf("%s\ngot %v", tc.reason, after.Object)
		}
	})
}

func TestConvert(t *testing.T) {
	type args struct {
		reason string
		with   error
		want   bool
	}
	xptest.Each(t, map[string]args{
		"Converted": {reason: "The API server accepted the create."},
		"Refused":   {reason: "The restore reports a refusal itself.", with: apierrors.NewForbidden(apiserver.Buckets.GroupResource(), "b", errors.New("a policy"))},
		"Exists":    {reason: "The object exists, so its conversion worked.", with: apierrors.NewAlreadyExists(apiserver.Buckets.GroupResource(), "b")},
		"Down":      {reason: "The webhook is down, so the restore would fail.", with: apiserver.ErrConversion, want: true},
		"NoAnswer":  {reason: "A webhook that hangs counts as down.", with: context.DeadlineExceeded, want: true},
		"APIServer": {reason: "Another failure is not the webhook's.", with: apierrors.NewServiceUnavailable("etcd")},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer()
		s.PrependReactor("create", "buckets", func(a clienttesting.Action) (bool, runtime.Object, error) {
			create := a.(clienttesting.CreateActionImpl)    //nolint:forcetypeassert // The reactor gets only creates.
			u := create.Object.(*unstructured.Unstructured) //nolint:forcetypeassert // The client sends only such objects.
			if u.GetUID() != "" || u.GetResourceVersion() != "" || u.Object["status"] != nil || len(u.GetOwnerReferences()) > 0 {
				t.Errorf("an API server refuses to create %v", u.Object)
			}

			return true, u, tc.with
		})
		mr := xptest.MR("b", xptest.Version("5"), xptest.ControlledBy(xptest.XR("x")), xptest.JSON(`{"status":{"a":"b"}}`))
		if err := clusterOf(s).Convert(t.Context(), mr, ""); (err != nil) != tc.want {
			t.Errorf("%s: got %v", tc.reason, err)
		}
	})
}

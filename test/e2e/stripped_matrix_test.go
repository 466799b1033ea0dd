//go:build matrix

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// stripping removes the hold from the MRs of a namespace when they are created, like resource
// modifiers that no Restore names.
const stripping = `
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: strip-%[1]s
spec:
  policyName: strip-%[1]s
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata:
  name: strip-%[1]s
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - apiGroups: ["cloud.m.example.org"]
      apiVersions: ["*"]
      operations: [CREATE]
      resources: ["*"]
  matchConditions:
  - name: held
    expression: object.metadata.namespace == "%[1]s" && has(object.metadata.annotations) && "` + annotationHold + `" in object.metadata.annotations
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: |
        [JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("` + annotationHold + `")},
         JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("crossplane.io/paused")}]
`

// TestMatrixStripped restores MRs that are to be held, in quarantine and until they are observed,
// and has their holds removed at creation. Their XRs stay held, and no operation is about the MRs.
func TestMatrixStripped(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V2)
	ctx := t.Context()
	barred := s.few(t, s.source, drill.Platform{Namespace: "barred"}, 2)
	observed := s.few(t, s.source, drill.Platform{Namespace: "observed"}, 2)
	for _, n := range []*tenant{barred, observed} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, barred, observed)
	must(t, s.target.AddArgs(stack.APIServer, "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"))
	must(t, s.target.Restart(ctx, stack.APIServer))
	for _, n := range []*tenant{barred, observed} {
		must(t, s.target.Apply(ctx, fmt.Appendf(nil, stripping, n.Namespace)))
	}
	// The API server refuses what a policy is for until it has read the schema of its kind.
	must(t, s.target.Apply(ctx, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+barred.Namespace+"}\n")))
	s.eventually(t, "the policy to know the kinds", func(ctx context.Context) error {
		for _, kind := range []string{"Bucket", "Database", "Network"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: "cloud.m.example.org", Version: "v1alpha1", Kind: kind})
			u.SetName("tried")
			u.SetNamespace(barred.Namespace)
			u.SetAnnotations(map[string]string{annotationHold: "{}", "crossplane.io/paused": "true"})
			r, err := s.target.Resource(ctx, u.GroupVersionKind(), barred.Namespace)
			if err != nil {
				return err
			}
			if _, err := r.Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil && !apierrors.IsInvalid(err) {
				return fmt.Errorf("cannot try a %s: %w", kind, err)
			}
		}

		return nil
	})

	t.Run("Quarantine", func(t *testing.T) {
		s.restore(t, barred, barred.Namespace, "--annotations", holdAll)
		mrs, err := barred.Managed(t.Context(), s.target)
		must(t, err)
		if want := len(barred.before.Slots); len(mrs) != want {
			t.Errorf("%d MRs came back, not %d", len(mrs), want)
		}
		for _, u := range mrs {
			if !strings.Contains(u.GetAnnotations()[annotationHold], `"quarantine":true`) || !paused(&u) {
				t.Errorf("%s %s is not in quarantine: %v", u.GetKind(), u.GetName(), u.GetAnnotations())
			}
			s.wantStripped(t, &u)
		}
		s.released(t, "--restore", barred.Namespace)
		s.settle(t, barred)
		s.wantSound(t, barred)
	})
	t.Run("ObserveFirst", func(t *testing.T) {
		s.restore(t, observed, observed.Namespace, "--annotations", "velero.crossplane.io/observe-first=true")
		s.settle(t, observed)
		s.wantSound(t, observed)
		mrs, err := observed.Managed(t.Context(), s.target)
		must(t, err)
		for _, u := range mrs {
			s.wantStripped(t, &u)
		}
	})
}

// wantStripped checks that an Event reports that an MR came back without its hold, and that its
// policies have nothing of a hold.
func (s *suite) wantStripped(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	story, err := s.story(t.Context(), u)
	if err != nil || len(story) == 0 || story[0] != "Held" {
		t.Errorf("the Events of %s %s are %v, %v", u.GetKind(), u.GetName(), story, err)
	}
}

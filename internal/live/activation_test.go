package live

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// withMRDs returns a cluster with MRDs; with unserved it serves no kinds of theirs.
func withMRDs(s *server, unserved bool, mrds ...*unstructured.Unstructured) (*server, *Cluster) {
	for _, mrd := range mrds {
		s.put(definitionsOfMRs, mrd)
	}
	s.kinds[xp.KindManagedDefinition.GroupVersion().String()] = []metav1.APIResource{{Name: "managedresourcedefinitions", Kind: "ManagedResourceDefinition"}}
	if unserved {
		delete(s.kinds, xptest.ManagedVersion)
	}
	c := s.cluster()
	c.metadataPages = metadataOf(mrds...)

	return s, c
}

func TestInactive(t *testing.T) {
	mr := xptest.MR("b")
	of := func(kind string) *unstructured.Unstructured {
		return xptest.Object(xptest.ManagedVersion, kind, "", "g")
	}
	inactive := xptest.Inactive()
	cases := map[string]struct {
		reason   string
		unserved bool
		mrds     []*unstructured.Unstructured
		kind     string
		change   func(*server)
		want     string
		requests int
	}{
		"Served": {
			reason: "A backup brought the CRD, but the MRD is inactive.", mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("buckets", mr, inactive)},
			want: "buckets.cloud.example.org", requests: 1,
		},
		"Active": {reason: "An active MRD needs no command.", mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("buckets", mr)}, requests: 1},
		"None":   {reason: "Not every kind has an MRD.", requests: 1},
		"Unserved": {
			reason: "Without a served kind the plugin guesses the resource name.", unserved: true, want: "buckets.cloud.example.org", requests: 1,
			mrds: []*unstructured.Unstructured{
				xptest.ManagedDefinition("alarms", of("Alarm"), inactive), xptest.ManagedDefinition("buckets", mr, inactive), xptest.ManagedDefinition("queues", of("Queue")),
			},
		},
		"Irregular": {
			reason: "The plural of a kind can be irregular.", unserved: true, kind: "Gateway", want: "gateways.cloud.example.org", requests: 1,
			mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("alarms", of("Alarm"), inactive), xptest.ManagedDefinition("gateways", of("Gateway"), inactive)},
		},
		"OfAnotherGroup": {
			reason: "Another group can end with the same letters.", unserved: true,
			mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("buckets", xptest.Object("s3.cloud.example.org/v1", "Bucket", "", "b"), inactive)},
		},
		"MadeUp": {reason: "A kind that a tenant invented must cost no request.", unserved: true, kind: "Nothing"},
		"V1":     {reason: "Crossplane v1 has no MRDs.", change: func(s *server) { delete(s.kinds, xp.KindManagedDefinition.GroupVersion().String()) }},
		"Forbidden": {
			reason: "A user without the right to read MRDs gets the general advice.", change: func(s *server) { forbid(s, "managedresourcedefinitions") },
			mrds: []*unstructured.Unstructured{xptest.ManagedDefinition("buckets", mr, inactive)}, requests: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, c := withMRDs(newServer(), tc.unserved, tc.mrds...)
			if tc.change != nil {
				tc.change(s)
			}
			gk := mr.GroupVersionKind().GroupKind()
			if tc.kind != "" {
				gk.Kind = tc.kind
			}
			a := &activations{cluster: c}
			for range 3 {
				if got := a.inactive(context.Background(), gk); got != tc.want {
					t.Fatalf("%s\ngot %q, want %q", tc.reason, got, tc.want)
				}
			}
			if asked := s.requests("list"); len(asked) != tc.requests {
				t.Errorf("%s\nasked %v", tc.reason, asked)
			}
		})
	}
}

// A poll and a validation both report the MRD to activate.
func TestUnservedKindsAreNamedWithTheirActivation(t *testing.T) {
	mr := xptest.MR("b")
	x := xptest.XR("x", xptest.Reconciled(), xptest.Refs(mr))
	mrd := xptest.ManagedDefinition("buckets", mr, xptest.Inactive())
	_, c := withMRDs(surveyed(x), true, mrd)
	survey, err := c.Survey(context.Background(), Scope{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range diagnosis.Validate(survey.Objects, survey.State) {
		found = found || p.Object == xp.RefTo(mr) && strings.Contains(p.Reason, "ManagedResourceDefinition buckets.cloud.example.org is not active") &&
			strings.HasPrefix(p.Next, "activate it: ")
	}
	if !found {
		t.Errorf("validate prints %v", diagnosis.Validate(survey.Objects, survey.State))
	}
}

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// always is more calls than a test makes.
const always = 1 << 20

// caller is a part of how the cloud's callers are named for a world's MRs whose names begin with the
// world's name, a dash and the given text. Bystanders have other namespaces or names.
func (w *world) caller(name string) string {
	switch {
	case w.scene.Crossplane.IsV1():
		return ", " + w.scene.Name + "-" + name
	case name == "":
		return ", " + w.scene.Name + "/"
	default:
		return ", " + w.scene.Name + "/" + w.scene.Name + "-" + name
	}
}

// failAll makes the faults of a world.
func (s *suite) failAll(t *testing.T, w *world) {
	t.Helper()
	for _, f := range w.Faults {
		s.fail(t, w, f)
	}
}

func (s *suite) fail(t *testing.T, w *world, f api.Fault) {
	t.Helper()
	f.By, f.Times = w.caller(f.By), cmp.Or(f.Times, always)
	must(t, s.cloud.Fail(t.Context(), f))
}

// awaitFailed waits until the cloud has failed so many reads for each MR of a restored world.
func (s *suite) awaitFailed(t *testing.T, c *stack.Cluster, w *world, times int) {
	t.Helper()
	s.eventually(t, fmt.Sprintf("%d failed reads for each MR of case %s", times, w.Name), func(ctx context.Context) error {
		reads, err := s.cloud.Journal(ctx, w.before.ledger.Seq, api.Read)
		if err != nil {
			return err
		}
		failed := map[string]int{}
		for _, e := range reads {
			if e.Status >= http.StatusBadRequest {
				failed[drill.CallerUID(e)]++
			}
		}
		live, err := w.scene.Live(ctx, c)
		all := 0
		for name, u := range live {
			if !drill.IsManaged(u) {
				continue
			}
			all++
			if n := failed[string(u.GetUID())]; n < times {
				err = errors.Join(err, fmt.Errorf("%s: %d", name, n))
			}
		}
		if all == 0 {
			err = errors.Join(err, errors.New("there are no MRs"))
		}

		return err
	})
}

// followAll gives XRs and claims a Composition, as a user does.
func (s *suite) followAll(t *testing.T, c *stack.Cluster, w *world, f *cases.Follow) {
	t.Helper()
	all, err := list(t.Context(), c, revisionKind, "", "crossplane.io/composition-name="+f.Composition)
	must(t, err)
	newest, name := int64(0), ""
	for _, r := range all {
		if n, _, _ := unstructured.NestedInt64(r.Object, "spec", "revision"); n > newest {
			newest, name = n, r.GetName()
		}
	}
	choice := map[string]any{"compositionRef": map[string]any{"name": f.Composition}}
	if f.Revision {
		choice["compositionRevisionRef"] = map[string]any{"name": name}
	}
	for _, u := range w.some(t, c, f.Objects) {
		edit := map[string]any{"spec": choice}
		if _, modern, _ := unstructured.NestedMap(u.Object, "spec", "crossplane"); modern {
			edit = map[string]any{"spec": map[string]any{"crossplane": choice}}
		}
		must(t, drill.Patch(t.Context(), c, &u, edit))
	}
}

// onlyObserves reports whether an MR's policies, which are a set, allow its provider nothing else.
func onlyObserves(u *unstructured.Unstructured) bool {
	p := slices.Compact(policies(u))

	return len(p) == 1 && p[0] == "Observe"
}

package adoption

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestIsPlanCurrent(t *testing.T) {
	mr, other := xptest.MR("b", xptest.ControlledBy(xptest.XR("x"))), xptest.MR("other")
	missing := xptest.MR("missing")
	xr := held(xptest.XR("x", xptest.Refs(mr, missing)))
	kind := mr.GroupVersionKind()
	cases := map[string]struct {
		reason string
		change func(w *Snapshot)
		want   bool
	}{
		"Nothing":  {reason: "The snapshot did not change.", change: func(*Snapshot) {}, want: true},
		"Other":    {reason: "An unrelated object changed.", change: func(w *Snapshot) { w.Add(xptest.With(other, xptest.Reconciled())) }, want: true},
		"Itself":   {reason: "The XR changed.", change: func(w *Snapshot) { w.Add(xptest.With(xr, xptest.SeenPaused())) }},
		"Composed": {reason: "A composed resource changed.", change: func(w *Snapshot) { w.Add(xptest.With(mr, xptest.Reconciled())) }},
		"Gone":     {reason: "A composed resource is gone.", change: func(w *Snapshot) { w.Remove(mr) }},
		"Come":     {reason: "A missing resource exists now.", change: func(w *Snapshot) { w.Add(missing) }},
		"XRD":      {reason: "The snapshot finds an XRD by the kind that it defines.", change: func(w *Snapshot) { w.Add(xptest.XRD("xorders.example.org")) }},
		"All":      {reason: "A complete list proves that there is no other XRD.", change: func(w *Snapshot) { w.AddedAll(xp.KindDefinition.GroupKind()) }},
		"Unserved": {reason: "A Plan includes the reason why a resource is missing.", change: func(w *Snapshot) { w.AddUnserved(kind.GroupKind()) }},
		"Unread":   {reason: "A Plan depends on whether a resource could be read.", change: func(w *Snapshot) { w.AddUnreadable(kind, "forbidden") }},
		"Secrets":  {reason: "A Plan depends on whether Secrets were listed.", change: (*Snapshot).WithoutSecrets},
		"Consent":  {reason: "The user's consent changes a Plan.", change: func(w *Snapshot) { w.Consent(xp.RefTo(quarantinedXR(t))) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, packed := range []bool{false, true} {
				w := NewSnapshot(Unverified)
				if packed {
					w.Pack()
				}
				subject := xr
				if name == "Consent" {
					subject = quarantinedXR(t)
				}
				for _, u := range []*unstructured.Unstructured{subject, mr, other} {
					w.Add(u)
				}
				r := xp.RefTo(subject)
				if w.IsPlanCurrent(r) {
					t.Errorf("%s: a Plan can't be current before Next", tc.reason)
				}
				Next(w, r)
				tc.change(w)
				if got := w.IsPlanCurrent(r); got != tc.want {
					t.Errorf("%s: IsPlanCurrent is %t", tc.reason, got)
				}
			}
		})
	}
}

func quarantinedXR(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	u := xptest.XR("x")
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt, Quarantine: true}); err != nil {
		t.Fatal(err)
	}

	return u
}

// A cached Plan equals a new one after any change.
func TestCachedPlansAreCurrent(t *testing.T) {
	animals := append(xptest.HostileObjects(), victims()...)
	bucket := xptest.MR("c", xptest.ControlledBy(xptest.XR("kept")))
	animals = append(animals, bucket, held(xptest.XR("kept", xptest.Refs(bucket, xptest.MR("d")))))
	changes := []xptest.Option{
		func(*unstructured.Unstructured) {}, xptest.SeenPaused(), xptest.Reconciled(), xptest.Deleting(), xptest.Without("metadata", "annotations"),
		xptest.Without("metadata", "ownerReferences"), xptest.Without("status"), xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Generation(3),
	}
	kept, made := 0, 0
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // It must be the same every time.
		objects, facts := map[xp.ID]*unstructured.Unstructured{}, []func(*Snapshot){}
		w := NewSnapshot(Unverified)
		if seed%2 == 0 {
			w.Pack()
		}
		w.SetTime(noon)
		last := map[xp.ID]Plan{}
		for step := range 80 {
			u := xptest.With(animals[random.IntN(len(animals))], changes[random.IntN(len(changes))], xptest.Version(strconv.Itoa(step+1)))
			switch n := random.IntN(40); {
			case n == 0:
				facts = append(facts, func(w *Snapshot) { w.AddUnserved(u.GroupVersionKind().GroupKind()) })
				facts[len(facts)-1](w)
			case n == 1:
				facts = append(facts, func(w *Snapshot) { w.AddedAll(u.GroupVersionKind().GroupKind()) })
				facts[len(facts)-1](w)
			case n < 10:
				w.Remove(u)
				delete(objects, xp.RefTo(u).ID())
			default:
				w.Add(u)
				objects[xp.RefTo(u).ID()] = u
			}
			fresh := snapshot(slices.Collect(maps.Values(objects))...)
			for _, setCondition := range facts {
				setCondition(fresh)
			}
			for _, animal := range animals {
				r := xp.RefTo(animal)
				plan, planned := last[r.ID()]
				if planned && plan.Patch == nil && len(plan.Also) == 0 && w.IsPlanCurrent(r) {
					kept++
					if diff := cmp.Diff(Next(fresh, r), plan); diff != "" {
						t.Fatalf("seed %d, step %d: the cached Plan for %s: -new, +cached:\n%s", seed, step, r, diff)
					}

					continue
				}
				made++
				last[r.ID()] = Next(w, r)
			}
		}
	}
	if kept == 0 || made == 0 || kept < made {
		t.Errorf("too few cached Plans: %d cached, %d new", kept, made)
	}
}

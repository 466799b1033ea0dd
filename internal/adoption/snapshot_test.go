package adoption

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// noon is when tests observe.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// held returns u with a hold, then changed by the options.
func held(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	return withMark(u, hold.Hold{Restore: restoreName, Since: restoredAt}, o...)
}

func snapshot(objects ...*unstructured.Unstructured) *Snapshot {
	w := NewSnapshot(hold.Unverified)
	w.SetTime(noon)
	for _, u := range objects {
		w.Add(u)
	}

	return w
}

// withRestored adds restored objects to a Snapshot.
func withRestored(w *Snapshot, objects ...*unstructured.Unstructured) *Snapshot {
	for _, u := range objects {
		w.AddRestored(u)
	}

	return w
}

func refs(objects ...*unstructured.Unstructured) []xp.Ref {
	var list []xp.Ref
	for _, u := range objects {
		list = append(list, xp.RefTo(u))
	}

	return list
}

func TestSubjects(t *testing.T) {
	a, b := held(xptest.XR("a")), held(xptest.XRV2("b"))
	free, unreadable := xptest.XR("free"), xptest.XR("u", xptest.Annotated(hold.Annotation, "?"))
	marked, unread := xptest.MR("m", xptest.Annotated(hold.Annotation, "{}")), xptest.MR("n", xptest.Annotated(hold.Annotation, "?"))
	publishing := xptest.MR("p", xptest.PublishesTo("infra", "s"))
	w := snapshot(unreadable, publishing, b, unread, a, free, marked, held(xptest.Claim("c", xptest.OfXR(a))), xptest.MR("plain"), xptest.Secret("s"),
		xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly", xptest.Annotated(hold.Annotation, "{}")))
	xptest.Same(t, refs(marked, unread, publishing, b, a, free, unreadable), w.Subjects(), "Subjects must return XRs in a stable order, with MRs that publish or are held, and without claims of XRs and objects that a user releases")
}

func TestNeeds(t *testing.T) {
	bucket, revision := xptest.MR("b"), xptest.Revision(xptest.RevisionName, xptest.XR("x"))
	plain, published := xptest.Claim("o"), xptest.PublishesTo("infra", "s")
	child := xptest.XR("child", xptest.Refs(xptest.MR("deep")))
	parent := xptest.XR("parent", xptest.Refs(child, bucket), xptest.ClaimedBy(plain))
	claim := xptest.Claim("o", xptest.OfXR(parent))
	loop := xptest.XR("loop")
	loop = xptest.XR("loop", xptest.Refs(loop))
	cases := map[string]struct {
		reason   string
		snapshot *Snapshot
		from     []xp.Ref
		want     []xp.Ref
	}{
		"Unknown": {reason: "Only the name of an unobserved object is known.", snapshot: snapshot(), from: refs(parent), want: refs(parent)},
		"Held": {
			reason: "The plan of an XR depends on its composed resources, its revision and its claim.", snapshot: snapshot(held(parent)), from: refs(parent),
			want: refs(parent, child, bucket, revision, claim),
		},
		"Tree": {
			reason: "The needs follow the tree downwards, and the claim leads back to the XR.", snapshot: snapshot(held(parent), held(child), held(claim)), from: refs(claim),
			want: refs(claim, parent, child, xptest.MR("deep"), revision, bucket),
		},
		"NotHeld": {reason: "An XR without a hold needs only its claim.", snapshot: snapshot(parent), from: refs(parent), want: refs(parent, claim)},
		"Unreadable": {
			reason: "An unreadable mark names no objects.", snapshot: snapshot(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(hold.Annotation, "?"))), from: refs(xptest.XR("x")),
			want: refs(xptest.XR("x")),
		},
		"Loop": {reason: "An XR that composes itself must not loop.", snapshot: snapshot(held(loop)), from: refs(loop, loop), want: refs(loop, revision)},
		"Publishing": {
			reason:   "Only a connection Secret that the restore restores must exist before its MR's release.",
			snapshot: snapshot(awaiting(xptest.MR("b", published)), forSecret(xptest.MR("c", published))), from: refs(bucket, xptest.MR("c")),
			want: refs(bucket, xptest.Secret("s", xptest.In("infra")), xptest.MR("c")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { xptest.Same(t, tc.want, tc.snapshot.Needs(tc.from), tc.reason) })
	}
}

// A packed Snapshot has the same objects. It stores those of Crossplane's own kinds as they are.
func TestPack(t *testing.T) {
	x := held(xptest.XR("x"))
	objects := []*unstructured.Unstructured{
		x, held(xptest.Claim("c")), held(xptest.MR("m")), xptest.MR("p", xptest.PublishesTo("infra", "s")), xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled()),
		xptest.Secret("s"), xptest.XRD("xorders.example.org"),
	}
	kept := map[string]bool{"xorders.example.org": true}
	w, packed := snapshot(objects...), NewSnapshot(hold.Unverified)
	packed.Pack()
	for _, u := range objects {
		packed.AddRestored(u)
	}
	xptest.Same(t, w.Subjects(), packed.Subjects(), "the subjects must be the same")
	xptest.Same(t, w.Needs(w.Subjects()), packed.Needs(packed.Subjects()), "the needs must be the same")
	for _, u := range objects {
		r := xp.RefTo(u)
		if diff := cmp.Diff(u, packed.Get(r)); diff != "" || !packed.Has(r) {
			t.Errorf("%s: -want, +got:\n%s", r, diff)
		}
		if same := packed.Get(r) == u; same != kept[u.GetName()] {
			t.Errorf("%s is kept unpacked: %t", r, same)
		}
		if all := packed.All(u.GroupVersionKind().GroupKind(), nil); len(all) != len(w.All(u.GroupVersionKind().GroupKind(), nil)) {
			t.Errorf("%s: All returns %v for its kind", r, all)
		}
	}
	for _, u := range objects {
		packed.Remove(u)
		if r := xp.RefTo(u); packed.Has(r) || packed.Get(r) != nil || packed.restored[u.GetUID()] {
			t.Errorf("%s was removed and still exists", r)
		}
	}
}

// An object that is not the XR's MR is not held for its connection secret.
func TestNextReleasesOnlyItsMRs(t *testing.T) {
	x := xptest.XR("x")
	cron := xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly", xptest.ControlledBy(x))
	claim, mr := xptest.Claim("o", xptest.ControlledBy(x)), xptest.MR("b", xptest.ControlledBy(x), xptest.PublishesTo("infra", "s"))
	composing := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return held(xptest.XR("x", xptest.Refs(u)), xptest.SeenPaused())
	}
	revision := xptest.Revision(xptest.RevisionName, x)
	runPlans(t, x, map[string]planCase{
		"CronOperation": {
			reason: "Only a user lifts the hold of a resource that starts Operations.", want: "1/1; unpause XOrder x", snapshot: snapshot(composing(cron), held(cron), revision),
		},
		"Claim": {reason: "A claim has its own plan.", want: "1/1; unpause XOrder x", snapshot: snapshot(composing(claim), held(claim), revision)},
		"Uncontrolled": {
			reason: "A resource without a controller has its own operation, and the XR waits for it.", want: "0/1; moving; waits: Bucket b Releasing",
			snapshot: snapshot(composing(mr), forSecret(xptest.With(mr, xptest.Without("metadata", "ownerReferences"))), revision),
		},
	})
}

// The Plan of a held XR includes its composed resources.
func TestSubjectsOfAHeldXR(t *testing.T) {
	x, free := xptest.XR("x"), xptest.XR("free")
	unreadable := xptest.XR("u", xptest.Annotated(hold.Annotation, "?"))
	publishes := xptest.PublishesTo("infra", "s")
	claim := xptest.Claim("o")
	mr := func(name string, controller *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.MR(name, xptest.ControlledBy(controller), publishes)
	}
	xptest.Run(t, map[string]xptest.Row[*Snapshot, []xp.Ref]{
		"Held": {
			Reason: "The XR's plan releases its MRs, marked or not.",
			In:     snapshot(held(x), forSecret(mr("b", x)), mr("c", x), xptest.MR("d", xptest.Annotated(hold.Annotation, "{}"), xptest.ControlledBy(x))), Want: refs(x),
		},
		"Unheld":       {Reason: "The plan of an XR without a hold does not cover its MRs.", In: snapshot(free, forSecret(mr("b", free))), Want: refs(mr("b", free), free)},
		"Unreadable":   {Reason: "An XR with an unreadable mark has no plan for its MRs.", In: snapshot(unreadable, mr("b", unreadable)), Want: refs(mr("b", x), unreadable)},
		"Earlier":      {Reason: "An earlier XR of the same name is another controller.", In: snapshot(held(x), mr("b", xptest.XR("x", xptest.UID("old")))), Want: refs(mr("b", x), x)},
		"Uncontrolled": {Reason: "A resource without a controller belongs to no XR.", In: snapshot(held(x), xptest.MR("b", publishes)), Want: refs(mr("b", x), x)},
		"HeldClaim":    {Reason: "A claim composes nothing.", In: snapshot(held(claim), mr("b", claim)), Want: refs(mr("b", x))},
	}, (*Snapshot).Subjects)
}

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
		"Consent":  {reason: "The user's consent changes a Plan.", change: func(w *Snapshot) { w.Consent(xp.RefTo(quarantinedObject(xptest.XR("x")))) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, packed := range []bool{false, true} {
				w := NewSnapshot(hold.Unverified)
				if packed {
					w.Pack()
				}
				subject := xr
				if name == "Consent" {
					subject = quarantinedObject(xptest.XR("x"))
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
		w := NewSnapshot(hold.Unverified)
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

package adoption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// noon is when tests observe.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// held returns u with a hold, then changed by the options.
func held(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := Put(u, Hold{Restore: restoreName, Since: restoredAt}); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

// unpaused is the option of a held object that Crossplane may reconcile.
func unpaused() xptest.Option { return xptest.Without("metadata", "annotations", xp.AnnotationPaused) }

func snapshot(objects ...*unstructured.Unstructured) *Snapshot {
	w := NewSnapshot(Unverified)
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
	free, unreadable := xptest.XR("free"), xptest.XR("u", xptest.Annotated(AnnotationHold, "?"))
	marked, unread := xptest.MR("m", xptest.Annotated(AnnotationHold, "{}")), xptest.MR("n", xptest.Annotated(AnnotationHold, "?"))
	publishing := xptest.MR("p", xptest.PublishesTo("infra", "s"))
	w := snapshot(unreadable, publishing, b, unread, a, free, marked, held(xptest.Claim("c", xptest.OfXR(a))), xptest.MR("plain"), xptest.Secret("s"),
		xptest.Object("ops.crossplane.io/v1alpha1", "CronOperation", "", "nightly", xptest.Annotated(AnnotationHold, "{}")))
	if diff := cmp.Diff(refs(marked, unread, publishing, b, a, free, unreadable), w.Subjects()); diff != "" {
		t.Errorf("Subjects must return XRs in a stable order, with MRs that publish or are held, and without claims of XRs and objects that a "+
			"user releases.\n-want, +got:\n%s", diff)
	}
}

func TestIsMarked(t *testing.T) {
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"MR":         {held(xptest.MR("b")), true},
		"Unreadable": {xptest.MR("b", xptest.Annotated(AnnotationHold, "?")), true},
		"ClaimsMark": {xptest.NamespacedMR("b", xptest.Annotated(AnnotationHold, "{}")), true},
		"Copy":       {copied(xptest.NamespacedMR("b")), true},
		"Free":       {xptest.MR("b"), false},
		"OwnPause":   {xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), false},
		"XR":         {held(xptest.XR("x")), false},
		"Claim":      {held(xptest.Claim("o")), false},
		"Other":      {xptest.Object("v1", "ConfigMap", "team-a", "c", xptest.Annotated(AnnotationHold, "{}")), false},
	} {
		if got := IsMarked(tc.object); got != tc.want {
			t.Errorf("%s: only an MR with a hold counts as marked: got %v, want %v", name, got, tc.want)
		}
	}
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
		"Unknown": {
			reason:   "Only the name of an unobserved object is known.",
			snapshot: snapshot(), from: refs(parent), want: refs(parent),
		},
		"Held": {
			reason:   "The plan of an XR depends on its composed resources, its revision and its claim.",
			snapshot: snapshot(held(parent)), from: refs(parent), want: refs(parent, child, bucket, revision, claim),
		},
		"Tree": {
			reason:   "The needs follow the tree downwards, and the claim leads back to the XR.",
			snapshot: snapshot(held(parent), held(child), held(claim)), from: refs(claim),
			want: refs(claim, parent, child, xptest.MR("deep"), revision, bucket),
		},
		"NotHeld": {
			reason:   "An XR without a hold needs only its claim.",
			snapshot: snapshot(parent), from: refs(parent), want: refs(parent, claim),
		},
		"NeverComposed": {
			reason:   "Without a revision there is none to look for.",
			snapshot: snapshot(held(xptest.XR("x", xptest.NeverComposed()))), from: refs(xptest.XR("x")), want: refs(xptest.XR("x")),
		},
		"Unreadable": {
			reason:   "An unreadable mark names no objects.",
			snapshot: snapshot(xptest.XR("x", xptest.Refs(bucket), xptest.Annotated(AnnotationHold, "?"))), from: refs(xptest.XR("x")), want: refs(xptest.XR("x")),
		},
		"Loop": {
			reason:   "An XR that composes itself must not loop.",
			snapshot: snapshot(held(loop)), from: refs(loop, loop), want: refs(loop, revision),
		},
		"Publishing": {
			reason:   "Only a connection Secret that the restore restores must exist before its MR's release.",
			snapshot: snapshot(awaiting(xptest.MR("b", published)), forSecret(xptest.MR("c", published))), from: refs(bucket, xptest.MR("c")),
			want: refs(bucket, xptest.Secret("s", xptest.In("infra")), xptest.MR("c")),
		},
		"LeafAndFreeClaim": {
			reason:   "An MR needs nothing, and a claim without an XR needs nothing either.",
			snapshot: snapshot(bucket, plain), from: refs(bucket, plain), want: refs(bucket, plain),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.snapshot.Needs(tc.from)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
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
	w, packed := snapshot(objects...), NewSnapshot(Unverified)
	packed.Pack()
	for _, u := range objects {
		packed.AddRestored(u)
	}
	if diff := cmp.Diff(w.Subjects(), packed.Subjects()); diff != "" {
		t.Errorf("Subjects: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(w.Needs(w.Subjects()), packed.Needs(packed.Subjects())); diff != "" {
		t.Errorf("Needs: -want, +got:\n%s", diff)
	}
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

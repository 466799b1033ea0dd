package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// What a refused XR composes is refused, too, and the connection secret of a refused publisher.
// Without an XR it would have no controller, and its provider would create its external resource
// again if that was deleted with the XR.
func TestAdoptRefusesWithWhatItRefused(t *testing.T) {
	old, now := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", "s"))
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	localMR := xptest.NamespacedMR("b", xptest.ControlledBy(xptest.XRV2("x", xptest.UID("old"))), xptest.PublishesTo("", "s"))
	local, nowLocal := xptest.Secret("s", xptest.ControlledBy(localMR)), xptest.XRV2("x", xptest.UID("new"))
	part := xptest.XR("p", xptest.UID("old p"), xptest.ControlledBy(old))
	deeper := xptest.XR("d", xptest.UID("old d"), xptest.ControlledBy(part))
	ofPart, ofDeeper := xptest.MR("c", xptest.ControlledBy(part)), xptest.MR("e", xptest.ControlledBy(deeper))
	both := xptest.MR("f", xptest.ControlledBy(old), xptest.OwnedBy(metav1.OwnerReference{APIVersion: part.GetAPIVersion(), Kind: part.GetKind(), Name: "p", UID: part.GetUID()}))
	livePart := xptest.With(part, xptest.UID("new p"), xptest.Refs(ofPart))
	items := func(all ...*unstructured.Unstructured) []*unstructured.Unstructured { return all }
	for name, tc := range map[string]struct {
		reason  string
		live    *cluster
		mapping map[string]string
		// items are restored in this order, and skipped are the names of those that are not restored.
		items   []*unstructured.Unstructured
		skipped string
	}{
		"Secret":       {reason: "The XR dropped the MR, so the MR's Secret stays out too.", live: live(now), items: items(mr, secret), skipped: "b s"},
		"Mapped":       {reason: "The XR is in the mapped namespace.", live: live(xptest.With(nowLocal, xptest.In("copy"))), items: items(localMR, local), mapping: toCopy(), skipped: "b s"},
		"Restored":     {reason: "The Secret of an MR that comes back comes back too.", live: live(xptest.With(now, xptest.Refs(mr))), items: items(mr, secret)},
		"OtherOwner":   {reason: "The Secret of another MR comes back.", live: live(now), items: items(mr, xptest.Secret("s", xptest.ControlledBy(xptest.MR("c")))), skipped: "b"},
		"Elsewhere":    {reason: "An MR of the same name in another namespace is another.", live: live(nowLocal), items: items(localMR, xptest.With(local, xptest.In("team-b"))), skipped: "b"},
		"Opaque":       {reason: "A user's Secret does not belong to the MR that controls it.", live: live(now), items: items(mr, xptest.With(secret, xptest.Field("Opaque", "type"))), skipped: "b"},
		"Child":        {reason: "The composed XR stays out, so its MR stays out too.", live: live(now), items: items(part, ofPart), skipped: "p c"},
		"Grandchild":   {reason: "An MR deeper in the tree stays out too.", live: live(now), items: items(part, deeper, ofDeeper), skipped: "p d e"},
		"Wanted":       {reason: "An MR comes back with the XR that comes back.", live: live(xptest.With(now, xptest.Refs(part))), items: items(part, ofPart)},
		"Live":         {reason: "A composed XR that is live looks after its MR.", live: live(now, livePart), items: items(part, ofPart), skipped: "p"},
		"NoXR":         {reason: "The backup lacks the composed XR, so no refusal keeps its MR out.", live: live(now), items: items(ofPart)},
		"NoController": {reason: "The MR's XR is its controller and lists it, and only another owner was refused.", live: live(xptest.With(now, xptest.Refs(both))), items: items(part, both), skipped: "p"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdopt(tc.live, Shared{})
			var skipped []string
			for _, item := range tc.items {
				out := execute(t, a, item, restoreOf(tc.mapping))
				if out.SkipRestore {
					skipped = append(skipped, item.GetName())
				}
				if out.SkipRestore && item.GetKind() == "Secret" && !strings.HasSuffix(out.OperationID, "[OwnerNotRestored]") {
					t.Errorf("a note must name the Secret that is left out: %q", out.OperationID)
				}
			}
			if got := strings.Join(skipped, " "); got != tc.skipped {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.skipped)
			}
		})
	}
}

// Velero removes generateName.
func TestAdoptKeepsGenerateName(t *testing.T) {
	long := strings.Repeat("x", 63) // The longest name of an XR.
	for name, tc := range map[string]struct {
		reason         string
		name, prefix   string
		controlled, xr bool
		want           string
	}{
		"Composed":    {reason: "Crossplane applies composed resources with generateName.", name: "x-1a2b3c", prefix: "x-", controlled: true, want: "x-"},
		"XR":          {reason: "Crossplane also creates an XR with the generateName of its claim.", name: "x-1a2b3", prefix: "x-", xr: true, want: "x-"},
		"Other":       {reason: "The API server refuses a generateName that cannot start a name.", name: "x-1", prefix: "Not A Name", controlled: true},
		"Dot":         {reason: "A name segment cannot end with a dot.", name: "x.y", prefix: "x.", controlled: true},
		"Cut":         {reason: "Crossplane v2 cuts the XR's name for a hash.", name: long[:50] + "-0123456789ab", prefix: long + "-", controlled: true, want: long + "-"},
		"CutInvalid":  {reason: "The API server refuses a generateName that cannot start a name.", name: long[:50] + "-0123456789ab", prefix: long + "_", controlled: true},
		"CutOther":    {reason: "The name was not made from the generateName.", name: "x-1", prefix: long + "-", controlled: true},
		"NotComposed": {reason: "Crossplane does not apply an MR that it does not compose.", name: "x-1", prefix: "x-"},
	} {
		t.Run(name, func(t *testing.T) {
			generated := xptest.Field(tc.prefix, "metadata", "generateName")
			if tc.prefix == "" {
				generated = xptest.Without("metadata", "generateName")
			}
			item := xptest.MR(tc.name, generated)
			owner := xptest.XR("owner", xptest.UID("old"))
			switch {
			case tc.xr:
				item = xptest.XR(tc.name, generated)
			case tc.controlled:
				item = xptest.With(item, xptest.ControlledBy(owner))
			}
			out := adopt(t, live(xptest.With(owner, xptest.UID("new"), xptest.Refs(item))), item, restoreOf(nil))
			if out.err != nil {
				t.Fatal(out.err)
			}
			got := ""
			if out.object != nil {
				got = out.object.GetGenerateName()
			}
			if got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func enabled(features ...string) func() []string {
	return func() []string { return features }
}

// An item that Velero links has no owner yet when it is created. It does not differ otherwise.
func TestVeleroFeatures(t *testing.T) {
	old := xptest.XR("x", xptest.UID("old"))
	mr := xptest.MR("b", xptest.ControlledBy(old))
	publisher := xptest.MR("p", xptest.ControlledBy(old), xptest.PublishesTo("infra", "s"))
	child := xptest.XR("child", xptest.ControlledBy(old))
	x := heldWith(xptest.XR("x", xptest.UID("new"), xptest.Refs(mr, publisher, child)))
	relinks := Shared{Features: enabled("EnableCSI", FeatureRelink)}
	type want struct {
		Owners, Held, Operation, Skip bool
		// Logged is how often the log has that Velero writes owners, or that they may differ.
		Logged int
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Off":     {reason: "Velero restores no owner references by default.", shared: Shared{Features: enabled()}, live: live(x), item: mr, want: want{Owners: true}},
		"Another": {reason: "Other features of Velero do not matter.", shared: Shared{Features: enabled("EnableCSI")}, live: live(x), item: mr, want: want{Owners: true}},
		"MR":      {reason: "Velero restores the owner reference, so the plugin must not.", shared: relinks, live: live(x), item: mr, want: want{Logged: 1}},
		"Secret": {
			reason: "Velero restores owner references of connection secrets too.", shared: relinks, live: live(xptest.With(publisher, xptest.UID("new"))),
			item: xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publisher)), want: want{Logged: 1},
		},
		"Publisher": {
			reason: "A publishing MR stays held, and the XR's operation releases it.", shared: relinks, live: live(x), item: publisher,
			want: want{Held: true, Logged: 1},
		},
		"ComposedXR": {
			reason: "A composed XR is held and has an operation.", shared: relinks, live: live(x), item: child, want: want{Held: true, Operation: true, Logged: 1},
		},
		"XR": {reason: "The XR has no owner, so Velero restores no reference.", shared: relinks, live: live(), item: old, want: want{Held: true, Operation: true}},
		"ControlledByAnother": {
			reason: "Velero compares UIDs and ignores the XR's list, so the plugin reports the mismatch.", shared: relinks,
			live: live(heldWith(xptest.XR("x", xptest.UID("new")))), item: mr, want: want{Logged: 2},
		},
		"Reconciled": {
			reason: "A reconciled XR does not list the MR, so the MR stays out.", shared: relinks, live: live(xptest.XR("x", xptest.UID("new"))), item: mr,
			want: want{Skip: true, Logged: 1},
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		got := want{Operation: out.OperationID != "", Skip: out.SkipRestore, Held: out.hold(t) != nil}
		got.Owners = out.object != nil && len(out.object.GetOwnerReferences()) > 0
		for _, code := range out.codes {
			if code == reason.OwnersLeftToVelero {
				got.Logged++
			}
		}

		return got
	})
}

// A restore has thousands of items and several actions in one process. Each poll is another
// process, and writes no owners.
func TestVeleroFeaturesLogOnce(t *testing.T) {
	mr := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID("old"))))
	shared, logged := Shared{Requested: &RequestedItems{}, Features: enabled(FeatureRelink)}, 0
	for range 3 {
		logged += len(adoptWith(t, shared, live(xptest.XR("x", xptest.UID("new"), xptest.Refs(mr))), mr, restoreOf(nil)).logged)
	}
	if logged != 1 {
		t.Errorf("the log has %d lines, want one", logged)
	}
}

// A writer that applies XRs from Git can create an XR before the restore. If that has composed
// nothing yet, it gets what it composed in the backup before that is restored.
func TestAdoptTakesOver(t *testing.T) {
	x := xptest.XR("x", xptest.UID("old"))
	mr := xptest.MR("b", xptest.ControlledBy(x))
	x = xptest.With(x, xptest.Refs(mr))
	fresh := xptest.XR("x", xptest.UID("new"), xptest.Without("spec", "resourceRefs"))
	taken := heldWith(xptest.With(fresh, xptest.Refs(mr)))
	type want struct {
		Asked, Skipped, Told bool
		Owner                string
	}
	for name, tc := range map[string]struct {
		reason string
		live   *cluster
		first  *unstructured.Unstructured
		config map[string]string
		want   want
	}{
		"Fresh": {
			reason: "The live XR has composed no resources yet, so the restore takes it over.", live: &cluster{objects: []*unstructured.Unstructured{fresh}, taken: taken}, first: x,
			want: want{Asked: true, Told: true, Owner: "new"},
		},
		"ReconciledFirst": {
			reason: "Crossplane reconciled the XR first, so the resources in the backup stay out.", first: x,
			live: live(fresh), want: want{Asked: true, Skipped: true, Told: true},
		},
		"Reconciled": {
			reason: "The live XR has composed other resources.", first: x, want: want{Skipped: true, Told: true},
			live: live(xptest.With(fresh, xptest.Refs(xptest.MR("anew")))),
		},
		"NotInBackup": {
			reason: "The backup lacks the XR, so its composed resources are unknown.", live: live(fresh), first: xptest.XR("y"), want: want{Skipped: true, Told: true},
		},
		"NoHold": {
			reason: "The setting turns holds off.", live: &cluster{objects: []*unstructured.Unstructured{fresh}, config: map[string]string{"hold": "none"}}, first: x,
			want: want{Skipped: true, Told: true},
		},
		"Restored": {reason: "The restore created the XR itself.", live: live(taken), first: x, want: want{Owner: "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdopt(tc.live, Shared{})
			execute(t, a, tc.first, restoreOf(nil))
			out := execute(t, a, mr, restoreOf(nil))
			got := want{Asked: slices.Contains(tc.live.asked, "take over "+xp.RefTo(x).String()), Skipped: out.SkipRestore, Told: out.OperationID != ""}
			if u := updated(out); u != nil {
				c, _ := xp.Controller(u)
				got.Owner = string(c.UID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, out.OperationID)
			}
		})
	}
}

// A claim without an XR gets the backup's XR.
func TestAdoptTakesClaimsOver(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")))
	name := xp.RefTo(claim).String()
	type want struct{ Skipped, Operation bool }
	runAdopts(t, map[string]adoptCase[want]{
		"Meanwhile":       {reason: "The claim was created while the restore ran.", item: claim, live: &cluster{taken: claim}, restore: updating(), want: want{Skipped: true, Operation: true}},
		"Fresh":           {reason: "The live claim has no XR yet, so the restore takes it over.", item: claim, live: &cluster{takeable: []string{name}, taken: claim}, want: want{Skipped: true, Operation: true}},
		"ReconciledFirst": {reason: "The live claim has got another XR since.", item: claim, live: &cluster{takeable: []string{name}}, want: want{Operation: true}},
		"Other":           {reason: "The cluster has no such claim.", item: claim, live: &cluster{}, want: want{Operation: true}},
	}, func(_ *testing.T, out adopted) want {
		return want{Skipped: out.SkipRestore, Operation: out.OperationID == operationID(xp.RefTo(claim))}
	})
}

// An XR that was taken over waits for its connection secret as a restored one: it would publish
// another.
func TestAdoptTakesOverWithItsSecret(t *testing.T) {
	x := xptest.XR("x", xptest.UID("old"), xptest.PublishesTo("infra", "s"))
	mr := xptest.MR("b", xptest.ControlledBy(x))
	x = xptest.With(x, xptest.Refs(mr))
	xp.SetFlag(x, xp.FieldPublished, true)
	live := &cluster{objects: []*unstructured.Unstructured{xptest.XR("x", xptest.UID("new"), xptest.Without("spec", "resourceRefs"))}}
	a := newAdopt(live, Shared{})
	execute(t, a, x, restoreOf(nil))
	execute(t, a, mr, restoreOf(nil))
	if !live.takenWith.Secret {
		t.Errorf("the hold must wait for the Secret: %+v", live.takenWith)
	}
}

// A tenant can write 1.5 MiB into each of any number of XRs.
func TestAdoptRemembersXRsWithinALimit(t *testing.T) {
	const most = 64 << 10
	large := strings.Repeat("x", 1<<20)
	a := newAdopt(live(), Shared{})
	for _, name := range []string{"a", "b", "c", "d"} {
		x := xptest.XR(name, xptest.Refs(xptest.MR("b")), xptest.Field(large, "spec", "parameters"), xptest.Annotated("example.org/large", large[:100<<10]))
		execute(t, a, x, restoreOf(nil))
	}
	if len(a.remembered.encoded) != 4 || a.remembered.size > most {
		t.Errorf("%d XRs take %d bytes, although only Crossplane's part of them is needed", len(a.remembered.encoded), a.remembered.size)
	}
}

func TestRememberedXRs(t *testing.T) {
	var r rememberedXRs
	half := make([]byte, rememberedLimit/2)
	a, b, c := xp.ID{Name: "a"}, xp.ID{Name: "b"}, xp.ID{Name: "c"}
	if !r.add(a, half) || !r.add(b, half) || !r.add(b, half) {
		t.Error("there must be room for two halves, and for one again")
	}
	if r.add(c, []byte{1}) {
		t.Error("there must be no room for more than the limit")
	}
	if _, ok := r.take(c); ok {
		t.Error("what is left out must not be there")
	}
	if _, ok := r.take(a); !ok || !r.add(c, half) {
		t.Error("what is taken must make room")
	}
}

// What is remembered must be all that a take-over reads.
func TestAdoptTakesOverWithWhatItRemembers(t *testing.T) {
	for name, build := range map[string]func(string, ...xptest.Option) *unstructured.Unstructured{"v1": xptest.XR, "v2": xptest.XRV2} {
		t.Run(name, func(t *testing.T) {
			backup := build("x", xptest.Refs(xptest.MR("b")), xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published(), xptest.Annotated(xp.AnnotationExternalName, "e"),
				xptest.Labelled(xp.LabelComposite, "x"))
			whole, part := build("x", xptest.Without("spec", "resourceRefs"), xptest.Without("spec", "crossplane")), build("x", xptest.Without("spec", "resourceRefs"), xptest.Without("spec", "crossplane"))
			kept := xp.Inheritance(backup)
			if err := xp.Inherit(whole, backup); err != nil {
				t.Fatal(err)
			}
			if err := xp.Inherit(part, kept); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole, part); diff != "" {
				t.Errorf("-from the whole XR, +from what is remembered:\n%s", diff)
			}
			paths := cmpopts.SortSlices(func(a, b []string) bool { return strings.Join(a, "/") < strings.Join(b, "/") })
			if diff := cmp.Diff(xp.InheritedPaths(backup), xp.InheritedPaths(kept), paths); diff != "" {
				t.Errorf("-paths of the whole XR, +of what is remembered:\n%s", diff)
			}
			if r, ok := xp.SecretRef(kept); name == "v1" && (!ok || !xp.HasFlag(kept, xp.FieldPublished) || r.Name != "s") {
				t.Errorf("its Secret is lost: %v", r)
			}
			if !xp.IsComposite(kept) {
				t.Error("it must still be an XR")
			}
		})
	}
}

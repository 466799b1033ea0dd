package restoreitem

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A connection secret whose publisher is refused has no controller. It is restored after its
// publisher.
func TestAdoptRefusesSecretsOfWhatItRefused(t *testing.T) {
	old, now := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", "s"))
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mr))
	oldLocal, nowLocal := xptest.XRV2("x", xptest.UID("old")), xptest.XRV2("x", xptest.UID("new"))
	localMR := xptest.NamespacedMR("b", xptest.ControlledBy(oldLocal), xptest.PublishesTo("", "s"))
	local := xptest.Secret("s", xptest.ControlledBy(localMR))
	const why = "It is not restored, because Bucket b, which published it, is not restored [OwnerNotRestored]"
	type want struct {
		Publisher, Secret bool
		// Why reports whether there is the warning about the Secret.
		Why bool
	}
	cases := map[string]struct {
		reason            string
		live              *cluster
		publisher, secret *unstructured.Unstructured
		mapping           map[string]string
		// want is what is not restored.
		want want
	}{
		"Cluster": {reason: "The XR dropped the MR, so the MR's Secret stays out too.", live: live(now), publisher: mr, secret: secret, want: want{Publisher: true, Secret: true, Why: true}},
		"Namespaced": {
			reason: "A namespaced MR's Secret stays out too.", live: live(nowLocal), publisher: localMR, secret: local, want: want{Publisher: true, Secret: true, Why: true},
		},
		"Mapped": {
			reason: "The plugin looks for the XR in the mapped namespace.", live: live(xptest.With(nowLocal, xptest.In("copy"))), publisher: localMR, secret: local,
			mapping: toCopy(), want: want{Publisher: true, Secret: true, Why: true},
		},
		"Restored": {
			reason: "The Secret of an MR that comes back comes back too.", live: live(xptest.With(now, xptest.Refs(mr))), publisher: mr, secret: secret,
		},
		"OtherOwner": {
			reason: "The Secret of another MR comes back.", live: live(now), publisher: mr, secret: xptest.Secret("s", xptest.ControlledBy(xptest.MR("c"))),
			want: want{Publisher: true},
		},
		"Elsewhere": {
			reason: "The Secret of an MR of the same name in another namespace comes back.", live: live(nowLocal), publisher: localMR,
			secret: xptest.With(local, xptest.In("team-b")), want: want{Publisher: true},
		},
		"AnotherKind": {
			reason: "The Secret of another kind of the same name comes back.", live: live(now), publisher: mr, secret: xptest.Secret("s", xptest.ControlledBy(xptest.XR("b"))), want: want{Publisher: true},
		},
		"NoConnectionSecret": {
			reason: "A user's Secret of another type does not belong to the MR that controls it.", live: live(now), publisher: mr,
			secret: xptest.With(secret, xptest.Field("Opaque", "type")), want: want{Publisher: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			a := NewAdopt(Crossplane(), tc.live, nil, log, Shared{})
			restore := restoreOf(tc.mapping)
			publisher, err := a.Execute(inputFor(tc.publisher, restore))
			if err != nil {
				t.Fatal(err)
			}
			out, err := a.Execute(inputFor(tc.secret, restore))
			if err != nil {
				t.Fatal(err)
			}
			var reported []string
			for _, e := range hook.AllEntries() {
				reported = append(reported, e.Message)
			}
			got := want{Publisher: publisher.SkipRestore, Secret: out.SkipRestore, Why: slices.Contains(reported, why)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\nlogged %v", tc.reason, diff, reported)
			}
		})
	}
}

// What a refused XR composes is refused, too. Without an XR it would have no controller, and its
// provider would create its external resource again if that was deleted with the XR.
func TestAdoptRefusesWhatRefusedXRsCompose(t *testing.T) {
	now := xptest.XR("x", xptest.UID("new"))
	x := xptest.XR("x", xptest.UID("old"))
	part := xptest.XR("p", xptest.UID("old p"), xptest.ControlledBy(x))
	deeper := xptest.XR("d", xptest.UID("old d"), xptest.ControlledBy(part))
	cases := map[string]struct {
		reason string
		live   *cluster
		// items are restored in this order.
		items []*unstructured.Unstructured
		// want is what is not restored.
		want []string
	}{
		"Child": {reason: "The composed XR stays out, so its MR stays out too.", live: live(now), items: []*unstructured.Unstructured{part, xptest.MR("b", xptest.ControlledBy(part))}, want: []string{"p", "b"}},
		"Grandchild": {
			reason: "An MR deeper in the tree stays out too.", live: live(now), items: []*unstructured.Unstructured{part, deeper, xptest.MR("b", xptest.ControlledBy(deeper))},
			want: []string{"p", "d", "b"},
		},
		"Wanted": {
			reason: "An MR comes back with the XR that comes back.", live: live(xptest.With(now, xptest.Refs(part))),
			items: []*unstructured.Unstructured{part, xptest.MR("b", xptest.ControlledBy(part))},
		},
		"Live": {
			reason: "A composed XR that is live looks after its MR.",
			live:   live(now, xptest.With(part, xptest.UID("new p"), xptest.Refs(xptest.MR("b")))),
			items:  []*unstructured.Unstructured{part, xptest.MR("b", xptest.ControlledBy(part))}, want: []string{"p"},
		},
		"NoXR": {
			reason: "The backup lacks the composed XR, so no refusal keeps its MR out.", live: live(now), items: []*unstructured.Unstructured{xptest.MR("b", xptest.ControlledBy(part))},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(Crossplane(), tc.live, nil, log, Shared{})
			var got []string
			for _, item := range tc.items {
				out, err := a.Execute(inputFor(item, restoreOf(nil)))
				if err != nil {
					t.Fatal(err)
				}
				if out.SkipRestore {
					got = append(got, item.GetName())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// An item is restored if its controller lists it, also if another owner was refused.
func TestAdoptRefusesForControllersOnly(t *testing.T) {
	old := xptest.XR("x", xptest.UID("old"))
	left := xptest.XR("left", xptest.ControlledBy(old), xptest.UID("left"))
	ref := metav1.OwnerReference{APIVersion: left.GetAPIVersion(), Kind: left.GetKind(), Name: left.GetName(), UID: left.GetUID()}
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		want   bool
	}{
		"Owner":      {reason: "The MR's XR is its controller and lists it.", item: xptest.MR("b", xptest.ControlledBy(old), xptest.OwnedBy(ref))},
		"Controller": {reason: "No other controller would look after the MR.", item: xptest.MR("b", xptest.ControlledBy(left)), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(Crossplane(), live(xptest.XR("x", xptest.UID("new"), xptest.Refs(tc.item))), nil, log, Shared{})
			if out, err := a.Execute(inputFor(left, restoreOf(nil))); err != nil || !out.SkipRestore {
				t.Fatalf("an MR that its XR does not list must stay out: %v, %v", out, err)
			}
			out, err := a.Execute(inputFor(tc.item, restoreOf(nil)))
			if err != nil {
				t.Fatal(err)
			}
			if out.SkipRestore != tc.want {
				t.Errorf("%s\ngot skipped %v, want %v", tc.reason, out.SkipRestore, tc.want)
			}
		})
	}
}

// Velero removes generateName.
func TestAdoptKeepsGenerateName(t *testing.T) {
	long := strings.Repeat("x", 63) // The longest name of an XR.
	cases := map[string]struct {
		reason         string
		name, prefix   string
		controlled, xr bool
		want           string
	}{
		"Composed":    {reason: "Crossplane applies composed resources with generateName.", name: "x-1a2b3c", prefix: "x-", controlled: true, want: "x-"},
		"XR":          {reason: "Crossplane also creates an XR with the generateName of its claim.", name: "x-1a2b3", prefix: "x-", xr: true, want: "x-"},
		"None":        {reason: "Some composed resources have no generateName.", name: "x", controlled: true},
		"Other":       {reason: "The API server refuses a generateName that cannot start a name.", name: "x-1", prefix: "Not A Name", controlled: true},
		"Dot":         {reason: "A name segment cannot end with a dot.", name: "x.y", prefix: "x.", controlled: true},
		"Cut":         {reason: "Crossplane v2 cuts the XR's name for a hash.", name: long[:50] + "-0123456789ab", prefix: long + "-", controlled: true, want: long + "-"},
		"CutByV1":     {reason: "Crossplane v1 cuts the XR's name for five characters.", name: long[:58] + "1a2b3", prefix: long + "-", controlled: true, want: long + "-"},
		"CutInvalid":  {reason: "The API server refuses a generateName that cannot start a name.", name: long[:50] + "-0123456789ab", prefix: long + "_", controlled: true},
		"CutOther":    {reason: "The name was not made from the generateName.", name: "x-1", prefix: long + "-", controlled: true},
		"NotComposed": {reason: "Crossplane does not apply an MR that it does not compose.", name: "x-1", prefix: "x-"},
	}
	for name, tc := range cases {
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

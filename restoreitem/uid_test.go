package restoreitem

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	oldUID   = "0a0a0a0a-1111-4222-8333-444444444444"
	newUID   = "0b0b0b0b-1111-4222-8333-444444444444"
	aboveOld = "0c0c0c0c-1111-4222-8333-444444444444"
	aboveNew = "0d0d0d0d-1111-4222-8333-444444444444"
)

// A Composition of Crossplane v1 makes the name of a connection secret from the UID of the XR, as
// its documentation did.
func TestAdoptCarriesUIDs(t *testing.T) {
	above, aboveNow := xptest.XR("above", xptest.UID(aboveOld)), xptest.XR("above", xptest.UID(aboveNew))
	old := xptest.XR("x", xptest.UID(oldUID), xptest.ControlledBy(above))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", oldUID+"-db"))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(mr), xptest.ControlledBy(aboveNow)))
	noted := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = u.DeepCopy()
		xp.SetUIDOwners(u, []xp.UIDOwner{{Ref: xp.RefTo(above), UID: aboveOld}})

		return u
	}
	labelled := &velerov1.Restore{ObjectMeta: restoreOf(nil).ObjectMeta, Spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}}
	type want struct {
		Secret, Was string
		Held        []string
	}
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		live    *cluster
		restore *velerov1.Restore
		want    want
	}{
		"Published": {reason: "The provider must find the Secret of the backup.", item: mr, want: want{Secret: newUID + "-db", Was: oldUID + "-db"}},
		"Other":     {reason: "Other names stay.", item: xptest.With(mr, xptest.PublishesTo("infra", "s")), want: want{Secret: "s"}},
		"Above": {
			reason: "The name can come from an XR above.", item: noted(xptest.With(mr, xptest.PublishesTo("infra", aboveOld))), want: want{Secret: aboveNew, Was: aboveOld},
		},
		"AboveForged": {
			reason: "Without the XR above nothing proves the new UID.", item: noted(xptest.With(mr, xptest.PublishesTo("infra", aboveOld))),
			live: live(xptest.With(x, xptest.Without("metadata", "ownerReferences"))), want: want{Secret: aboveOld, Held: []string{"spec.writeConnectionSecretToRef.name"}},
		},
		"ByLabels": {
			reason: "In a restore by labels the Secret may come first, under its old name.", item: mr, restore: labelled,
			want: want{Secret: oldUID + "-db", Held: []string{"spec.writeConnectionSecretToRef.name"}},
		},
		"NoXR": {
			reason: "The XR has no UID yet.", item: mr, live: live(), want: want{Secret: oldUID + "-db", Held: []string{"spec.writeConnectionSecretToRef.name"}},
		},
		"ExternalName": {
			reason: "Another external-name is another external resource; the Secret is the same.",
			item:   xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "db-"+oldUID)),
			want:   want{Secret: newUID + "-db", Was: oldUID + "-db", Held: []string{"metadata.annotations[crossplane.io/external-name]"}},
		},
		"ForProvider": {
			reason: "Any field of the external resource may be its identity.", item: xptest.With(mr, xptest.JSON(`{"spec": {"forProvider": {"name": "`+oldUID+`"}}}`)),
			want: want{Secret: newUID + "-db", Was: oldUID + "-db", Held: []string{"spec.forProvider.name"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, restore := tc.live, tc.restore
			if c == nil {
				c = live(x, aboveNow)
			}
			if restore == nil {
				restore = restoreOf(nil)
			}
			out := adopt(t, c, tc.item, restore)
			if out.err != nil || out.object == nil {
				t.Fatalf("%s\ngot %+v", tc.reason, out)
			}
			h, err := adoption.HoldOf(out.object)
			if err != nil || h == nil {
				t.Fatalf("%s\ngot hold %+v, error %v", tc.reason, h, err)
			}
			r, _ := xp.SecretRef(out.object)
			got := want{Secret: r.Name, Was: h.SecretWas}
			if h.FromUID != nil {
				got.Held = h.FromUID.Fields
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The Secret comes back under the name that its publisher has for it now, and only that one.
func TestAdoptRenamesSecrets(t *testing.T) {
	old := xptest.XR("x", xptest.UID(oldUID))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(xptest.MR("b"))))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", oldUID+"-db"))
	now := xptest.MR("b", xptest.UID("new mr"), xptest.ControlledBy(x), xptest.PublishesTo("infra", newUID+"-db"))
	held := now.DeepCopy()
	if _, err := adoption.Put(held, adoption.Hold{Restore: "velero/monday", SecretWas: oldUID + "-db"}); err != nil {
		t.Fatal(err)
	}
	secret := func(name string) *unstructured.Unstructured {
		return xptest.Secret(name, xptest.In("infra"), xptest.ControlledBy(mr))
	}
	type want struct {
		Name    string
		Owners  int
		Skipped bool
	}
	for name, tc := range map[string]struct {
		reason string
		secret *unstructured.Unstructured
		live   *cluster
		policy velerov1.PolicyType
		want   want
	}{
		"Held": {reason: "The mark of its publisher proves the name.", secret: secret(oldUID + "-db"), live: live(x, held), want: want{Name: newUID + "-db", Owners: 1}},
		"Leftover": {
			reason: "A Secret that was left behind under an older UID must not take its place.", secret: secret(aboveOld + "-db"), live: live(x, held),
			want: want{Name: aboveOld + "-db"},
		},
		"Again": {
			reason: "A second restore changes nothing.", secret: secret(oldUID + "-db"), live: live(x, now, xptest.Secret(newUID+"-db", xptest.In("infra"))),
			want: want{Skipped: true},
		},
		"Lost": {
			reason: "Without a hold nothing proves which Secret is the right one.", secret: secret(oldUID + "-db"), live: live(x, now), want: want{Name: oldUID + "-db"},
		},
		"OfAnother": {
			reason: "A Secret with another name is not its publisher's.", secret: secret("s"), live: live(x, held, xptest.Secret(newUID+"-db", xptest.In("infra"))),
			want: want{Name: "s"},
		},
		"Update": {
			reason: "Velero must not write the backup's data over it.", secret: secret(oldUID + "-db"), policy: velerov1.PolicyTypeUpdate,
			live: live(x, held, xptest.Secret(newUID+"-db", xptest.In("infra"))), want: want{Skipped: true},
		},
		"Opaque": {
			reason: "Only connection secrets belong to a publisher.", secret: xptest.With(secret(oldUID+"-db"), xptest.Field("Opaque", "type")), live: live(x, held),
			want: want{Name: oldUID + "-db"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			restore := restoreOf(nil)
			restore.Spec.ExistingResourcePolicy = tc.policy
			out := adopt(t, tc.live, tc.secret, restore)
			if out.err != nil {
				t.Fatal(out.err)
			}
			got := want{Skipped: out.SkipRestore}
			switch {
			case got.Skipped:
			case out.object == nil:
				got.Name = tc.secret.GetName()
			default:
				got.Name, got.Owners = out.object.GetName(), len(out.object.GetOwnerReferences())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A Secret in a namespace that is not restored comes before its publisher, by its old name.
func TestAdoptRenamesRequestedSecrets(t *testing.T) {
	old := xptest.XR("x", xptest.UID(oldUID))
	mr := xptest.MR("b", xptest.ControlledBy(old), xptest.PublishesTo("infra", oldUID+"-db"), xptest.Published())
	secret := xptest.Secret(oldUID+"-db", xptest.In("infra"), xptest.ControlledBy(mr))
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(mr)))
	restore := restoreOf(nil)
	restore.Spec.IncludedNamespaces = []string{"team-a"}
	log, _ := logtest.NewNullLogger()
	c := live(x, xptest.Object("v1", "Namespace", "", "infra"))
	c.reconciled = publishing()
	a := NewAdopt(Crossplane(), c, nil, log, Shared{})
	out, err := a.Execute(inputFor(mr, restore))
	if err != nil || len(out.AdditionalItems) != 1 || out.AdditionalItems[0].Name != secret.GetName() {
		t.Fatalf("it must request the Secret by its name in the backup; got %+v, %v", out, err)
	}
	if out, err = a.Execute(inputFor(secret, restore)); err != nil || out.UpdatedItem == nil {
		t.Fatalf("got %+v, %v", out, err)
	}
	if got := (&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}).GetName(); got != newUID+"-db" {
		t.Errorf("the Secret comes back as %s", got)
	}
}

// The provider of an MR waits for the Secret under the name that it reads after the restore.
func TestAdoptAwaitsRenamedInputs(t *testing.T) {
	reads := xptest.MR("b", xptest.ControlledBy(xptest.XR("x", xptest.UID(oldUID))),
		xptest.JSON(`{"spec": {"forProvider": {"passwordSecretRef": {"namespace": "infra", "name": "`+oldUID+`-pw"}}}}`))
	xp.SetInputs(reads, []xp.Input{{Ref: xp.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "infra", Name: oldUID + "-pw"}, Exists: true, Stored: true}})
	x := heldWith(xptest.XR("x", xptest.UID(newUID), xptest.Refs(reads)))
	out := adopt(t, live(x), reads, restoreOf(nil))
	if out.err != nil || out.object == nil {
		t.Fatal(out.err)
	}
	h, err := adoption.HoldOf(out.object)
	if err != nil || h == nil {
		t.Fatalf("got hold %+v, error %v", h, err)
	}
	want := []adoption.Input{{Namespace: "infra", Name: newUID + "-pw", Stored: true, Was: oldUID + "-pw"}}
	got := h.Inputs
	for n := range got {
		got[n].By = ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A countingCluster counts how often the owner of an item is read.
type countingCluster struct {
	*cluster

	reads int
}

func (c *countingCluster) Owner(ctx context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	c.reads++

	return c.cluster.Owner(ctx, ref, namespace)
}

// A connection secret comes back before its claim. Each costs one request, not more.
func TestAdoptReadsAMissingPublisherOnce(t *testing.T) {
	claim := xptest.Claim("o", xptest.UID("old"), xptest.PublishesTo("", "s"))
	log, _ := logtest.NewNullLogger()
	c := &countingCluster{cluster: live()}
	secret := xptest.Secret("s", xptest.ControlledBy(claim))
	if _, err := NewAdopt(Crossplane(), c, nil, log, Shared{}).Execute(inputFor(secret, restoreOf(nil))); err != nil || c.reads != 1 {
		t.Errorf("the owner was read %d times, error %v", c.reads, err)
	}
}

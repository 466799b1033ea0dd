package restoreitem

import (
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero looks for a requested item by a path made of its name, and creates what is there in the
// requested namespace.
func TestOrderRequestsNoPaths(t *testing.T) {
	const elsewhere = "../team-b/password"
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: elsewhere, UID: "u", Controller: ptr.To(true)}
	target := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "resourceRef": map[string]any{"name": name}}
	}
	secret := xptest.With(xptest.Secret("s"), func(u *unstructured.Unstructured) { u.SetName(elsewhere) })
	cases := map[string]struct {
		item    *unstructured.Unstructured
		restore velerov1.RestoreSpec
	}{
		"Owner": {item: xptest.NamespacedMR("b", xptest.OwnedBy(owner), xptest.Labelled(xp.LabelComposite, "x"))},
		"Used":  {item: xptest.Object(xp.GroupProtection+"/v1beta1", "Usage", xptest.Namespace, "u", xptest.Field(target(elsewhere), "spec", "of"))},
		"User": {
			item: xptest.Object(xp.GroupProtection+"/v1beta1", "Usage", xptest.Namespace, "u", xptest.Field(target("mine"), "spec", "of"),
				xptest.Field(target(elsewhere), "spec", "by")),
		},
		"Composed": {
			item:    xptest.XRV2("x", xptest.Refs(secret)),
			restore: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
		},
		"XR": {item: xptest.Claim("o", xptest.Field(map[string]any{"apiVersion": xptest.LegacyVersion, "kind": xptest.LegacyKind, "name": "../x"}, "spec", "resourceRef"))},
		"Revision": {
			item: xptest.XRV2("x", xptest.Field(map[string]any{"name": "../../secrets/namespaces/team-b/password"}, "spec", "crossplane", "compositionRevisionRef")),
		},
		"Composition": {item: xptest.XRV2("x", xptest.Field(map[string]any{"name": ".."}, "spec", "crossplane", "compositionRef"))},
		"Tree":        {item: xptest.Claim("o", xptest.RestoreFirst("secrets/../password", "secrets/team-a/.."))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(tc.item, &velerov1.Restore{Spec: tc.restore}))
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range out.AdditionalItems {
				if !xp.IsValidName(i.Namespace, i.Name) {
					t.Errorf("%s asks for %s", xp.String(tc.item), i)
				}
			}
			named := false
			for _, e := range hook.AllEntries() {
				named = named || strings.Contains(e.Message, xp.String(tc.item)) && strings.Contains(e.Message, "which no object can have as its name")
			}
			if !named {
				t.Errorf("the plugin must name the refused list; got %v", hook.AllEntries())
			}
		})
	}
}

// An XR with unreadable references is in the backup as it was. Without its references, it is
// unknown when it may be reconciled.
func TestUnreadableRefsAreNotRestored(t *testing.T) {
	young := xptest.Without("metadata", "finalizers")
	xrs := map[string]*unstructured.Unstructured{
		"Legacy": xptest.XR("x"), "Young": xptest.XR("x", young), "Modern": xptest.XRV2("m"), "YoungModern": xptest.XRV2("m", young),
		"Composed": xptest.XR("x", xptest.ControlledBy(xptest.XR("parent"))),
	}
	for name, xr := range xrs {
		path := []string{"spec", "resourceRefs"}
		if xr.GetKind() == xptest.ModernKind {
			path = []string{"spec", "crossplane", "resourceRefs"}
		}
		for form, refs := range map[string]any{
			"Number": int64(7), "Object": map[string]any{}, "Entries": []any{int64(1)}, "Nameless": []any{map[string]any{"name": "b"}},
			"Typed": []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": int64(1)}},
		} {
			t.Run(name+form, func(t *testing.T) {
				item := xptest.With(xr, xptest.Field(refs, path...))
				named := func(err error) bool {
					return err != nil && strings.Contains(err.Error(), "cannot read the resourceRef") || err != nil && strings.Contains(err.Error(), "cannot read resourceRef ")
				}
				for _, settings := range []map[string]string{nil, {"hold": "none"}, {"hold": "all"}} {
					c := live()
					c.config = settings
					if got := adopt(t, c, item, restoreOf(nil)); !named(got.err) || !strings.Contains(got.err.Error(), xp.String(item)) || got.object != nil {
						t.Errorf("the settings %v give %v; got error %v, want one that names the item", settings, got.object, got.err)
					}
				}
				log, _ := logtest.NewNullLogger()
				for _, spec := range []velerov1.RestoreSpec{{}, {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}} {
					_, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(item, &velerov1.Restore{Spec: spec}))
					if err != nil && (!named(err) || !strings.Contains(err.Error(), xp.String(item))) {
						t.Errorf("got error %v, want none or one that names it", err)
					}
				}
			})
		}
	}
}

// This plugin must not write what it can't read: the rest of the field would be lost.
func TestAdoptRefusesWhatIsOfTheWrongType(t *testing.T) {
	cases := map[string]struct {
		item *unstructured.Unstructured
		want string
	}{
		"Annotations":     {item: xptest.XR("x", xptest.JSON(`{"metadata":{"annotations":{"crossplane.io/external-name":7}}}`)), want: "its annotations are not all strings"},
		"AnnotationsList": {item: xptest.Claim("o", xptest.JSON(`{"metadata":{"annotations":[]}}`)), want: "its annotations are not all strings"},
		"Labels":          {item: xptest.MR("b", xptest.JSON(`{"metadata":{"labels":{"a":{}}}}`)), want: "its labels are not all strings"},
		"Finalizers": {
			item: xptest.XRV2("m", xptest.JSON(`{"metadata":{"finalizers":"composite.apiextensions.crossplane.io"}}`)), want: "its finalizers are not a list of strings",
		},
		"Owners":   {item: xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":[{},7]}}`)), want: "its ownerReferences are not a list of objects"},
		"OwnerMap": {item: xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":{}}}`)), want: "its ownerReferences are not a list of objects"},
		"Refs":     {item: xptest.XRV2("m", xptest.JSON(`{"spec":{"crossplane":{"resourceRefs":"x"}}}`)), want: "cannot read the resourceRefs"},
		"Policy":   {item: xptest.XR("x", xptest.JSON(`{"spec":{"compositionUpdatePolicy":7}}`)), want: "cannot set the composition update policy"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := adopt(t, live(), tc.item, restoreOf(nil))
			if got.err == nil || !strings.Contains(got.err.Error(), tc.want) || !strings.Contains(got.err.Error(), xp.String(tc.item)) {
				t.Errorf("got error %v, want one that names %s with %q", got.err, xp.String(tc.item), tc.want)
			}
		})
	}
	thing := xptest.Object("example.org/v1", "Thing", xptest.Namespace, "t", xptest.JSON(`{"metadata":{"annotations":{"a":7}}}`))
	if got := adopt(t, live(), thing, restoreOf(nil)); got.err != nil || got.object != nil {
		t.Errorf("only the API server refuses objects outside Crossplane; got %v, %v", got.object, got.err)
	}
}

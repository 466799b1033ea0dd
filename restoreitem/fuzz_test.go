package restoreitem

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// hostileSeeds adds hostile changes to each object of the zoo.
func hostileSeeds(f *testing.F) {
	f.Helper()
	xptest.Seeds(func(animal uint8, patch []byte) { f.Add(animal, patch, animal) })
}

// hostileRestore returns one of several Restores.
func hostileRestore(n uint8) *velerov1.Restore {
	r := restoreOf(nil)
	switch n % 5 {
	case 0:
	case 1:
		r.Spec.IncludedNamespaces = []string{xptest.Namespace}
		if n/5%2 == 1 {
			r.Spec.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}
	case 2:
		r.Spec.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	case 3:
		r.Spec.NamespaceMapping = map[string]string{xptest.Namespace: "copy"}
		r.Annotations = map[string]string{setting.Prefix + setting.NameClone: string([]setting.Clone{setting.Hold, setting.Observe, setting.New}[n/5%3])}
	default:
		r.Annotations = map[string]string{
			setting.Prefix + setting.NameObserve: "true", setting.Prefix + setting.NameFromID: xptest.ManagedKind + ".cloud.example.org",
		}
	}

	return r
}

// FuzzOrder runs Order on any object, as it is and with a list that a user with access to the
// bucket wrote.
func FuzzOrder(f *testing.F) {
	hostileSeeds(f)
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte, restore uint8) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		checkOrder(t, u, hostileRestore(restore))
		checkOrder(t, xptest.With(u, xptest.RestoreFirst("clusterrolebindings.rbac.authorization.k8s.io//admin", "secrets/team-b/password", "secrets/team-a/s",
			"localbuckets.cloud.example.org/team-b/b", "localbuckets.cloud.example.org/team-a/b", "buckets.cloud.example.org//b", "namespaces//kube-public",
			"compositions.apiextensions.crossplane.io//another", "compositions.apiextensions.crossplane.io//"+xptest.CompositionName, "providers.pkg.crossplane.io//p",
			"providerconfigs.cloud.example.org//default", "secrets/../password")), hostileRestore(restore))
	})
}

func checkOrder(t *testing.T, u *unstructured.Unstructured, restore *velerov1.Restore) {
	t.Helper()
	before := u.DeepCopy()
	log, _ := logtest.NewNullLogger()
	out, err := NewOrder(Crossplane(), kindsFn(served), log, Shared{}).Execute(inputFor(u, restore))
	if diff := cmp.Diff(before, u); diff != "" {
		t.Errorf("the backed-up item was changed: %s", diff)
	}
	if err != nil {
		checkNames(t, err, u)

		return
	}
	if out.UpdatedItem != nil {
		checkKept(t, u, &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}, false)
	}
	_, listed, _ := xp.RestoreFirst(u)
	narrow := len(restore.Spec.IncludedNamespaces) > 0
	for _, i := range out.AdditionalItems {
		own := u.GetNamespace()
		outside := own != "" && i.Namespace != "" && i.Namespace != own
		switch {
		case !xp.IsValidName(i.Namespace, i.Name):
			t.Errorf("%s asks for %s", xp.String(u), i)
		case narrow && i.Namespace == "" && !xp.IsCustomGroup(i.Group):
			t.Errorf("in a restore of namespaces %s asks for %s, which this plugin does not check", xp.String(u), i)
		case narrow && i.Namespace != "" && i.Namespace != xptest.Namespace:
			t.Errorf("in a restore of namespaces %s asks for %s, which is in none of them", xp.String(u), i)
		case outside && (!listed || xp.IsManaged(u) && !isXR(u) && !isClaim(u) || !isInstance(u)):
			t.Errorf("%s asks for %s in another namespace", xp.String(u), i)
		}
	}
}

// FuzzAdopt restores any object, with and without what belongs to it.
func FuzzAdopt(f *testing.F) {
	hostileSeeds(f)
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte, restore uint8) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		c := live()
		uids := map[types.UID]bool{}
		if restore%2 == 0 {
			for _, o := range xptest.HostileObjects() {
				o.SetUID("live " + o.GetUID())
				uids[o.GetUID()] = true
				c.objects = append(c.objects, o)
			}
		}
		r := hostileRestore(restore / 2)
		got := adopt(t, c, u, r)
		if got.err != nil {
			checkNames(t, got.err, u)

			return
		}
		if got.object == nil {
			return
		}
		if n, ok, _ := unstructured.NestedInt64(u.Object, "spec", "revision"); ok && xp.IsRevision(u) {
			got.object = xptest.With(got.object, xptest.Field(n, "spec", "revision"))
		}
		checkKept(t, u, got.object, len(r.Spec.NamespaceMapping) > 0)
		for _, o := range got.object.GetOwnerReferences() {
			if !uids[o.UID] {
				t.Errorf("%s comes back with an owner that is not live: %v", xp.String(u), o)
			}
		}
		if h, err := hold.Of(got.object); err == nil && h != nil && h.Restore == "velero/monday" && h.Since == "2026-01-02T03:04:05Z" && got.OperationID != "" &&
			!xp.IsPaused(got.object) {
			t.Errorf("%s is held and not paused: %v", xp.String(u), got.object)
		}
	})
}

// FuzzAdoptForged restores the zoo beside one live object that a tenant has changed in any way,
// with a mark that the plugin did not sign. The mark must have no effect.
func FuzzAdoptForged(f *testing.F) {
	hostileSeeds(f)
	for n := range xptest.HostileObjects() {
		for _, more := range []string{``, `,"paused":"true","secret":true`, `,"releaseByHand":true`, `,"quarantine":true`, `,"cloneOf":"Bucket b"`} {
			mark, err := json.Marshal(`{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"forged","status":["a"]` + more + `,"mac":"forged"}`)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(n), []byte(`{"metadata":{"annotations":{"crossplane.io/paused":"true","`+hold.Annotation+`":`+string(mark)+`}}}`), uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte, restore uint8) {
		forged, ok := xptest.Patched(animal, patch)
		if !ok || xp.CheckMetadata(forged) != nil {
			return // No API server has such an object.
		}
		was := xptest.HostileObjects()[int(animal)%len(xptest.HostileObjects())]
		forged.SetGroupVersionKind(was.GroupVersionKind())
		forged.SetNamespace(was.GetNamespace())
		forged.SetName(was.GetName())
		unmarked := xptest.With(forged, xptest.Without("metadata", "annotations", hold.Annotation))
		for _, item := range xptest.HostileObjects() {
			want, wrote := adoptBeside(t, unmarked, item, hostileRestore(restore))
			got, written := adoptBeside(t, forged, item, hostileRestore(restore))
			if diff := cmp.Diff(want.RestoreItemActionExecuteOutput, got.RestoreItemActionExecuteOutput); diff != "" {
				t.Errorf("%s comes back differently beside %s with a forged mark\n-without, +with it:\n%s", xp.String(item), xp.String(forged), diff)
			}
			if (want.err == nil) != (got.err == nil) {
				t.Errorf("%s: without a forged mark on %s the error is %v, with it %v", xp.String(item), xp.String(forged), want.err, got.err)
			}
			if diff := cmp.Diff(wrote, written); diff != "" {
				t.Errorf("the status of %s differs beside a forged mark\n-without, +with it:\n%s", xp.String(item), diff)
			}
		}
	})
}

// adoptBeside restores an item whose owners are live, beside the given live object. It also returns
// the status that was written.
func adoptBeside(t *testing.T, one, item *unstructured.Unstructured, r *velerov1.Restore) (adopted, map[string]map[string]any) {
	t.Helper()
	c := live()
	c.key = hold.Key(strings.Repeat("k", hold.KeySize))
	for _, o := range xptest.HostileObjects() {
		if xp.RefTo(o).ID() == xp.RefTo(one).ID() {
			o = one
		} else if xp.RefTo(o).ID() == xp.RefTo(item).ID() {
			continue
		}
		c.objects = append(c.objects, o)
	}

	return adopt(t, c, item, r), c.returned
}

// checkNames fails if an error does not name its object.
func checkNames(t *testing.T, err error, u *unstructured.Unstructured) {
	t.Helper()
	if !strings.Contains(err.Error(), u.GetKind()) || !strings.Contains(err.Error(), u.GetName()) || !strings.Contains(err.Error(), u.GetNamespace()) {
		t.Errorf("the error does not name %s: %v", xp.String(u), err)
	}
}

// checkKept fails if a restored object has lost or gained anything that is not this plugin's.
func checkKept(t *testing.T, original, u *unstructured.Unstructured, mapped bool) {
	t.Helper()
	own := func(u *unstructured.Unstructured) map[string]any {
		u = stripped(u)
		for _, path := range [][]string{
			{"spec", "compositionUpdatePolicy"},
			{"spec", "crossplane", "compositionUpdatePolicy"},
			{"spec", "managementPolicies"},
			{"metadata", "managedFields"},
			{"metadata", xp.FieldRestoreFirst},
			{"metadata", xp.FieldUnresolvedRefs},
			{"metadata", xp.FieldConditions},
		} {
			unstructured.RemoveNestedField(u.Object, path...)
		}
		for _, name := range []string{
			hold.Annotation, hold.Annotation, xp.AnnotationPaused, xp.AnnotationRestoreStatus, xp.AnnotationExternalName,
			xp.AnnotationReconcileRequested, "velero.crossplane.x-k8s.io/reconcile-requested-at", xp.AnnotationMustInclude, xp.AnnotationMustRestore,
			xp.AnnotationDeletionAttempt,
		} {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
		}
		if mapped { // A copy can compose its own resources, and be deleted.
			for _, path := range [][]string{
				{"spec", "resourceRefs"},
				{"spec", "crossplane", "resourceRefs"},
				{"spec", "resourceRef"},
				{"metadata", "finalizers"},
				{"metadata", "labels", xp.LabelClaimNamespace},
			} {
				unstructured.RemoveNestedField(u.Object, path...)
			}
			for _, name := range []string{xp.AnnotationCreatePending, xp.AnnotationCreateSucceeded, xp.AnnotationCreateFailed} {
				unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
			}
		}
		for _, path := range [][]string{{"metadata", "annotations"}, {"metadata", "labels"}, {"spec", "crossplane"}, {"spec"}} {
			if m, ok, _ := unstructured.NestedMap(u.Object, path...); ok && len(m) == 0 {
				unstructured.RemoveNestedField(u.Object, path...)
			}
		}

		return u.Object
	}
	want, got := own(original), own(u)
	if mapped {
		xp.MapNamespaces(&unstructured.Unstructured{Object: want}, map[string]string{xptest.Namespace: "copy"})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s must come back unchanged\n-want, +got:\n%s", xp.String(original), diff)
	}
}

// Velero looks for a requested item by a path made of its name, and creates what is there in the
// requested namespace.
func TestOrderRequestsNoPaths(t *testing.T) {
	const elsewhere = "../team-b/password"
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: elsewhere, UID: "u", Controller: ptr.To(true)}
	target := func(name string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "resourceRef": map[string]any{"name": name}}
	}
	secret := xptest.With(xptest.Secret("s"), func(u *unstructured.Unstructured) { u.SetName(elsewhere) })
	xr := map[string]any{"apiVersion": xptest.LegacyVersion, "kind": xptest.LegacyKind, "name": "../x"}
	malformed := warned(reason.Malformed)
	runOrders(t, map[string]orderCase{
		"Owner": {item: xptest.NamespacedMR("b", xptest.OwnedBy(owner), xptest.Labelled(xp.LabelComposite, "x")), want: malformed},
		"User": {
			item: xptest.Object(xp.GroupProtection+"/v1beta1", "Usage", xptest.Namespace, "u", xptest.Field(target("mine"), "spec", "of"),
				xptest.Field(target(elsewhere), "spec", "by")),
			want: ordering{First: []velero.ResourceIdentifier{id("", "secrets", xptest.Namespace, "mine")}, Warned: malformed.Warned},
		},
		"Composed": {item: xptest.XRV2("x", xptest.RestoreFirst(), xptest.Refs(secret)), spec: velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{}}, want: malformed},
		"XR":       {item: xptest.Claim("o", xptest.Field(xr, "spec", "resourceRef")), want: malformed},
		"Composition": {
			item: xptest.XRV2("x", xptest.NeverComposed(), xptest.Field(map[string]any{"name": ".."}, "spec", "crossplane", "compositionRef")),
			want: ordering{First: []velero.ResourceIdentifier{id(xp.GroupAPIExtensions, "compositeresourcedefinitions", "", "orders.example.org")}, Warned: malformed.Warned},
		},
		"Tree": {item: xptest.Claim("o", xptest.RestoreFirst("secrets/../password", "secrets/team-a/..")), want: warned(reason.Malformed, reason.Malformed)},
	})
}

// An XR with unreadable references is in the backup as it was. Without its references, it is
// unknown when it may be reconciled.
func TestUnreadableRefsAreNotRestored(t *testing.T) {
	young := xptest.Without("metadata", "finalizers")
	for name, xr := range map[string]*unstructured.Unstructured{
		"Legacy": xptest.XR("x"), "Young": xptest.XR("x", young), "Modern": xptest.XRV2("m"), "YoungModern": xptest.XRV2("m", young),
		"Composed": xptest.XR("x", xptest.ControlledBy(xptest.XR("parent"))),
	} {
		path := []string{"spec", "resourceRefs"}
		if xr.GetKind() == xptest.ModernKind {
			path = []string{"spec", "crossplane", "resourceRefs"}
		}
		for _, refs := range []any{int64(7), map[string]any{}, []any{int64(1)}, []any{map[string]any{"name": "b"}}} {
			item := xptest.With(xr, xptest.Field(refs, path...))
			for _, settings := range []map[string]string{nil, {"hold": "none"}, {"hold": "all"}} {
				got := adopt(t, &cluster{config: settings}, item, restoreOf(nil))
				if got.object != nil || got.err == nil || !strings.Contains(got.err.Error(), xp.String(item)) || !strings.Contains(got.err.Error(), "cannot read") {
					t.Errorf("%s: the settings %v give %v; got error %v, want one that names the item", name, settings, got.object, got.err)
				}
			}
		}
	}
}

// This plugin must not write what it can't read: the rest of the field would be lost.
func TestAdoptRefusesWhatIsOfTheWrongType(t *testing.T) {
	for name, tc := range map[string]struct {
		item *unstructured.Unstructured
		want string
	}{
		"Annotations": {item: xptest.XR("x", xptest.JSON(`{"metadata":{"annotations":{"crossplane.io/external-name":7}}}`)), want: "its annotations are not all strings"},
		"Owners":      {item: xptest.MR("b", xptest.JSON(`{"metadata":{"ownerReferences":[{},7]}}`)), want: "its ownerReferences are not a list of objects"},
		"Policy":      {item: xptest.XR("x", xptest.JSON(`{"spec":{"compositionUpdatePolicy":7}}`)), want: "cannot set the composition update policy"},
	} {
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

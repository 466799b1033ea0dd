// Package writes proves what internal/cluster and internal/adopter write, against a real API server
// without controllers.
package writes

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const restore = "velero/monday"

// An api is an API server with the kinds of package xptest. The test is Velero, Crossplane and the
// providers.
type api struct {
	*stack.Cluster

	key hold.Key
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWrites(t *testing.T) {
	options := stack.Options{Name: "writes", ControlPlane: true}
	set, err := build.Ensure(t.Context(), os.Stderr, stack.Programs(options)...)
	must(t, err)
	host, err := stack.NewHost(t.Context(), set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	c, err := stack.NewCluster(t.Context(), host, options)
	must(t, err)
	a := &api{Cluster: c}
	must(t, c.ApplyObjects(t.Context(), crd("xorders", xptest.XR("x")), crd("orderclaims", xptest.Claim("o")), crd("buckets", xptest.MR("b")),
		crd("orders", xptest.XRV2("x")), crd("compositionrevisions", xptest.Revision("r", xptest.XR("x")))))
	for _, name := range []string{"velero", xptest.Namespace} {
		a.create(t, xptest.Object("v1", "Namespace", "", name), "kubectl")
	}
	a.key, err = a.connect(t).MarkKey(t.Context(), "velero")
	must(t, err)
	if again, err := a.connect(t).ReadMarkKey(t.Context(), "velero"); err != nil || string(again) != string(a.key) {
		t.Errorf("the next process must read the same key: %v", err)
	}
	a.restore(t, xptest.Revision(xptest.RevisionName, xptest.XR("x")), false)
	for name, test := range map[string]func(*testing.T, *api){
		"Adopt": testAdopt, "Unnamed": testUnnamed, "GiveUp": testGiveUp, "Conflict": testConflict, "TakeOver": testTakeOver, "ReturnManagers": testReturnManagers, "Create": testCreate,
	} {
		t.Run(name, func(t *testing.T) { test(t, a) })
	}
}

// crd serves the kind of an object with any fields, and with Crossplane's default of the update
// policy.
func crd(plural string, u *unstructured.Unstructured) *unstructured.Unstructured {
	gvk, scope, policy := u.GroupVersionKind(), "Cluster", map[string]any{"type": "string"}
	if u.GetNamespace() != "" {
		scope = "Namespaced"
	}
	if xp.IsComposite(u) || xp.IsClaim(u) {
		policy["default"] = "Automatic"
	}
	anything := func(of map[string]any) map[string]any {
		return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": of}
	}
	spec := anything(map[string]any{"compositionUpdatePolicy": policy})
	if len(xp.Instance{Unstructured: u}.UpdatePolicyPath()) > 2 {
		spec = anything(map[string]any{"crossplane": spec})
	}
	schema := anything(map[string]any{"spec": spec, "status": anything(nil)})
	schema["required"] = []any{"spec"}

	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + gvk.Group},
		"spec": map[string]any{
			"group": gvk.Group, "scope": scope, "names": map[string]any{"kind": gvk.Kind, "plural": plural}, "versions": []any{map[string]any{
				"name": gvk.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}}, "schema": map[string]any{"openAPIV3Schema": schema},
			}},
		},
	}}
}

// connect returns a Cluster with its own caches, as a new process has.
func (a *api) connect(t *testing.T) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Connect(a.Kubeconfig(), "")
	must(t, err)

	return c
}

func (a *api) adopter(t *testing.T) *adopter.Adopter {
	t.Helper()
	log := logrus.New()
	log.SetOutput(t.Output())

	return adopter.New(a.connect(t), log)
}

func (a *api) objects(t *testing.T, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	r, err := a.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
	must(t, err)

	return r
}

func (a *api) get(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	now, err := a.objects(t, u).Get(t.Context(), u.GetName(), metav1.GetOptions{})
	must(t, err)

	return now
}

// create creates an object, as a manager does, with its status.
func (a *api) create(t *testing.T, u *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	t.Helper()
	own := xptest.With(u, xptest.Without("metadata", "uid"), xptest.Without("metadata", "managedFields"))
	now, err := a.objects(t, u).Create(t.Context(), own, metav1.CreateOptions{FieldManager: manager})
	if err == nil && u.Object["status"] != nil {
		now.Object["status"] = own.Object["status"]
		now, err = a.objects(t, u).UpdateStatus(t.Context(), now, metav1.UpdateOptions{FieldManager: "controller"})
	}
	must(t, err)

	return now
}

// restore creates an object as Velero does with this plugin: held, and then with the managers that
// it had in the backup, unless Velero is stopped before.
func (a *api) restore(t *testing.T, own *unstructured.Unstructured, stopped bool) *unstructured.Unstructured {
	t.Helper()
	u := xptest.With(own, xptest.Labelled(xp.LabelRestore, "monday"))
	if xp.IsComposite(u) || xp.IsClaim(u) {
		_, err := hold.Put(u, hold.Hold{Restore: restore, Since: time.Now().UTC().Format(time.RFC3339)})
		must(t, err)
		must(t, a.key.Sign(u, u.GetNamespace()))
		hold.Manage(u, own, time.Now())
	}
	now := a.create(t, u, "velero-server")
	if fields := u.GetManagedFields(); len(fields) > 0 && !stopped {
		now.SetManagedFields(fields)
		var err error
		now, err = a.objects(t, u).Update(t.Context(), now, metav1.UpdateOptions{FieldManager: "velero-server"})
		must(t, err)
	}

	return now
}

// reconcile is a Crossplane that reports what it sees of an object until the test ends. With
// composes, it was composing other resources when the first pause came.
func (a *api) reconcile(t *testing.T, of *unstructured.Unstructured, composes bool) {
	t.Helper()
	r, by := a.objects(t, of), metav1.UpdateOptions{FieldManager: "crossplane"}
	go func() {
		for began := false; t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // Crossplane polls, too.
			now, err := r.Get(t.Context(), of.GetName(), metav1.GetOptions{})
			if err != nil || !began && !xp.IsPaused(now) {
				continue
			}
			if began = true; composes {
				_, err := r.Update(t.Context(), xptest.With(now, xptest.Refs(xptest.MR("anew"))), by)
				composes = err != nil

				continue
			}
			condition := xptest.Reconciled()
			if xp.IsPaused(now) {
				condition = xptest.SeenPaused()
			}
			_, _ = r.UpdateStatus(t.Context(), xptest.With(now, condition), by) // If it has changed, the next one succeeds.
		}
	}()
}

// managed gives an object the managers of a backup.
func managed(version string) xptest.Option {
	const manager = `"apiVersion":"VERSION","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":`

	return xptest.JSON(`{"metadata":{"managedFields":[` + strings.ReplaceAll(`{"manager":"kubectl","operation":"Update",`+manager+`{"f:compositionRef":{"f:name":{}},"f:forProvider":{}}}},`+
		`{"manager":"crossplane","operation":"Apply",`+manager+`{"f:resourceRefs":{},"f:providerConfigRef":{}}}}`, "VERSION", version) + `]}}`)
}

// managers returns who manages an object's fields, without those of its status.
func managers(u *unstructured.Unstructured) (names []string) {
	for _, m := range u.GetManagedFields() {
		if m.Subresource == "" {
			names = append(names, m.Manager)
		}
	}
	slices.Sort(names)

	return names
}

func manages(u *unstructured.Unstructured, manager, field string) bool {
	return slices.ContainsFunc(u.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == manager && strings.Contains(string(m.FieldsV1.Raw), field)
	})
}

// events returns the reasons of the Events about a cluster-scoped object.
func (a *api) events(t *testing.T, of *unstructured.Unstructured) (reasons []string) {
	t.Helper()
	list, err := a.objects(t, xptest.Object("v1", "Event", metav1.NamespaceDefault, "")).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(of.GetUID())})
	must(t, err)
	for i := range list.Items {
		reason, _, _ := unstructured.NestedString(list.Items[i].Object, "reason")
		reasons = append(reasons, reason)
	}

	return reasons
}

// adopt adopts an XR, and returns its last Plan and the XR.
func (a *api) adopt(t *testing.T, own *unstructured.Unstructured) (plan adoption.Plan, now *unstructured.Unstructured) {
	t.Helper()
	adopter := a.adopter(t)
	for n := 0; n < 20 && !plan.Done; n++ {
		plans, err := adopter.Adopt(t.Context(), a.key, adoption.Requester{Restore: restore}, xp.LabelRestore+"=monday", xp.RefTo(own))
		must(t, err)
		plan = plans[xp.RefTo(own).ID()]
	}

	return plan, a.get(t, own)
}

// A hold is taken off such that each field has the value and the managers that it had in the backup,
// whatever the API server defaults. Events report it.
func testAdopt(t *testing.T, a *api) {
	paused := []xptest.Option{xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy(xp.UpdateManual)}
	for name, o := range map[string][]xptest.Option{"defaults": {}, "unmanaged": nil, "paused": paused} {
		// Crossplane copies a claim's annotations and policy to its XR.
		claim, bucket := xptest.Claim("of-"+name, append(o, xptest.OfXR(xptest.XR(name)))...), xptest.MR("of-"+name, xptest.Reconciled())
		own := xptest.XR(name, append(o, xptest.ClaimedBy(claim), xptest.Refs(bucket))...)
		if o != nil {
			managed(xptest.LegacyVersion)(own)
		}
		xr := a.restore(t, own, false)
		if !xp.IsPaused(xr) || !xp.HasAnnotation(xr, hold.Annotation) || manages(xr, hold.FieldManager, "hold") != (o != nil) {
			t.Fatalf("%s: the XR must be held: %v", name, xr.Object)
		}
		a.restore(t, claim, false)
		a.restore(t, xptest.With(bucket, xptest.ControlledBy(xr)), false)
		a.reconcile(t, own, false)
		a.reconcile(t, claim, false)
		plan, now := a.adopt(t, own)
		policy, _ := xp.Instance{Unstructured: now}.UpdatePolicy()
		wants, ok := xp.Instance{Unstructured: own}.UpdatePolicy()
		if !ok {
			wants = "Automatic" // The API server's default.
		}
		if !plan.Done || xp.HasAnnotation(now, hold.Annotation) || xp.Annotation(now, xp.AnnotationPaused) != xp.Annotation(own, xp.AnnotationPaused) || policy != wants {
			t.Errorf("%s: the settings must be those of the backup; got %+v, %v", name, plan, now.Object)
		}
		if got := managers(now); slices.Contains(got, hold.FieldManager) || o != nil && !slices.Equal(got, []string{"crossplane", "kubectl"}) {
			t.Errorf("%s: the managers must be those of the backup; got %v", name, got)
		}
		if told := a.events(t, xr); !slices.Contains(told, adoption.EventHeld) || !slices.Contains(told, adoption.EventReleased) || xp.HasAnnotation(a.get(t, claim), hold.Annotation) {
			t.Errorf("%s: the claim must be released too; the Events are %s", name, told)
		}
	}
}

// Fields without a manager stay beside those that the hold gives up.
func testUnnamed(t *testing.T, a *api) {
	own := xptest.XRV2("unnamed", xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Policy("Automatic"), xptest.Field(map[string]any{"region": "eu"}, "spec", "forProvider"),
		managed(xptest.ModernVersion))
	a.restore(t, own, false)
	plan, now := a.adopt(t, own)
	if want := own.Object["spec"]; !plan.Done || xp.HasAnnotation(now, hold.Annotation) || !reflect.DeepEqual(now.Object["spec"], want) {
		t.Errorf("got %+v, %v; want the spec %v", plan, now.Object, want)
	}
}

// What is given up stays held, with the reason in a mark that is still genuine.
func testGiveUp(t *testing.T, a *api) {
	xr := a.restore(t, xptest.XR("stopped", managed(xptest.LegacyVersion)), false)
	must(t, a.adopter(t).GiveUp(t.Context(), a.key, xp.RefTo(xr), strings.Repeat("ä", 600)))
	now := a.get(t, xr)
	h, err := a.key.HoldOf(now)
	if told := a.events(t, now); err != nil || h == nil || !strings.HasSuffix(h.Reason, "[RestoreStopped]") || !xp.IsPaused(now) || !slices.Equal(told, []string{adoption.EventStopped}) {
		t.Errorf("got %+v, %v, and the Events %v", h, err, told)
	}
}

// What another writer has changed since it was observed is not changed.
func testConflict(t *testing.T, a *api) {
	seen := a.create(t, xptest.MR("free", xptest.Reconciled()), "kubectl")
	now, err := a.objects(t, seen).Update(t.Context(), xptest.With(seen, xptest.Labelled("changed", "")), metav1.UpdateOptions{})
	must(t, err)
	if _, err := a.connect(t).Patch(t.Context(), seen, hold.RequestReconcile(seen, time.Now())); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	must(t, a.adopter(t).HoldLive(t.Context(), a.key, []*unstructured.Unstructured{seen}))
	if after := a.get(t, seen); after.GetResourceVersion() != now.GetResourceVersion() {
		t.Errorf("an object that has changed must stay as it is: %v", after.Object)
	}
	must(t, a.adopter(t).HoldLive(t.Context(), a.key, []*unstructured.Unstructured{now}))
	after := a.get(t, seen)
	if h, err := a.key.HoldOf(after); err != nil || h == nil || !xp.IsPaused(after) || !manages(after, hold.FieldManager, "f:"+xp.AnnotationPaused) {
		t.Errorf("it must be held: %+v, %v: %v", h, err, after.Object)
	}
}

// A live XR that another writer created first gets what it composed in the backup, with the managers
// of these fields, and its status. One that Crossplane overtakes is let go.
func testTakeOver(t *testing.T, a *api) {
	for name, overtaken := range map[string]bool{"taken": false, "overtaken": true} {
		item := xptest.XR(name, xptest.Refs(xptest.MR("of-"+name)), managed(xptest.LegacyVersion))
		a.create(t, xptest.XR(name), "argocd-controller")
		a.reconcile(t, item, overtaken)
		c := adopter.NewTarget(a.connect(t))
		u, err := c.TakeOver(t.Context(), a.key, item, xp.RefTo(item), hold.Hold{Restore: restore, Status: []string{"address"}}, map[string]string{xp.LabelRestore: "monday"})
		must(t, err)
		must(t, c.ReturnStatus(t.Context(), a.key, xp.RefTo(item), map[string]any{"address": "10.0.0.1", "other": "x"}))
		now := a.get(t, item)
		h, err := a.key.HoldOf(now)
		refs, refsErr := xp.CompositeFrom(now).ResourceRefs()
		if err != nil || refsErr != nil || (u == nil) != overtaken || (h == nil) != overtaken || xp.IsPaused(now) == overtaken || len(refs) != 1 || (refs[0].Name == "anew") != overtaken {
			t.Errorf("%s: got %v, hold %+v, references %v, %v, %v", name, u, h, refs, err, refsErr)
		}
		status, _, _ := unstructured.NestedMap(now.Object, "status")
		if (status["address"] == nil) != overtaken || status["other"] != nil || manages(now, hold.FieldManager, "f:address") {
			t.Errorf("%s: the listed field must come back without a manager: %v, %v", name, status, now.GetManagedFields())
		}
		if !manages(now, "crossplane", "f:resourceRefs") || manages(now, hold.FieldManager, "f:resourceRefs") {
			t.Errorf("%s: the references must be Crossplane's: %v", name, now.GetManagedFields())
		}
	}
}

// The objects of a restore that stopped get the managers of the backup.
func testReturnManagers(t *testing.T, a *api) {
	item := xptest.MR("stray", managed(xptest.ManagedVersion))
	before := managers(a.restore(t, item, true))
	must(t, adopter.NewTarget(a.connect(t)).ReturnManagers(t.Context(), item, xp.RefTo(item)))
	if after := managers(a.get(t, item)); !slices.Equal(before, []string{"velero-server"}) || !slices.Equal(after, []string{"crossplane", "kubectl"}) {
		t.Errorf("got %v, and before %v", after, before)
	}
}

// The API server accepts Events about any name and with any message, and a dry run creates nothing.
func testCreate(t *testing.T, a *api) {
	u, c := xptest.MR(strings.Repeat("a", 63)+"."+strings.Repeat("b.", 90)+"c"), a.connect(t)
	must(t, c.Convert(t.Context(), u, ""))
	if _, err := a.objects(t, u).Get(t.Context(), u.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	must(t, c.Warn(t.Context(), a.create(t, u, "kubectl"), "Why", strings.Repeat("ä", 2000)+"\xff"))
	if told := a.events(t, a.get(t, u)); !slices.Equal(told, []string{"Why"}) {
		t.Errorf("the Events are %s", told)
	}
}

package adoption

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// victims are a tenant's held XR and MRs. Another tenant knows all their names and UIDs.
func victims() []*unstructured.Unstructured {
	const other = "team-b"
	bucket := xptest.NamespacedMR("b", xptest.In(other), xptest.PublishesTo("", "s"))
	xr := xptest.XRV2("x", xptest.In(other), xptest.Refs(bucket))
	bucket = held(xptest.With(bucket, xptest.ControlledBy(xr)))

	return []*unstructured.Unstructured{
		held(xptest.With(xr, xptest.SeenPaused())), bucket, xptest.Secret("s", xptest.In(other)),
		held(xptest.Claim("o", xptest.In(other), xptest.OfXR(xptest.XR("y")))),
	}
}

// forgeries are patches of every field that can direct a Plan to other objects: an XR's
// resourceRefs, its user's pause, its owner.
func forgeries() []string {
	var patches []string
	for _, of := range []string{
		`{"apiVersion":"v1","kind":"ResourceQuota","namespace":"team-a","name":"limits"}`, `{"apiVersion":"v1","kind":"Namespace","name":"team-b"}`,
		`{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","name":"b"}`, `{"apiVersion":"v1","kind":"Secret","namespace":"team-b","name":"s"}`,
		`{"apiVersion":"v1","kind":"ConfigMap","namespace":"team-a","name":"c"}`,
	} {
		mark, err := json.Marshal(`{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","paused":"true","pinned":true,"secret":true,"observes":true,"resourceRefs":[` + of + `]}`)
		if err != nil {
			panic(err) // It is a string.
		}
		metadata := `"metadata":{"labels":{"velero.io/restore-name":"monday","crossplane.io/composite":"m"},"annotations":{"crossplane.io/paused":"true","` +
			hold.Annotation + `":` + string(mark) + `},"finalizers":["composite.apiextensions.crossplane.io"]}`
		spec := `"resourceRefs":[` + of + `],"writeConnectionSecretToRef":{"namespace":"team-b","name":"s"},"resourceRef":` + of + `,"claimRef":` + of
		patches = append(patches, `{`+metadata+`}`, `{`+metadata+`,"spec":{`+spec+`}}`, `{`+metadata+`,"spec":{`+spec+`,"crossplane":{"resourceRefs":[`+of+`]}}}`)
	}
	// It is its own claim and XR.
	for _, kind := range []string{xptest.ClaimKind, "Order"} {
		ref := `{"apiVersion":"example.org/v1alpha1","kind":"` + kind + `","namespace":"team-a","name":"o"}`
		patches = append(patches, `{"metadata":{"finalizers":["composite.apiextensions.crossplane.io","finalizer.apiextensions.crossplane.io"]},"spec":{"resourceRef":`+
			ref+`,"claimRef":`+ref+`}}`)
	}

	return patches
}

// FuzzNext continues all adoptions, with one object in which a tenant has written anything. All
// marks are accepted, as if the tenant had kept a genuine one, and all objects count as restored.
func FuzzNext(f *testing.F) {
	xptest.Seeds(func(animal uint8, patch []byte) { f.Add(animal, patch) })
	f.Add(uint8(6), []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"example.org/v1","kind":"Order","name":"x","uid":"uid of Order team-b/x","controller":true}]}}`))
	for _, patch := range forgeries() {
		for animal := range xptest.HostileObjects() {
			f.Add(uint8(animal), []byte(patch))
		}
	}
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte) {
		u, ok := xptest.Patched(animal, patch)
		if !ok {
			return
		}
		// Only the API server writes these fields.
		was := xptest.HostileObjects()[int(animal)%len(xptest.HostileObjects())]
		u.SetUID(was.GetUID())
		u.SetName(was.GetName())
		u.SetNamespace(was.GetNamespace())
		u.SetResourceVersion("1")
		_, _ = WhyNotAdopted(u)
		objects := map[xp.ID]*unstructured.Unstructured{}
		for _, o := range append(append(xptest.HostileObjects(), victims()...), u) {
			objects[xp.RefTo(o).ID()] = o
		}
		renderAll(t, restored(slices.Collect(maps.Values(objects))...), xp.RefTo(u))
		for moved, passes := true, 0; moved && passes < 4; passes++ {
			moved = false
			w := restored(slices.Collect(maps.Values(objects))...)
			for _, r := range append(w.Subjects(), xp.RefTo(u)) {
				plan := Next(w, r)
				for _, c := range append(plan.Also, plan.Change) {
					if c.Patch == nil {
						continue
					}
					id := xp.RefTo(c.Target).ID()
					moved = true
					checkReach(t, w, r, u, c)
					objects[id] = xptest.Merge(objects[id], c.Patch)
				}
			}
		}
		for _, o := range victims() {
			if now := objects[xp.RefTo(o).ID()]; xp.IsClaim(o) && cmp.Diff(o, now) != "" {
				t.Errorf("the claim of another tenant was changed: %s", cmp.Diff(o, now))
			}
		}
		checkTakeOff(t, u)
	})
}

// renderAll calls every function that returns a message about r.
func renderAll(t *testing.T, w *Snapshot, r xp.Ref) {
	t.Helper()
	_ = w.Needs([]xp.Ref{r})
	plan := Next(w, r)
	plans := map[xp.ID]Plan{r.ID(): plan}
	for _, n := range append(HeldNotices(w, []xp.Ref{r}), Changes(w, plans, nil)...) {
		if n.Message == "" {
			t.Errorf("the notice about %s is empty", r)
		}
	}
	if h, err := hold.Of(w.Get(r)); (h != nil || err != nil) && plan.Done {
		t.Errorf("%s is held and counts as adopted: %+v", r, plan)
	}
	if f := AssessForce(w, r); f.Patch != nil && f.Target != w.Get(r) {
		t.Errorf("lifting the hold of %s by force changes %s", r, xp.String(f.Target))
	}
	_ = w.PlatformNeeds()
	_ = Leftovers([]*unstructured.Unstructured{w.Get(r)}, slices.Collect(maps.Values(w.objects)))
	for _, s := range plan.Pending {
		_ = Stuck(w.Get(s.Ref), Installation{})
	}
}

// checkReach fails if a tenant's object makes this plugin write an object that is not the tenant's,
// or fields that a Plan never changes.
func checkReach(t *testing.T, w *Snapshot, r xp.Ref, tenants *unstructured.Unstructured, c hold.Change) {
	t.Helper()
	subject := w.Get(r)
	if r.ID() == xp.RefTo(tenants).ID() && r.Namespace != "" && c.Target.GetNamespace() != r.Namespace && !xp.IsClaim(subject) {
		t.Errorf("the fields of %s make the plugin change %s: %v", r, xp.String(c.Target), c.Patch)
	}
	own := xp.Controls(subject, c.Target) || isComposed(subject, c.Target)
	if c.Target != subject && !own && !xp.IsClaim(subject) && !xp.IsClaim(c.Target) && !xp.IsConnectionSecret(c.Target) {
		t.Errorf("a plan for %s changes %s, which it does not control: %v", r, xp.String(c.Target), c.Patch)
	}
	for field := range c.Patch {
		if field != "metadata" && field != "spec" {
			t.Errorf("a plan for %s changes the %s of %s", r, field, xp.String(c.Target))
		}
	}
	spec, _ := c.Patch["spec"].(map[string]any)
	inner, _ := spec["crossplane"].(map[string]any)
	for _, fields := range []map[string]any{spec, inner} {
		for field := range fields {
			if field != "compositionUpdatePolicy" && field != "managementPolicies" && field != "crossplane" {
				t.Errorf("a plan for %s changes spec.%s of %s", r, field, xp.String(c.Target))
			}
		}
	}
	metadata, _ := c.Patch["metadata"].(map[string]any)
	for field := range metadata {
		if field != "resourceVersion" && field != "annotations" && (field != "ownerReferences" || !xp.IsConnectionSecret(c.Target) && !isComposed(subject, c.Target)) {
			t.Errorf("a plan for %s changes metadata.%s of %s", r, field, xp.String(c.Target))
		}
	}
	if metadata["resourceVersion"] != c.Target.GetResourceVersion() {
		t.Errorf("the patch of the plan for %s lacks the resourceVersion of %s", r, xp.String(c.Target))
	}
}

// isComposed reports whether an XR lists an object that has no controller and the label of the XR's
// tree. A tenant can't write that label on another tenant's object.
func isComposed(xr, u *unstructured.Unstructured) bool {
	if _, controlled := xp.Controller(u); controlled || u.GetLabels()[xp.LabelComposite] == "" {
		return false
	}
	refs, err := xp.CompositeFrom(xr).ResourceRefs()

	return err == nil && slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.ID() == xp.RefTo(u).ID() })
}

// checkTakeOff fails if putting a hold on and removing it changes the object.
func checkTakeOff(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if h, err := hold.Of(u); h != nil || err != nil || xp.CheckMetadata(u) != nil {
		return // An object with a mark has the settings in that.
	}
	on := u.DeepCopy()
	if _, err := hold.Put(on, hold.Hold{Restore: restoreName, Since: restoredAt, Observes: xp.IsManaged(u), Status: xp.NeededStatus(u)}); err != nil {
		return
	}
	if err := hold.RemoveBackedUpHold(on); err != nil {
		t.Errorf("cannot remove the hold of %s: %v", xp.String(u), err)
	}
	again := on.DeepCopy()
	if _, err := hold.Put(again, hold.Hold{Restore: restoreName, Since: restoredAt}); err != nil {
		t.Errorf("cannot put a second hold on %s: %v", xp.String(u), err)
	}
	for _, path := range [][]string{{"spec"}, {"status"}, {"metadata", "labels"}, {"metadata", "finalizers"}} {
		want, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
		got, _, _ := unstructured.NestedFieldNoCopy(on.Object, path...)
		if diff := cmp.Diff(want, got); diff != "" && u.GetAnnotations()[hold.Annotation] == "" {
			t.Errorf("%s has another %v after its hold was removed\n-want, +got:\n%s", xp.String(u), path, diff)
		}
	}
}

// Any text as a mark is read or refused, and Next does not panic.
func FuzzHoldOf(f *testing.F) {
	for _, s := range []string{
		`{"restore":"a/b","since":"","reason":"","paused":"true","pinned":true,"compositionUpdatePolicy":"Manual",` +
			`"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n"}]}`,
		`{"identity":"unknown","observes":true,"managementPolicies":["*"],"status":["a",""],"restoreStatus":"x","composedConditions":["?","","Ready,Synced"]}`,
		`{"resourceRefs":[{"apiVersion":"v1","kind":"K","name":"n"}],"composedConditions":[]}`, `{"status":[null],"composedConditions":[7]}`,
		`{}`, `null`, `[]`, `""`, ``, `{"resourceRefs":[null,{}]}`, `{"paused":1}`, `{"Pinned":true}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, marker string) {
		for _, u := range []*unstructured.Unstructured{
			xptest.XR("x", xptest.Annotated(hold.Annotation, marker), xptest.SeenPaused(), xptest.Annotated(xp.AnnotationPaused, "true")),
			xptest.XRV2("x", xptest.Annotated(hold.Annotation, marker), xptest.Reconciled()),
			xptest.Claim("o", xptest.Annotated(hold.Annotation, marker), xptest.OfXR(xptest.XR("x"))),
			xptest.MR("b", xptest.Annotated(hold.Annotation, marker), xptest.PublishesTo("infra", "s")),
		} {
			h, err := hold.Of(u)
			if (h == nil) == (err == nil) {
				t.Errorf("got hold %v and error %v", h, err)
			}
			if h != nil {
				b, _ := json.Marshal(h)
				again := &hold.Hold{}
				if err := json.Unmarshal(b, again); err != nil {
					t.Errorf("cannot read %s again: %v", b, err)
				}
			}
			w := NewSnapshot(hold.Unverified)
			w.Add(u)
			_ = w.Subjects()
			_ = w.Needs([]xp.Ref{xp.RefTo(u)})
			if plan := Next(w, xp.RefTo(u)); plan.Done {
				t.Errorf("a marked object must not count as adopted: %+v", plan)
			}
			if _, err := hold.Put(u, hold.Hold{Restore: restoreName, Since: restoredAt}); err == nil && !xp.IsPaused(u) {
				t.Error("a held object is not paused")
			}
		}
	})
}

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// Namespaces that the tests of inspect back up: gallery is healthy, and in shop each instance has a
// hazard of its own.
const (
	gallery = "gallery"
	shop    = "shop"
)

// The instances of the shop, named after their hazards.
const (
	healthy  = "website"
	unborn   = "search"  // Its database is being created.
	nameless = "billing" // Its network has lost its external-name.
	dangling = "mail"    // Its bucket is gone.
	used     = "stock"   // A Usage was left behind.
	forged   = "crm"     // It names an object of another instance.
	pruned   = "archive" // The revision that it runs on is gone.
)

// makeInspected fills the namespaces and backs each of them up.
func (s *suite) makeInspected(t *testing.T) *tenant {
	t.Helper()
	ctx := t.Context()
	well := s.few(t, s.source, drill.Platform{Namespace: gallery}, 2)
	h := &hazards{suite: s, platform: drill.Platform{Crossplane: s.version, Namespace: shop}}
	h.make(t)
	s.backUp(t, s.source, well)
	h.begin(t, unborn)
	must(t, s.source.Wait(ctx, patience, "a database that is being created", func(ctx context.Context) error {
		u, err := h.composed(ctx, unborn, "Database")
		if err != nil {
			return err
		}
		if u.GetAnnotations()[createPending] == "" {
			return errors.New("no create is pending of " + u.GetName())
		}
		xr, err := h.composite(ctx, unborn)
		if err == nil && !strings.HasSuffix(messageOf(xr, "Ready"), ": database") {
			err = errors.New("it waits for more: " + messageOf(xr, "Ready"))
		}

		return err
	}))
	backupWith(t, s.source, shop, "--include-namespaces", shop)
	must(t, s.cloud.Release(ctx))

	return well
}

// messageOf returns the message of a condition, or "".
func messageOf(u *unstructured.Unstructured, condition string) string {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, entry := range list {
		if m, _ := entry.(map[string]any); m["type"] == condition {
			return fmt.Sprint(m["message"])
		}
	}

	return ""
}

// hazards creates instances with one hazard each.
type hazards struct {
	*suite

	platform drill.Platform
}

// make creates all instances but the one that is being created during the backup.
func (h *hazards) make(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	must(t, h.platform.Compose(ctx, h.source))
	must(t, h.platform.Make(ctx, h.source, 0))
	names := []string{healthy, nameless, dangling, used, forged, pruned}
	for _, name := range names {
		h.begin(t, name)
	}
	for _, name := range names {
		must(t, h.source.Wait(ctx, patience, name+" to be Ready", func(ctx context.Context) error {
			u, err := get(ctx, h.source, h.instance(name).GroupVersionKind(), shop, name)
			if err != nil {
				return err
			}

			return stack.HasCondition(u, "Ready", "True")
		}))
	}
	h.prune(t)
	h.loseName(t)
	h.loseBucket(t)
	h.leaveUsage(t)
	h.forge(t)
}

// begin creates an instance as a user does.
func (h *hazards) begin(t *testing.T, name string) {
	t.Helper()
	if name == unborn {
		must(t, h.cloud.Fail(t.Context(), api.Fault{Op: api.Create, By: ", Database, " + h.scoped(name), Stall: true, Times: 1}))
	}
	must(t, h.source.ApplyObjects(t.Context(), h.instance(name)))
}

// scoped is the prefix of the names of an instance's composed resources.
func (h *hazards) scoped(name string) string {
	if h.version == stack.V1 {
		return name
	}

	return shop + "/" + name
}

func (h *hazards) instance(name string) *unstructured.Unstructured {
	choice := map[string]any{"name": "environments-" + shop}
	spec := map[string]any{"region": "eu-central", "cidr": "10.0.0.0/16", "crossplane": map[string]any{"compositionRef": choice}}
	if h.version == stack.V1 {
		delete(spec, "crossplane")
		spec["compositionRef"], spec["writeConnectionSecretToRef"] = choice, map[string]any{"name": name + "-connection"}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "platform.example.org", Version: "v1alpha1", Kind: "Environment"})
	u.SetNamespace(shop)
	u.SetName(name)

	return u
}

// composite returns the XR of an instance.
func (h *hazards) composite(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	of := h.instance(name)
	u, err := get(ctx, h.source, of.GroupVersionKind(), shop, name)
	if err != nil || h.version != stack.V1 {
		return u, err
	}
	xr, _, _ := unstructured.NestedString(u.Object, "spec", "resourceRef", "name")
	if xr == "" {
		return nil, fmt.Errorf("%s has no XR", name)
	}

	return get(ctx, h.source, of.GroupVersionKind().GroupVersion().WithKind("XEnvironment"), "", xr)
}

// composed returns the composed resource of an instance that has the kind.
func (h *hazards) composed(ctx context.Context, name, kind string) (*unstructured.Unstructured, error) {
	xr, err := h.composite(ctx, name)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx, h.source, h.mrKind(kind), xr.GetNamespace(), "crossplane.io/composite="+xr.GetName())
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%s has %d of the kind %s", name, len(all), kind)
	}

	return &all[0], nil
}

// pauseIn keeps a controller from repairing an object, as soon as it has seen that.
func (h *hazards) pauseIn(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	must(t, drill.Patch(t.Context(), h.source, u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationPaused: "true"}}}))
	must(t, h.source.Wait(t.Context(), patience, u.GetName()+" to be paused", func(ctx context.Context) error {
		now, err := get(ctx, h.source, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if err != nil {
			return err
		}

		return stack.HasCondition(now, "Synced", "False")
	}))
}

// pause keeps Crossplane from repairing an instance, and returns its XR.
func (h *hazards) pause(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	xr, err := h.composite(t.Context(), name)
	must(t, err)
	h.pauseIn(t, h.instance(name))
	h.pauseIn(t, xr)
	xr, err = h.composite(t.Context(), name)
	must(t, err)

	return xr
}

// prune deletes the revision that an instance uses, after the others have moved to a new one.
func (h *hazards) prune(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	xr := h.pause(t, pruned)
	changed := h.platform
	changed.Orphan = true // This creates another revision, which changes nothing in the cloud.
	must(t, changed.Compose(ctx, h.source))
	old := revisionOf(xr)
	for _, name := range []string{healthy, nameless, dangling, used, forged} {
		must(t, h.source.Wait(ctx, patience, name+" to run on the new revision", func(ctx context.Context) error {
			u, err := h.composite(ctx, name)
			if err != nil {
				return err
			}
			if revisionOf(u) == old {
				return errors.New("it runs on " + old)
			}

			return stack.HasCondition(u, "Ready", "True")
		}))
	}
	remove(t, h.source, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "", old)
}

// loseName removes the external-name of a Network, as a user can. Its status does not have the id
// either.
func (h *hazards) loseName(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	h.pause(t, nameless)
	u, err := h.composed(ctx, nameless, "Network")
	must(t, err)
	h.pauseIn(t, u) // A reconcile that is under way would write the name again.
	must(t, drill.Patch(ctx, h.source, u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{externalName: nil}}}))
	must(t, drill.Patch(ctx, h.source, u, map[string]any{"status": map[string]any{"atProvider": nil}}, "status"))
}

// loseBucket deletes a Bucket as a user can, and Crossplane does not notice.
func (h *hazards) loseBucket(t *testing.T) {
	t.Helper()
	h.pause(t, dangling)
	u, err := h.composed(t.Context(), dangling, "Bucket")
	must(t, err)
	remove(t, h.source, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
}

// leaveUsage leaves a Usage behind as Crossplane 1.18.0 does.
func (h *hazards) leaveUsage(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	xr, err := h.composite(ctx, used)
	must(t, err)
	u := h.leftover(xr, shop, "usage")
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(xr, xr.GroupVersionKind())})
	must(t, h.source.ApplyObjects(ctx, u))
}

// forge makes a tenant's object name an object of another instance as its own.
func (h *hazards) forge(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	if h.version == stack.V1 {
		xr, err := h.composite(ctx, healthy)
		must(t, err)
		u := h.instance("intruder")
		must(t, unstructured.SetNestedMap(u.Object, map[string]any{"apiVersion": xr.GetAPIVersion(), "kind": xr.GetKind(), "name": xr.GetName()}, "spec", "resourceRef"))
		u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
		u.SetFinalizers([]string{"finalizer.apiextensions.crossplane.io"})
		must(t, h.source.ApplyObjects(ctx, u))

		return
	}
	xr := h.pause(t, forged)
	theirs, err := h.composed(ctx, healthy, "Bucket")
	must(t, err)
	path := []string{"spec", "crossplane", "resourceRefs"}
	must(t, drill.Patch(ctx, h.source, xr, under(path, append(listAt(xr, path),
		map[string]any{"apiVersion": theirs.GetAPIVersion(), "kind": theirs.GetKind(), "name": theirs.GetName()}))))
}

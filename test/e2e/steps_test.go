package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A change is a change of a Composition.
type change struct {
	name, reason string
	make         func(p *drill.Platform)
	// want is the outcome for one instance that was never restored.
	want drill.Outcome
}

func removed() change {
	return change{
		name: "Removed", reason: "A resource that a Composition drops is deleted.",
		make: func(p *drill.Platform) { p.Without = []string{"database"} }, want: drill.Outcome{Deletes: 1, Adopted: 2, Total: 3},
	}
}

func changes() []change {
	return []change{
		removed(),
		{
			name: "Added", reason: "A resource that a Composition adds is created once.",
			make: func(p *drill.Platform) { p.Twice = []string{"network"} }, want: drill.Outcome{Creates: 1, Adopted: 3, Total: 3},
		},
		{
			name: "Renamed", reason: "To Crossplane a resource with another name in a Composition is another resource.",
			make: func(p *drill.Platform) { p.Renamed = []string{"network"} }, want: drill.Outcome{Creates: 1, Deletes: 1, Adopted: 2, Total: 3},
		},
	}
}

// A step is a step of a restore with the plugin. Before and After are no changes to an object.
type step struct {
	name, reason string
	is           func(a stack.Admission, composite string) bool
}

const (
	before = "Before"
	after  = "After"
)

func steps() []step {
	return []step{
		{name: before, reason: "The target has a newer Composition."},
		{name: "XRCreated", reason: "The XR comes back, and the composed resources do not exist yet.", is: isCreated},
		{name: "ComposedCreated", reason: "A composed resource comes back.", is: isComposedCreated},
		{name: "LetGo", reason: "A publisher of connection details is no longer held.", is: isLetGo},
		{name: "Unpaused", reason: "The XR is to be reconciled under its old revision.", is: isUnpaused},
		{name: "Reconciled", reason: "Crossplane has reconciled the XR, and the plugin has not observed it yet.", is: isReconciled},
		{name: "Released", reason: "The XR gets its own settings back.", is: isReleased},
		{name: after, reason: "The restore is Completed."},
	}
}

// claimReleased returns the step before the release of the XR, on v1.
func claimReleased() step {
	return step{name: "ClaimReleased", reason: "The claim gets its own settings back.", is: isClaimReleased}
}

func isCreated(a stack.Admission, composite string) bool {
	return a.Old == nil && a.New.GetKind() == composite
}

func isComposedCreated(a stack.Admission, _ string) bool {
	return a.Old == nil && isManaged(a.New) && a.New.GetLabels()["velero.io/restore-name"] != ""
}

func isLetGo(a stack.Admission, _ string) bool {
	return isManaged(a.New) && isHoldTakenOff(a)
}

func isUnpaused(a stack.Admission, composite string) bool {
	return a.Old != nil && a.New.GetKind() == composite && drill.Held(a.New) && paused(a.Old) && !paused(a.New)
}

func isReconciled(a stack.Admission, composite string) bool {
	return a.Status && a.New.GetKind() == composite && drill.Held(a.New) && !paused(a.New) && stack.HasCondition(a.New, "Synced", "True") == nil
}

func isClaimReleased(a stack.Admission, composite string) bool {
	return !isManaged(a.New) && a.New.GetKind() != composite && isHoldTakenOff(a)
}

func isReleased(a stack.Admission, composite string) bool {
	return a.New.GetKind() == composite && isHoldTakenOff(a)
}

// isHoldTakenOff reports whether an object gets its settings back. Its mark goes then or later.
func isHoldTakenOff(a stack.Admission) bool {
	return a.Old != nil && isHeldBack(a.Old) && !isHeldBack(a.New)
}

func isHeldBack(u *unstructured.Unstructured) bool {
	return drill.Held(u) && !strings.Contains(u.GetAnnotations()[annotationHold], `"freed":true`)
}

func isManaged(u *unstructured.Unstructured) bool {
	return strings.HasPrefix(u.GroupVersionKind().Group, "cloud.")
}

// checked returns the API groups of a tenant's objects, without the Compositions.
func checked() []string {
	return []string{"platform.example.org", "cloud.example.org", "cloud.m.example.org"}
}

// A changedTenant is a tenant with one instance whose Composition is changed at a step of its restore.
type changedTenant struct {
	*tenant
	change change
	step   step

	mu       sync.Mutex
	changed  bool
	revision string // The CompositionRevision at the backup.
	// release is the outcome just before the XR was released; nil if it never was.
	release *drill.Outcome
	// controlled are the kinds that had a controller at some time.
	controlled map[string]bool
	// foreground is true if an object was deleted in the foreground.
	foreground bool
	errs       []error
}

// newChangedTenant fills the namespace of a changedTenant in the source.
func (s *suite) newChangedTenant(t *testing.T, c change, p step, native bool) *changedTenant {
	t.Helper()
	name := strings.ToLower(c.name + "-" + p.name)
	if native {
		name = "native-" + name
	}

	return &changedTenant{
		tenant: s.few(t, s.source, drill.Platform{Namespace: name, Native: native}, 1), change: c, step: p, controlled: map[string]bool{},
	}
}

// recall remembers the objects in the source.
func (s *suite) recall(t *testing.T, d *changedTenant) {
	t.Helper()
	s.remember(t, s.source, d.tenant)
	xrs, err := d.Composites(t.Context(), s.source)
	must(t, err)
	d.revision = revisionOf(&xrs[0])
}

func revisionOf(u *unstructured.Unstructured) string {
	v2, ok, _ := unstructured.NestedString(u.Object, "spec", "crossplane", "compositionRevisionRef", "name")
	if ok {
		return v2
	}
	v1, _, _ := unstructured.NestedString(u.Object, "spec", "compositionRevisionRef", "name")

	return v1
}

// has reports whether an object belongs to its one instance, in any namespace.
func (d *changedTenant) has(u *unstructured.Unstructured) bool {
	return strings.HasPrefix(u.GetName(), d.Name(0))
}

// visit makes the change at its step, and records the outcome just before the release.
func (d *changedTenant) visit(ctx context.Context, c *stack.Cluster, cloud *api.Client, a stack.Admission) {
	if d.step.is != nil && d.step.is(a, d.CompositeKind()) {
		d.compose(ctx, c)
	}
	d.look(a)
	if !isReleased(a, d.CompositeKind()) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	got, err := d.Compare(ctx, c, cloud, d.before)
	d.release = &got
	if got := revisionOf(a.Old); err == nil && got != d.revision {
		err = fmt.Errorf("it was adopted under the revision %q, not %q", got, d.revision)
	}
	d.errs = append(d.errs, err)
}

// look records how Crossplane controls and deletes composed resources.
func (d *changedTenant) look(a stack.Admission) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if metav1.GetControllerOf(a.New) != nil {
		d.controlled[a.New.GetKind()] = true
	}
	if a.Old != nil && slices.Contains(a.Old.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		d.foreground = true
	}
}

// compose changes the Composition, once, and waits until Crossplane has a revision of it.
func (d *changedTenant) compose(ctx context.Context, c *stack.Cluster) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed {
		return
	}
	d.changed = true
	p := d.Platform
	d.change.make(&p)
	d.errs = append(d.errs, p.Compose(ctx, c))
}

// note keeps an error until the tenant is judged.
func (d *changedTenant) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs = append(d.errs, err)
}

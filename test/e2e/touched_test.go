package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A touchedTenant is a tenant with one instance, which another writer changes while it is held.
type touchedTenant struct {
	*tenant
	touch

	name  string
	once  sync.Once
	after holdState
	err   error
}

// backUpTouched backs up the tenants.
func (s *suite) backUpTouched(t *testing.T, all []*touchedTenant) {
	t.Helper()
	namespaces := make([]string, len(all))
	for i, d := range all {
		namespaces[i] = d.Namespace
	}
	backupWith(t, s.source, touchedBackup, "--include-namespaces", strings.Join(namespaces, ","))
}

// testTouched restores instances and changes each while it is held. An XR is changed when its first
// composed resource is about to be created, which is the worst moment, and a claim when all is
// restored. The provider is down until all were changed.
func (s *suite) testTouched(t *testing.T, g *git, all []*touchedTenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	check, err := s.target.Check(ctx, "touched", []string{"cloud.m.example.org"}, func(ctx context.Context, a stack.Admission) {
		for _, d := range all {
			if a.Old == nil && strings.HasPrefix(a.New.GetName(), d.Namespace+"-") {
				d.once.Do(func() { d.write(ctx, g, s) })
			}
		}
	})
	must(t, err)
	for _, d := range all {
		if d.setUp != nil {
			must(t, s.target.Apply(ctx, d.setUp(d.tenant)))
		}
		must(t, d.StartRestore(ctx, s.target, d.Namespace, touchedBackup, append([]string{"--include-namespaces", d.Namespace, "--item-operation-timeout", "8m"}, d.args...)...))
	}
	for _, d := range all {
		must(t, drill.AwaitItems(ctx, s.target, d.Namespace))
		d.once.Do(func() { d.write(ctx, g, s) })
	}
	must(t, check.Remove(ctx))
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) { s.testTouch(t, d) })
	}
}

// makeTouched creates and remembers an instance for each touch.
func (s *suite) makeTouched(t *testing.T, g *git, some map[string]touch) []*touchedTenant {
	t.Helper()
	var all []*touchedTenant
	for name, touch := range some {
		n := s.applied(t, g, touch.made, drill.Platform{Namespace: strings.ToLower(name)}, 1)
		all = append(all, &touchedTenant{tenant: n, touch: touch, name: name})
	}
	slices.SortFunc(all, func(a, b *touchedTenant) int { return strings.Compare(a.name, b.name) })
	for _, d := range all {
		s.remember(t, s.source, d.tenant)
		if d.inSource != nil {
			must(t, d.inSource(t.Context(), &editor{git: g, cluster: s.source, tenant: d.tenant}))
		}
	}

	return all
}

// write touches the instance. Without a hold, it waits a while for Crossplane to reconcile it.
func (d *touchedTenant) write(ctx context.Context, g *git, s *suite) {
	if d.do != nil {
		if d.err = d.do(ctx, &editor{git: g, cluster: s.target, tenant: d.tenant}); d.err != nil {
			return
		}
	}
	u, err := d.live(ctx, s.target)
	if apierrors.IsNotFound(err) {
		d.after = absent

		return
	}
	if err != nil {
		d.err = err

		return
	}
	if d.after = holdStateOf(u); d.after == held {
		return
	}
	_ = s.target.Wait(ctx, 5*time.Second, "Crossplane to reconcile it", func(ctx context.Context) error {
		u, err := d.live(ctx, s.target)
		if err != nil {
			return err
		}

		return stack.HasCondition(u, "Synced", "True")
	})
}

// testTouch checks that the hold stays and all is adopted. Where the hold can't stay, it checks
// that all is adopted anyway, or that the restore names the damage. Nothing of a hold may be left.
func (s *suite) testTouch(t *testing.T, d *touchedTenant) {
	ctx := t.Context()
	must(t, d.err)
	if stays := d.after == held; stays != d.stays {
		t.Errorf("%s Afterwards it is %s", d.reason, d.after)
	}
	r, err := drill.AwaitRestore(ctx, s.target, d.Namespace)
	must(t, err)
	details, err := s.target.Velero(ctx, "restore", "describe", d.Namespace, "--details") // The log lacks the late messages of operations.
	must(t, err)
	problems := drill.Problems(ctx, s.target, d.Namespace)
	ready, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	unready := d.AwaitReady(ready, s.target, 1)
	d.wishes, err = d.Wishes(ctx, s.target) // A touch changes it, and its field managers.
	must(t, err)
	d.managers = nil
	left := d.left(ctx, s.target)
	if d.after != absent && left != nil {
		t.Errorf("%s Something of the hold is left: %v", d.reason, left)
	}
	unsound := errors.Join(unready, s.unsound(ctx, d.tenant), left)
	t.Logf("the restore is %s; afterwards it was %s; damage: %v\n%s\n%s", drill.Phase(r), d.after, unsound, problems, details)
	switch {
	case unsound == nil && drill.Phase(r) == "Completed":
	case unsound == nil && !d.stays:
	case d.stays:
		t.Errorf("%s The restore is %s: %v", d.reason, drill.Phase(r), unsound)
	case drill.Phase(r) == "Completed" || !saysWhy(problems+details, d.Name(0)):
		t.Errorf("%s The restore is %s, and does not name the damage: %v", d.reason, drill.Phase(r), unsound)
	}
}

// saysWhy reports whether a line names an object and the removal of its hold.
func saysWhy(text, name string) bool {
	for line := range strings.Lines(text) {
		for _, why := range []string{"[HoldRemoved]", "[ComposedAgain]", "[ClaimReplaced]", "[ChangeUndone]", "[XRNotHeld]", "[ModifierRemovesHold]"} {
			if strings.Contains(line, name) && strings.Contains(line, why) {
				return true
			}
		}
	}

	return false
}

// left returns an error if the instance still has a part of a hold.
func (d *touchedTenant) left(ctx context.Context, c *stack.Cluster) error {
	u, err := d.live(ctx, c)
	if err != nil {
		return err
	}
	policy, _, _ := unstructured.NestedString(u.Object, "spec", "crossplane", "compositionUpdatePolicy")
	if state := holdStateOf(u); state != free || policy == "Manual" {
		return fmt.Errorf("it is %s, and its compositionUpdatePolicy is %q", state, policy)
	}

	return nil
}

// A holdState is the rest of a hold.
type holdState string

const (
	held     holdState = "held"
	unpaused holdState = "marked and not paused"
	unmarked holdState = "paused and not marked"
	free     holdState = "free"
	absent   holdState = "not restored"
)

func holdStateOf(u *unstructured.Unstructured) holdState {
	_, marked := u.GetAnnotations()[annotationHold]
	switch {
	case marked && paused(u):
		return held
	case marked:
		return unpaused
	case paused(u):
		return unmarked
	}

	return free
}

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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A prunedTenant is a tenant whose instances are deleted while they are held.
type prunedTenant struct {
	*tenant
	pruning

	name string
}

// A pruning is how restored objects are deleted, and what is done then.
type pruning struct {
	reason string
	// made is the applier that created the instances, and prunes them.
	made applier
	// xrs is true if a user deletes the XRs instead.
	xrs bool
	// args are arguments of the command that restores.
	args []string
	// hasWarning are words of the restore's message about each.
	tells []string
	// goes is true if external resources are deleted before a user can act.
	goes bool
	// then is what the user does; nil for nothing.
	then func(ctx context.Context, s *suite, d *prunedTenant) error
	// kept is true if the user chooses to keep the external resources.
	kept bool
	// quarantine is true if MRs are held too, so that the restore ends before the pruning.
	quarantine bool
}

const (
	tellsXR    = "is being deleted, and its hold stops Crossplane from that; to delete it with all that it composes, remove its annotation"
	tellsClaim = "is being deleted, and its hold stops Crossplane from deleting"
	// tellsGone begins the message about what the garbage collector deletes.
	tellsGone = "; these are "
)

func (s *suite) prunings() map[string]pruning {
	if s.version.IsV1() {
		return map[string]pruning{
			"LetGo":      {reason: "A claim waits for its user.", made: flux, tells: []string{tellsClaim}, then: letGo},
			"Kept":       {reason: "A claim can go without its XR.", made: flux, tells: []string{tellsClaim}, then: forgetClaims, kept: true},
			"Foreground": {reason: "No Crossplane object has a claim as its owner.", made: argocd, tells: []string{tellsClaim}, then: forgetClaims, kept: true},
			"Quarantine": {
				reason: "Composed resources are held too, and continue without their claim.", made: argocd, args: []string{"--annotations", holdAll}, quarantine: true,
				then: forgetClaimsAndRelease, kept: true,
			},
			"XRKept": {
				reason: "A composed resource can go without its external resource.", made: kubectlApply, xrs: true, tells: []string{tellsXR}, then: orphanAndLetGo, kept: true,
			},
		}
	}

	return map[string]pruning{
		"LetGo":      {reason: "An XR waits for its user.", made: flux, tells: []string{tellsXR}, then: letGo},
		"Kept":       {reason: "A composed resource can go without its external resource.", made: flux, tells: []string{tellsXR}, then: orphanAndLetGo, kept: true},
		"Foreground": {reason: "The garbage collector does not wait for paused objects.", made: argocd, tells: []string{tellsXR, tellsGone}, goes: true, then: letGo},
		"Quarantine": {
			reason: "Composed resources can be held too.", made: argocd, args: []string{"--annotations", holdAll}, quarantine: true, then: orphanAndLetGo, kept: true,
		},
		"ByHand": {reason: "A user deletes XRs too.", made: kubectlApply, xrs: true, tells: []string{tellsXR}, then: letGo},
	}
}

func (s *suite) makePruned(t *testing.T, g *git, some map[string]pruning) []*prunedTenant {
	t.Helper()
	var all []*prunedTenant
	for name, p := range some {
		n := s.applied(t, g, p.made, drill.Platform{Namespace: "pruned" + strings.ToLower(name)}, 2)
		all = append(all, &prunedTenant{tenant: n, pruning: p, name: name})
	}

	return all
}

func (s *suite) backUpPruned(t *testing.T, all []*prunedTenant) {
	t.Helper()
	for _, d := range all {
		s.backUp(t, s.source, d.tenant)
	}
}

// testPrunedAlone is the control: Velero alone restores without a hold, so the instances are
// deleted at once, with all external resources.
func (s *suite) testPrunedAlone(t *testing.T, g *git, n *tenant) {
	ctx := t.Context()
	must(t, s.target.UsePlugin(ctx, false))
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	_, err := drill.AwaitRestore(ctx, s.target, n.Namespace)
	must(t, err)
	must(t, s.target.UsePlugin(ctx, true))
	s.eventually(t, "Crossplane to have composed all XRs", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.target)
		for _, u := range xrs {
			err = errors.Join(err, stack.HasCondition(&u, "Synced", "True"))
		}
		if len(xrs) < n.size {
			err = fmt.Errorf("there are %v: %w", names(xrs), err)
		}

		return err
	})
	must(t, g.prune(ctx, s.target, flux, n.manifests()))
	s.eventually(t, "all to be gone (the control)", func(ctx context.Context) error {
		left, err := n.Instances(ctx, s.target)
		if err != nil {
			return err
		}
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		if err == nil && (len(left) > 0 || got.Deletes < got.Total) {
			err = fmt.Errorf("there are %v, and %+v", names(left), got)
		}

		return err
	})
}

// testPruned prunes restored tenants while the provider is down, so that all is held.
func (s *suite) testPruned(t *testing.T, g *git, all []*prunedTenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	for _, d := range all {
		must(t, d.StartRestore(ctx, s.target, d.Namespace, d.Namespace, d.args...))
	}
	for _, d := range all {
		must(t, drill.AwaitItems(ctx, s.target, d.Namespace))
		must(t, d.prune(ctx, g, s))
		if d.goes || d.quarantine && !d.v1() {
			s.eventually(t, "all that is composed in "+d.Namespace+" to be deleted", func(ctx context.Context) error { return d.deleted(ctx, s.target) })
		}
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) { s.testPrunedOne(t, d) })
	}
}

func (d *prunedTenant) prune(ctx context.Context, g *git, s *suite) error {
	if !d.xrs {
		return g.prune(ctx, s.target, d.made, d.manifests())
	}
	xrs, err := d.Composites(ctx, s.target)
	for _, u := range xrs {
		r, e := s.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		if e == nil {
			e = r.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
		}
		err = errors.Join(err, e)
	}

	return err
}

// deleted returns an error unless all composed resources of the instances are being deleted.
func (d *prunedTenant) deleted(ctx context.Context, c *stack.Cluster) error {
	mrs, err := d.Managed(ctx, c)
	for _, u := range mrs {
		if u.GetDeletionTimestamp() == nil {
			err = errors.Join(err, errors.New(u.GetName()+" is not"))
		}
	}

	return err
}

// held returns what is deleted and held: the XRs, or the claims.
func (d *prunedTenant) held(ctx context.Context, c *stack.Cluster) ([]unstructured.Unstructured, error) {
	if d.xrs {
		return d.Composites(ctx, c)
	}

	return d.Instances(ctx, c)
}

func (s *suite) testPrunedOne(t *testing.T, d *prunedTenant) {
	ctx := t.Context()
	if d.quarantine {
		s.wantPhase(t, d.Namespace, "Completed")
		s.testKept(t, d)

		return
	}
	s.wantPhase(t, d.Namespace, "PartiallyFailed")
	details := s.details(t, d.Namespace)
	going, err := d.held(ctx, s.target)
	must(t, err)
	if len(going) != d.size {
		t.Fatalf("%s There are %v", d.reason, names(going))
	}
	events, err := list(ctx, s.target, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, eventNamespace(&going[0]), "")
	must(t, err)
	for _, u := range going {
		wantMessage(t, "the details of the restore", details, append([]string{u.GetName()}, d.tells...)...)
		if !drill.Held(&u) || !paused(&u) || u.GetDeletionTimestamp() == nil {
			t.Errorf("%s %s is not held and being deleted: %v", d.reason, u.GetName(), u.Object["metadata"])
		}
		if !hasWarning(events, u.GetName(), d.tells) {
			t.Errorf("%s No Event about %s has %q", d.reason, u.GetName(), d.tells)
		}
	}
	if d.goes {
		s.eventually(t, "the external resources that could not be kept to be gone", func(ctx context.Context) error { return s.lost(ctx, d, len(d.before.Slots)) })
	} else {
		now, err := d.Record(ctx, s.target, s.cloud)
		must(t, err)
		must(t, d.AwaitReads(ctx, s.target, s.cloud, d.before, now.Seq))
		must(t, s.lost(ctx, d, 0))
	}
	if d.kept {
		s.testKept(t, d)

		return
	}
	must(t, d.then(ctx, s, d))
	s.eventually(t, "the released objects to be gone", func(ctx context.Context) error { return d.gone(ctx, s.target) })
	s.eventually(t, "the external resources to be gone", func(ctx context.Context) error { return s.lost(ctx, d, len(d.before.Slots)) })
}

// testKept keeps external resources of deleted objects, and restores the objects again.
func (s *suite) testKept(t *testing.T, d *prunedTenant) {
	t.Helper()
	ctx := t.Context()
	must(t, d.then(ctx, s, d))
	s.eventually(t, "the released objects to be gone", func(ctx context.Context) error { return d.gone(ctx, s.target) })
	must(t, s.lost(ctx, d, 0))
	s.restore(t, d.tenant, d.Namespace+"-again")
	s.settle(t, d.tenant)
	s.wantSound(t, d.tenant)
}

// lost returns an error unless nothing was created and want external resources were deleted.
func (s *suite) lost(ctx context.Context, d *prunedTenant, want int) error {
	got, err := d.Compare(ctx, s.target, s.cloud, d.before)
	if err == nil && (got.Creates != 0 || got.Deletes != want) {
		err = fmt.Errorf("%s %d were to be deleted: %+v", d.reason, want, got)
	}

	return err
}

// gone returns an error while a held object, or a composed resource that goes with it, exists.
func (d *prunedTenant) gone(ctx context.Context, c *stack.Cluster) error {
	left, err := d.held(ctx, c)
	if err != nil {
		return err
	}
	if d.xrs || !d.kept || !d.v1() {
		mrs, err := d.Managed(ctx, c)
		if err != nil {
			return err
		}
		left = append(left, mrs...)
	}
	if len(left) > 0 {
		return fmt.Errorf("there are %v", names(left))
	}

	return nil
}

func (d *prunedTenant) v1() bool { return d.Crossplane.IsV1() }

// letGo removes the pause from all instances and XRs.
func letGo(ctx context.Context, s *suite, d *prunedTenant) error {
	all, err := d.Instances(ctx, s.target)
	if err != nil {
		return err
	}
	if d.v1() {
		xrs, err := d.Composites(ctx, s.target)
		if err != nil {
			return err
		}
		all = append(xrs, all...)
		if d.xrs {
			all = xrs
		}
	}
	if d.quarantine {
		mrs, err := d.Managed(ctx, s.target)
		if err != nil {
			return err
		}
		all = append(mrs, all...)
	}
	for _, u := range all {
		err := drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": nil}}})
		if err != nil {
			return err
		}
	}

	return nil
}

// orphanAndLetGo orphans the external resources of all MRs, and then does what letGo does.
func orphanAndLetGo(ctx context.Context, s *suite, d *prunedTenant) error {
	spec := map[string]any{"managementPolicies": []any{"Observe", "Create", "Update", "LateInitialize"}}
	if d.v1() {
		spec = map[string]any{"deletionPolicy": "Orphan"}
	}
	mrs, err := d.Managed(ctx, s.target)
	if err != nil {
		return err
	}
	for _, u := range mrs {
		if err := drill.Patch(ctx, s.target, &u, map[string]any{"spec": spec}); err != nil {
			return err
		}
	}

	return letGo(ctx, s, d)
}

// forgetClaims removes the finalizers from the claims.
func forgetClaims(ctx context.Context, s *suite, d *prunedTenant) error {
	claims, err := d.Instances(ctx, s.target)
	if err != nil {
		return err
	}
	for _, u := range claims {
		if err := drill.Patch(ctx, s.target, &u, map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
			return err
		}
	}

	return nil
}

// forgetClaimsAndRelease does what forgetClaims does, and then releases the rest.
func forgetClaimsAndRelease(ctx context.Context, s *suite, d *prunedTenant) error {
	if err := forgetClaims(ctx, s, d); err != nil {
		return err
	}
	if err := s.target.Wait(ctx, patience, "the claims to be gone", func(ctx context.Context) error { return d.gone(ctx, s.target) }); err != nil {
		return err
	}
	stdout, stderr, code, err := s.target.Plugin(ctx, "", "release", "--restore", d.Namespace)
	if err == nil && code != 0 {
		err = fmt.Errorf("release has returned %d:\n%s\n%s", code, stdout, stderr)
	}

	return err
}

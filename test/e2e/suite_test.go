package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// count is the number of instances of each test. A few could be undamaged by luck.
const count = 10

// A suite is the clusters that the tests of one version of Crossplane share.
type suite struct {
	host           *stack.Host
	cloud          *api.Client
	version        stack.Version
	velero         string // As in stack.Options.
	source, target *stack.Cluster
	// newer is the version that Crossplane is upgraded to; none if it is empty.
	newer stack.Version
	// flux is whether clusters can run Flux's kustomize-controller.
	flux bool
	// veleroArgs are arguments for the Velero of each cluster, beside oftener.
	veleroArgs []string
	// clocks are those of the source's and the target's components.
	clocks map[string]stack.Clocks
	// failed are the stages and cases that did.
	failed []string
}

// allOf returns the Clocks of several clusters in one.
func allOf(clocks map[string]stack.Clocks) stack.Clocks {
	all := stack.Clocks{}
	for _, c := range clocks {
		maps.Copy(all, c)
	}

	return all
}

// oftener makes Velero poll its operations every two seconds, not every ten.
var oftener = []string{"--item-operation-sync-frequency=2s"}

// debug makes Velero and the plugin log on the debug level.
const debug = "--log-level=debug"

// A tenant is one namespace with its instances.
type tenant struct {
	drill.Platform
	size int
	// revised is true if Velero restored the Composition. Its labels are part of a revision's hash,
	// so Crossplane creates another revision with the same content, and XRs that follow revisions
	// follow that one.
	revised bool
	before  *drill.Record
	wishes  map[string]any
	// managers are the field managers of the objects.
	managers map[string]drill.Managers
	// forgotten is the kind and name of the object whose field managers are lost.
	forgotten string
	// unclaimed is true if the user who released the claims had no right to restore the owners of
	// their connection Secrets.
	unclaimed bool
}

func newSuite(t *testing.T, version stack.Version, veleroArgs ...string) *suite {
	t.Helper()

	return begin(t, &suite{version: version, veleroArgs: veleroArgs})
}

// begin starts the host and the source of a suite.
func begin(t *testing.T, s *suite) *suite {
	t.Helper()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(stack.Options{Crossplane: s.version, Velero: s.velero, Plugin: true, Flux: s.flux}, stack.Options{Crossplane: s.newer})...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	s.host, s.cloud = host, api.NewClient(host.CloudURL())
	s.source = s.cluster(t, "source")

	return s
}

// cluster starts a cluster with the XRD.
func (s *suite) cluster(t *testing.T, name string) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{
		Name: name, Crossplane: s.version, Velero: s.velero, Plugin: true, VeleroArgs: slices.Concat(oftener, s.veleroArgs),
	})
	must(t, err)
	must(t, drill.Platform{Crossplane: s.version}.Install(t.Context(), c))
	must(t, c.RestartVelero(t.Context()))

	return c
}

// tenant fills a namespace in a cluster. Its instances take a while to be Ready.
func (s *suite) tenant(t *testing.T, c *stack.Cluster, p drill.Platform) *tenant {
	t.Helper()

	return s.few(t, c, p, count)
}

// few is tenant with another number of instances.
func (s *suite) few(t *testing.T, c *stack.Cluster, p drill.Platform, size int) *tenant {
	t.Helper()
	p.Crossplane = s.version
	must(t, p.Compose(t.Context(), c))
	must(t, p.Make(t.Context(), c, size))

	return &tenant{Platform: p, size: size}
}

// backUp waits until the instances are Ready, remembers their state, and backs the namespace up.
func (s *suite) backUp(t *testing.T, c *stack.Cluster, n *tenant) {
	t.Helper()
	ctx := t.Context()
	s.remember(t, c, n)
	must(t, n.Backup(ctx, c, n.Namespace))
}

// remember waits until the instances are Ready and remembers their state.
func (s *suite) remember(t *testing.T, c *stack.Cluster, n *tenant) {
	t.Helper()
	ctx := t.Context()
	pruned, err := n.AwaitMade(ctx, c, n.size)
	must(t, err)
	if len(pruned) > 0 {
		t.Logf("Crossplane composed these twice in %s: %s", n.Namespace, strings.Join(pruned, ", "))
	}
	n.before, err = n.Record(ctx, c, s.cloud)
	must(t, err)
	n.wishes, err = n.Wishes(ctx, c)
	must(t, err)
	n.managers, err = n.Managers(ctx, c)
	must(t, err)
}

// loseSource destroys the source, including etcd, and starts the target with the Compositions.
func (s *suite) loseSource(t *testing.T, tenants ...*tenant) {
	t.Helper()
	must(t, s.source.Destroy())
	s.target = s.cluster(t, "target")
	for _, n := range tenants {
		must(t, n.Compose(t.Context(), s.target))
	}
}

// restore restores a tenant's backup and waits until it is Completed without an error. args are
// further arguments of the velero command.
func (s *suite) restore(t *testing.T, n *tenant, name string, args ...string) {
	t.Helper()
	must(t, n.StartRestore(t.Context(), s.target, name, n.Namespace, args...))
	s.awaitCompleted(t, name)
}

func (s *suite) awaitCompleted(t *testing.T, name string) {
	t.Helper()
	r, err := drill.AwaitRestore(t.Context(), s.target, name)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.details(t, name))
	}
	status, _ := r.Object["status"].(map[string]any)
	if drill.Phase(r) != "Completed" || status["errors"] != nil {
		t.Fatalf("Restore %s is %s with %v errors:\n%s", name, drill.Phase(r), status["errors"], s.details(t, name))
	}
}

// settle waits until every instance is Ready and every MR reconciled again: damage then shows.
func (s *suite) settle(t *testing.T, n *tenant) {
	t.Helper()
	must(t, n.AwaitReady(t.Context(), s.target, n.size))
	now, err := n.Record(t.Context(), s.target, s.cloud)
	must(t, err)
	must(t, n.AwaitReads(t.Context(), s.target, s.cloud, now, now.Seq))
}

// wantSound checks that nothing was created again, deleted, duplicated or orphaned, that all is
// adopted and nothing held, that every owner exists, and that the XRs and claims are unchanged.
func (s *suite) wantSound(t *testing.T, n *tenant) {
	t.Helper()
	if err := s.unsound(t.Context(), n); err != nil {
		t.Error(err)
	}
}

// unsound returns an error with all damage after a restore.
func (s *suite) unsound(ctx context.Context, n *tenant) error {
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	if err != nil {
		return err
	}
	dead, err := n.DeadOwners(ctx, s.target)
	if err != nil {
		return err
	}
	wishes, err := n.Wishes(ctx, s.target)
	if err != nil {
		return err
	}
	var wrong []error
	want := drill.Outcome{Adopted: len(n.before.Slots), Total: len(n.before.Slots)}
	if diff := cmp.Diff(want, got); diff != "" {
		wrong = append(wrong, fmt.Errorf("the restore of %s: -want, +got:\n%s", n.Namespace, diff))
	}
	for _, d := range dead {
		if n.unclaimed && strings.HasSuffix(d, "-connection has no controller") {
			continue
		}
		wrong = append(wrong, fmt.Errorf("after the restore of %s: %s", n.Namespace, d))
	}
	if diff := cmp.Diff(n.wishes, wishes, cmpopts.EquateEmpty(), cmpopts.IgnoreMapEntries(n.ignored)); diff != "" {
		wrong = append(wrong, fmt.Errorf("claims and XRs in %s, -before, +after the restore:\n%s", n.Namespace, diff))
	}
	managers, err := n.Managers(ctx, s.target)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.managers)) {
		if n.unclaimed && strings.HasPrefix(name, "Secret/") && strings.HasSuffix(name, "-connection") {
			continue
		}
		want := n.managers[name]
		if name == n.forgotten {
			want = managers[name].Without("velero")
		}
		if diff := cmp.Diff(want, managers[name]); diff != "" {
			wrong = append(wrong, fmt.Errorf("the managers of %s in %s, -before, +after the restore:\n%s", name, n.Namespace, diff))
		}
	}

	return errors.Join(wrong...)
}

func (n *tenant) ignored(key string, _ any) bool {
	return n.revised && key == "compositionRevisionRef"
}

// eventually waits for a condition.
func (s *suite) eventually(t *testing.T, what string, condition func(ctx context.Context) error) {
	t.Helper()
	patience := 2 * time.Minute
	for _, clocks := range s.clocks {
		for _, ahead := range clocks {
			// A provider does not create what, by its clock, it has just created (crossplane-runtime
			// pkg/reconciler/managed/reconciler.go, ExternalCreateSucceededDuring).
			patience = max(patience, 2*time.Minute+ahead.Abs())
		}
	}
	must(t, s.target.Wait(t.Context(), patience, what, condition))
}

// remove deletes an object and waits until it is gone.
func remove(t *testing.T, c *stack.Cluster, gvk schema.GroupVersionKind, namespace, name string) {
	t.Helper()
	ctx := t.Context()
	r, err := c.Resource(ctx, gvk, namespace)
	must(t, err)
	must(t, r.Delete(ctx, name, metav1.DeleteOptions{}))
	must(t, c.Wait(ctx, patience, gvk.Kind+" "+name+" to be gone", func(ctx context.Context) error {
		_, err := r.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}

		return errors.Join(err, errors.New("it is there"))
	}))
}

func names(objects []unstructured.Unstructured) []string {
	var names []string
	for _, u := range objects {
		names = append(names, u.GetKind()+"/"+u.GetName())
	}

	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *suite) delete(t *testing.T, u *unstructured.Unstructured, policy metav1.DeletionPropagation) {
	t.Helper()
	r, err := s.target.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
	must(t, err)
	if err := r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}); !apierrors.IsNotFound(err) {
		must(t, err)
	}
}

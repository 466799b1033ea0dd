package restoreitem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// fakeDryRunCluster is a cluster for a dry run.
type fakeDryRunCluster struct {
	*cluster

	resources      kindsFn
	terminatingXRD *unstructured.Unstructured
	// inactive are the ManagedResourceDefinitions of kinds that are not active.
	inactive map[string]string
}

func (s *fakeDryRunCluster) WithoutShortNames(filters []string) ([]string, error) {
	full := slices.Clone(filters)
	for n := range full {
		if full[n] == "cm" {
			full[n] = "configmaps"
		}
	}

	return full, s.err
}

func (s *fakeDryRunCluster) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return s.resources(gvk)
}

func (s *fakeDryRunCluster) IsClaimKind(gvk schema.GroupVersionKind) (bool, error) {
	return gvk.Kind == xptest.ClaimKind, nil
}

func (s *fakeDryRunCluster) Terminating(_ context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error) {
	if s.terminatingXRD != nil && xp.Defines(s.terminatingXRD, gk) {
		return s.terminatingXRD, nil
	}

	return nil, nil //nolint:nilnil // There is none.
}

func (s *fakeDryRunCluster) Deleting(_ context.Context, r xp.Ref) (bool, error) {
	return slices.ContainsFunc(s.objects, func(u *unstructured.Unstructured) bool {
		return xp.RefTo(u).ID() == r.ID() && u.GetDeletionTimestamp() != nil
	}), nil
}

func (s *fakeDryRunCluster) Inactive() func(context.Context, schema.GroupKind) string {
	return func(_ context.Context, gk schema.GroupKind) string { return s.inactive[gk.Kind] }
}

// anything serves every kind, as a cluster with everything installed.
func anything(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	gr := schema.ParseGroupResource(xptest.Resource(u))
	namespaced := slices.Contains([]string{xptest.ClaimKind, xptest.ModernKind, "Secret", "ConfigMap", "Pod", "Event"}, gvk.Kind)

	return gr.WithVersion(gvk.Version), namespaced, nil
}

func packed(t *testing.T, objects ...*unstructured.Unstructured) *archive.Backup {
	t.Helper()
	b, err := archive.Read(t.Context(), bytes.NewReader(xptest.Backup(objects...)), archive.Default())
	if err != nil {
		t.Fatal(err)
	}

	return b
}

// dryRunResults returns the results for all items.
func dryRunResults(ctx context.Context, b *archive.Backup, cluster DryRunCluster, restore *velerov1.Restore) (results []report.ItemResult, err error) {
	err = DryRun(ctx, b, cluster, restore, func(f report.ItemResult) { results = append(results, f) })

	return results, err
}

// dryRunOf returns the results of a dry run that succeeds, of a backup with the objects.
func dryRunOf(t *testing.T, cluster DryRunCluster, restore *velerov1.Restore, objects ...*unstructured.Unstructured) []report.ItemResult {
	t.Helper()
	results, err := dryRunResults(t.Context(), packed(t, objects...), cluster, restore)
	if err != nil {
		t.Fatal(err)
	}

	return results
}

// resultLines returns a line for each result, in order.
func resultLines(results []report.ItemResult) []string {
	var all []string
	for _, f := range results {
		s := string(f.Outcome.Action) + " " + f.Item.String()
		if f.Namespace != "" {
			s += " in " + f.Namespace
		}
		if f.For != nil {
			s += " for " + f.For.String()
		}
		all = append(all, s)
	}

	return all
}

// A shop is a claim's tree with all that belongs to it.
type shop struct {
	claim, xr, mr, secret, revision, composition, xrd, crd *unstructured.Unstructured
}

func newShop() shop {
	var s shop
	s.claim, s.xr = xptest.Claim("c"), xptest.XR("x")
	s.mr = xptest.MR("b", xptest.ControlledBy(s.xr), xptest.PublishesTo(xptest.Namespace, "s"))
	s.secret = xptest.Secret("s", xptest.ControlledBy(s.mr))
	s.xr = xptest.With(s.xr, xptest.ClaimedBy(s.claim), xptest.Refs(s.mr),
		xptest.RestoreFirst("compositionrevisions.apiextensions.crossplane.io//"+xptest.RevisionName, "compositions.apiextensions.crossplane.io//"+xptest.CompositionName,
			"compositeresourcedefinitions.apiextensions.crossplane.io//xorders.example.org"))
	s.claim = xptest.With(s.claim, xptest.OfXR(s.xr), xptest.RestoreFirst("xorders.example.org//x", "buckets.cloud.example.org//b", "secrets/team-a/s"))
	s.revision, s.composition = xptest.Revision(xptest.RevisionName, s.xr), xptest.Composition(xptest.CompositionName, s.xr)
	s.xrd = xptest.With(terminatingXRD(), xptest.Without("metadata", "deletionTimestamp"))
	s.crd = xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "buckets.cloud.example.org",
		xptest.JSON(`{"spec":{"group":"cloud.example.org","scope":"Cluster","names":{"kind":"Bucket","plural":"buckets"},"versions":[{"name":"v1alpha1","served":true}]}}`))

	return s
}

func (s shop) all() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		xptest.Object("v1", "Namespace", "", xptest.Namespace), s.claim, s.xr, s.mr, s.secret, s.revision, s.composition, s.xrd, s.crd,
	}
}

func TestDryRun(t *testing.T) {
	s, team := newShop(), xptest.Object("v1", "Namespace", "", xptest.Namespace)
	everything := func(live ...*unstructured.Unstructured) *fakeDryRunCluster {
		return &fakeDryRunCluster{cluster: &cluster{objects: live}, resources: anything}
	}
	order := []string{
		"create CustomResourceDefinition buckets.cloud.example.org", "create Namespace team-a", "create Composition orders for CompositionRevision orders-1a2b3c",
		"create CompositionRevision orders-1a2b3c for XOrder x", "create CompositeResourceDefinition xorders.example.org for XOrder x",
		"hold XOrder x for Bucket b", "hold Bucket b for Secret team-a/s", "create Secret team-a/s", "hold OrderClaim team-a/c",
	}
	for name, tc := range map[string]struct {
		reason  string
		backup  []*unstructured.Unstructured
		cluster *fakeDryRunCluster
		mapping map[string]string
		want    []string
	}{
		"Nowhere": {reason: "The dry run orders owners first and holds objects that Crossplane reconciles.", backup: s.all(), want: order},
		"Empty":   {reason: "An empty cluster gives the same plan as no cluster.", backup: s.all(), cluster: everything(), want: order},
		"Live":    {reason: "The restore leaves a live object as it is.", backup: []*unstructured.Unstructured{s.crd}, cluster: everything(s.crd), want: []string{"exists CustomResourceDefinition buckets.cloud.example.org"}},
		"Copy": {
			reason: "An object in another namespace is a copy while the original is live.", backup: []*unstructured.Unstructured{xptest.XRV2("m"), team},
			cluster: everything(xptest.XRV2("m"), xptest.Object("v1", "Namespace", "", "copy")), mapping: toCopy(),
			want: []string{"exists Namespace team-a", "clone Order team-a/m in copy"},
		},
		"Unserved": {
			reason: "An unserved kind without a CRD in the backup cannot come back, and no object waits for it.", backup: []*unstructured.Unstructured{s.xr, s.mr, s.crd},
			cluster: &fakeDryRunCluster{cluster: live(), resources: unserved},
			want:    []string{"refuse CustomResourceDefinition buckets.cloud.example.org", "hold Bucket b", "refuse XOrder x"},
		},
		"TerminatingXRD": {
			reason: "A terminating XRD would delete its claims, XRs and their resources, so none come back.", backup: []*unstructured.Unstructured{s.claim, s.xr, s.mr},
			cluster: &fakeDryRunCluster{cluster: live(), resources: anything, terminatingXRD: terminatingXRD()},
			want:    []string{"refuse Bucket b", "refuse OrderClaim team-a/c", "refuse XOrder x"},
		},
		"Rebuilt": {
			reason: "The control plane creates these objects itself, so the restore skips them.",
			backup: []*unstructured.Unstructured{
				xptest.Object("pkg.crossplane.io/v1beta1", "Lock", "", "lock"), xptest.Object("v1", "Event", "team-a", "e"),
				xptest.Object("v1", "Pod", "team-a", "p", xptest.Field("Succeeded", "status", "phase"), xptest.Labelled(xp.LabelComposite, "x")),
			},
			cluster: everything(), want: []string{"skip Pod team-a/p", "skip Event team-a/e", "skip Lock lock"},
		},
		"Leftover": {
			reason: "A Usage that its XR dropped stays out, whether the XR is live or restored.",
			backup: []*unstructured.Unstructured{
				xptest.XR("u", xptest.Refs()),
				xptest.Object("apiextensions.crossplane.io/v1beta1", "Usage", "", "left", xptest.ControlledBy(xptest.XR("u"))),
			},
			cluster: everything(), want: []string{"hold XOrder u for Usage left", "refuse Usage left"},
		},
		"Deleting": {
			reason: "A live object that is being deleted does not replace the one in the backup.", backup: []*unstructured.Unstructured{xptest.MR("b")},
			cluster: everything(xptest.MR("b", xptest.Deleting())), want: []string{"refuse Bucket b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var cluster DryRunCluster
			if tc.cluster != nil {
				cluster = tc.cluster
			}
			results := dryRunOf(t, cluster, restoreOf(tc.mapping), tc.backup...)
			if diff := cmp.Diff(tc.want, resultLines(results)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			for _, f := range results {
				if strings.Contains(f.Outcome.Reason, "restored from a backup") {
					t.Errorf("the reason must not name what only a restore writes: %s", f.Outcome.Reason)
				}
				if a := f.Outcome.Action; f.Outcome.Reason == "" && (a == report.Refuse || a == report.Skip || a == report.Clone) {
					t.Errorf("%s of %s has no reason", a, f.Item)
				}
			}
		})
	}
}

// A user who has installed the provider need only activate the kind.
func TestDryRunOfInactiveKinds(t *testing.T) {
	const definition = "buckets.cloud.example.org"
	for name, want := range map[string]reason.Code{xptest.ManagedKind: reason.KindNotActive, "Database": reason.KindNotServed} {
		cluster := &fakeDryRunCluster{cluster: live(), resources: unserved, inactive: map[string]string{name: definition}}
		got := dryRunOf(t, cluster, restoreOf(nil), xptest.MR("b"))[0].Outcome
		if got.Action != report.Refuse || got.Code != want || strings.Contains(got.Reason, xp.HowToActivate(definition)) != (want == reason.KindNotActive) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
}

func TestDryRunOfForbiddenKinds(t *testing.T) {
	refused := failingCluster(apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errAPI))
	results := dryRunOf(t, &fakeDryRunCluster{cluster: refused, resources: anything}, restoreOf(nil), xptest.Object("v1", "ConfigMap", "team-a", "c"))
	if got := results[0].Outcome; got.Action != report.Create || !strings.Contains(got.Reason, "[NotRead]") {
		t.Errorf("A backup can have objects that the user may not read; got %+v", got)
	}
}

func TestDryRunErrors(t *testing.T) {
	s := newShop()
	for _, cluster := range []*fakeDryRunCluster{
		{cluster: failingCluster(errAPI), resources: anything}, {cluster: live(), resources: failing}, {cluster: &cluster{configErr: errAPI}, resources: anything},
	} {
		if _, err := dryRunResults(t.Context(), packed(t, s.all()...), cluster, restoreOf(nil)); !errors.Is(err, errAPI) {
			t.Errorf("An unreadable cluster must give an error, not refusals; got %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dryRunResults(ctx, packed(t, s.all()...), nil, restoreOf(nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled dry run must stop; got %v", err)
	}
}

// An unconverted cluster can't convert MRs, so it can't list them.
type unconverted struct{ *fakeDryRunCluster }

func (u unconverted) Exists(ctx context.Context, r xp.Ref) (bool, error) {
	if r.Kind == xptest.ManagedKind {
		return false, errDown
	}

	return u.cluster.Exists(ctx, r)
}

func (u unconverted) Named(ctx context.Context, gvk schema.GroupVersionKind, name string) ([]xp.Managing, error) {
	if gvk.Kind == xptest.ManagedKind {
		return nil, errDown
	}

	return u.cluster.Named(ctx, gvk, name)
}

func TestDryRunOfUnconvertedKinds(t *testing.T) {
	s := newShop()
	b := packed(t, s.all()...)
	results, err := dryRunResults(t.Context(), b, unconverted{&fakeDryRunCluster{cluster: live(), resources: anything}}, restoreOf(nil))
	if err != nil {
		t.Fatalf("one kind that cannot be converted must not stop the dry run: %v", err)
	}
	if len(results) != len(b.Items) {
		t.Errorf("the dry run of %d items has %d results", len(b.Items), len(results))
	}
	for _, f := range results {
		if named := strings.Contains(f.Outcome.Reason, errDown.Error()); named != (f.Item.Kind == xptest.ManagedKind) {
			t.Errorf("%s: %s", f.Item, f.Outcome.Reason)
		}
	}
}

// An untrusted backup decides how long a chain of owners is, and must not decide the depth of the
// stack.
func TestDryRunOfAChain(t *testing.T) {
	depth := func(t *testing.T, length int) int {
		t.Helper()
		var chain []*unstructured.Unstructured
		name := func(n int) string { return fmt.Sprintf("x%05d", n) }
		for n := range length {
			chain = append(chain, xptest.XR(name(n), xptest.ControlledBy(xptest.XR(name(n+1))), xptest.NeverComposed()))
		}
		deepest := 0
		stack := make([]uintptr, 100_000)
		cluster := &fakeDryRunCluster{cluster: &cluster{}, resources: func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
			deepest = max(deepest, runtime.Callers(0, stack))

			return anything(gvk)
		}}
		results := dryRunOf(t, cluster, restoreOf(nil), chain...)
		if len(results) != length {
			t.Fatalf("got %d results for %d items", len(results), length)
		}
		for i, f := range results {
			if want := name(length - 1 - i); f.Item.Name != want || (f.For == nil) != (i == length-1) {
				t.Errorf("result %d is that of %s for %v, want %s: an owner must come before its objects", i, f.Item, f.For, want)
			}
		}

		return deepest
	}
	if short, long := depth(t, 2), depth(t, 300); short != long {
		t.Errorf("the dry run of a chain of 300 is %d calls deep, and that of 2 is %d", long, short)
	}
}

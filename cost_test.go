package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"
	ibav1 "github.com/vmware-tanzu/velero/pkg/plugin/velero/itemblockaction/v1"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// zooKinds are the kinds of xptest's objects, which the API server serves.
func zooKinds() []*metav1.APIResourceList {
	many := make([]metav1.APIResource, 300) // Of which no object exists.
	for n := range many {
		many[n] = metav1.APIResource{Name: fmt.Sprintf("k%ds", n), Kind: fmt.Sprint("K", n)}
	}

	return []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"},
		}},
		{GroupVersion: xptest.LegacyVersion, APIResources: []metav1.APIResource{
			{Name: "xorders", Kind: xptest.LegacyKind},
			{Name: "orderclaims", Kind: xptest.ClaimKind, Namespaced: true},
			{Name: "orders", Kind: xptest.ModernKind, Namespaced: true},
		}},
		{GroupVersion: "cloud.example.org/v1alpha1", APIResources: []metav1.APIResource{{Name: "buckets", Kind: "Bucket"}}},
		{GroupVersion: "cloud.m.example.org/v1alpha1", APIResources: []metav1.APIResource{{Name: "buckets", Kind: "Bucket", Namespaced: true}}},
		{GroupVersion: "many.example.org/v1", APIResources: many},
		{GroupVersion: "velero.io/v1", APIResources: []metav1.APIResource{{Name: "restores", Kind: "Restore", Namespaced: true}}},
		{GroupVersion: xp.GroupAPIExtensions + "/v1", APIResources: []metav1.APIResource{
			{Name: "compositeresourcedefinitions", Kind: "CompositeResourceDefinition"},
			{Name: "compositions", Kind: "Composition"},
			{Name: "compositionrevisions", Kind: "CompositionRevision"},
		}},
		{GroupVersion: xp.GroupProtection + "/v1beta1", APIResources: []metav1.APIResource{
			{Name: "usages", Kind: "Usage", Namespaced: true}, {Name: "clusterusages", Kind: "ClusterUsage"},
		}},
	}
}

// A meter counts what the actions cost.
type meter struct {
	client    *fake.FakeDynamicClient
	discovery *discovery.FakeDiscovery
	lines     int
	logged    int
}

// Fire counts a line of the log.
func (m *meter) Fire(e *logrus.Entry) error {
	text, err := e.String()
	m.lines++
	m.logged += len(text)

	return err
}

// Levels are those that Velero's server logs by default.
func (*meter) Levels() []logrus.Level { return logrus.AllLevels[:logrus.InfoLevel+1] }

// A bill is what a call of the plugin for an item costs.
type bill struct {
	allocated, requests, lines, logged, items, returned int
	took                                                time.Duration
}

func (b bill) String() string {
	return fmt.Sprintf("%d KiB allocated, %d requests, %d lines of %d KiB in the log, %d items requested, %d KiB in the operation, %s", b.allocated>>10, b.requests, b.lines, b.logged>>10,
		b.items, b.returned>>10, b.took.Round(time.Millisecond))
}

// measured returns what a function costs. It returns the number of items, and the length of the
// operation's ID.
func (m *meter) measured(do func() (items, returned int)) bill {
	m.client.ClearActions()
	m.discovery.ClearActions()
	m.lines, m.logged = 0, 0
	var b bill
	begun := time.Now()
	b.allocated = int(xptest.Allocated(func() { b.items, b.returned = do() })) //nolint:gosec // No machine has so much memory.
	b.took = time.Since(begun)
	b.requests, b.lines, b.logged = len(m.client.Actions())+len(m.discovery.Actions()), m.lines, m.logged

	return b
}

// newMeter returns the actions of a backup or restore in a cluster without objects.
func newMeter(t *testing.T) (*meter, *actions, logrus.FieldLogger) {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{}
	for _, served := range zooKinds() {
		gv, err := schema.ParseGroupVersion(served.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range served.APIResources {
			lists[gv.WithResource(k.Name)] = k.Kind + "List"
		}
	}
	m := &meter{
		client:    fake.NewSimpleDynamicClientWithCustomListKinds(kruntime.NewScheme(), lists),
		discovery: &discovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: zooKinds()}},
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(m)

	return m, newActions(cluster.New(m.client, m.discovery), nil, ""), log
}

func action[T any](t *testing.T, a any) T {
	t.Helper()
	typed, ok := a.(T)
	if !ok {
		t.Fatalf("got a %T", a)
	}

	return typed
}

// decoded returns the object as Velero gives it to the plugin.
func decoded(t *testing.T, b []byte) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(b, &u.Object); err != nil {
		t.Fatal(err)
	}

	return u
}

// What one object of a tenant, or of a backup, can cost at most in one call of the plugin. An object
// of 1.5 MiB is the largest that etcd takes by default.
const (
	largest = 3 << 19
	// mostBytes is a fifth of the memory that Velero's server has by default. To decode such an
	// object alone, as Velero itself does several times, allocates up to 66 MiB.
	mostBytes = 96 << 20
	// mostOfMark is for an object of a few KiB that only has a hostile mark.
	mostOfMark = 8 << 20
	// mostRequests are two lists of each of 256 kinds, and 512 single objects.
	mostRequests = 1100
	// mostLines and mostLogged leave room for a few sorts of 20 warnings.
	mostLines, mostLogged = 100, 128 << 10
	// mostReturned is for the ID of an operation, or an error.
	mostReturned = 20 << 10
	// mostInspected is for the command inspect, which runs where a user starts it.
	mostInspected = 768 << 20
	// longestCall is a hundred times what a call takes on an idle machine.
	longestCall = time.Minute
)

func (b bill) check(t *testing.T, what string, bytes int) {
	t.Helper()
	t.Logf("%s: %s", what, b)
	if b.allocated > bytes || b.requests > mostRequests || b.lines > mostLines || b.logged > mostLogged || b.returned > mostReturned || b.items > xp.MostRefs || b.took > longestCall {
		t.Errorf("%s costs too much: %s", what, b)
	}
}

// No object that a tenant can write, and no backup, costs more than bounded memory, time, requests
// or log lines. docs/limits.md has the numbers.
func TestHostileObjectsAreCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("the test handles 100 MiB of objects")
	}
	for name, u := range xptest.Huge(largest) {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			most := mostBytes
			if strings.HasPrefix(name, "Mark") {
				most = mostOfMark
			}
			backUp(t, b, most)
			for of, spec := range map[string]velerov1.RestoreSpec{
				"labels": {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
				"namespaces": {
					IncludedNamespaces: []string{xptest.Namespace}, ExcludedResources: []string{"buckets.cloud.example.org"}, ExistingResourcePolicy: velerov1.PolicyTypeUpdate,
				},
			} {
				restore(t, b, most, of, spec)
			}
			var out, stderr bytes.Buffer
			backup := xptest.Backup(u)
			m, _, _ := newMeter(t)
			m.measured(func() (int, int) {
				hooks.Run(t.Context(), []string{"inspect", "-"}, hooks.Program{In: bytes.NewReader(backup), Out: &out, Err: &stderr, DryRunner: dryRun})

				return 0, 0
			}).check(t, "inspect", mostInspected/mostBytes*most)
		})
	}
}

// backUp measures a backup of an item.
func backUp(t *testing.T, b []byte, most int) {
	t.Helper()
	m, a, log := newMeter(t)
	tree, block := action[biav2.BackupItemAction](t, a.tree(log)), action[ibav1.ItemBlockAction](t, a.block(log))
	item, again := decoded(t, b), decoded(t, b)
	m.measured(func() (int, int) {
		related, err := block.GetRelatedItems(item, &velerov1.Backup{})
		if err != nil {
			t.Error(err)
		}

		return len(related), 0
	}).check(t, "its block in a backup", most)
	m.measured(func() (int, int) {
		_, items, _, _, err := tree.Execute(again, &velerov1.Backup{})
		if err != nil {
			t.Error(err)
		}

		return len(items), 0
	}).check(t, "its tree in a backup", most)
}

// restore measures a restore of an item.
func restore(t *testing.T, b []byte, most int, of string, spec velerov1.RestoreSpec) {
	t.Helper()
	m, a, log := newMeter(t)
	restore := &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "monday"}, Spec: spec}
	original := decoded(t, b)
	for n, r := range []riav2.RestoreItemAction{
		action[riav2.RestoreItemAction](t, a.order(restoreitem.Crossplane(), log)), action[riav2.RestoreItemAction](t, a.adopt(restoreitem.Crossplane(), log)),
	} {
		item := decoded(t, b)
		for _, field := range []string{"managedFields", "ownerReferences", "uid", "resourceVersion"} { // As Velero does.
			unstructured.RemoveNestedField(item.Object, "metadata", field)
		}
		m.measured(func() (items, returned int) {
			out, err := r.Execute(&velero.RestoreItemActionExecuteInput{Item: item, ItemFromBackup: original, Restore: restore})
			if err != nil {
				return 0, len(err.Error())
			}

			return len(out.AdditionalItems), len(out.OperationID)
		}).check(t, []string{"order", "adopt"}[n]+" in a restore of "+of, most)
	}
}

// A tenant's XRs that list kinds that no server has cost a backup few requests and little memory.
func TestUnservedKindsAreCheap(t *testing.T) {
	const xrs, kinds = 20, 15_000
	const mostRequests, mostBytes = 10, 20 << 20
	m, a, log := newMeter(t)
	tree, block := action[biav2.BackupItemAction](t, a.tree(log)), action[ibav1.ItemBlockAction](t, a.block(log))
	before := heap()
	for x := range xrs {
		refs := make([]any, kinds)
		for n := range refs {
			ref := map[string]any{"apiVersion": fmt.Sprintf("g%d.x%d.org/v1", n, x), "kind": "K", "name": "n"}
			switch n % 3 {
			case 1:
				ref["apiVersion"], ref["kind"] = xptest.LegacyVersion, fmt.Sprintf("K%dx%d", n, x)
			case 2:
				ref["apiVersion"], ref["kind"] = fmt.Sprintf("example.org/v%d", n+x*kinds), xptest.LegacyKind+"s"
			}
			refs[n] = ref
		}
		xr := xptest.XR(fmt.Sprint("x", x), xptest.Field(refs, "spec", "resourceRefs"))
		if _, err := block.GetRelatedItems(xr.DeepCopy(), &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
		if _, _, _, _, err := tree.Execute(xr, &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
		if dangling, err := xp.UnresolvedRefs(xr); err != nil || len(dangling) != kinds {
			t.Fatalf("a restore would wait for %d of %d kinds that are not served, error %v", kinds-len(dangling), kinds, err)
		}
	}
	if m.lines > xrs*30 {
		t.Errorf("%d lines were written for %d XRs", m.lines, xrs)
	}
	if after := heap(); after > before+mostBytes {
		t.Errorf("%d bytes more are in use", after-before)
	}
	served, perXR := len(m.discovery.Actions()), len(m.client.Actions())/xrs
	const perXRLimit = 8 // The CompositionRevision, the Composition and the XRD, which are missing, each time.
	if served > mostRequests || perXR > perXRLimit {
		t.Errorf("%d requests for the served kinds, and %d for each XR", served, perXR)
	}
	runtime.KeepAlive(a)
}

// heap returns the bytes in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)

	return stats.HeapAlloc
}

// The cost of each object must not depend on their number. Counts show that on any machine, times
// do not.
func TestInspectIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("the test inspects thousands of objects twice")
	}
	const small, large = 1000, 4000
	each := func(objects int) (allocations, bytesEach float64) {
		var backup, out, stderr bytes.Buffer
		if err := xptest.Many(&backup, objects); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code := hooks.Run(t.Context(), []string{"inspect", "-"}, hooks.Program{In: &backup, Out: &out, Err: &stderr, DryRunner: dryRun})
		runtime.ReadMemStats(&after)
		if code != hooks.ExitProblems {
			t.Fatalf("inspect ended with %d: %s", code, stderr.String())
		}

		return float64(after.Mallocs-before.Mallocs) / float64(objects), float64(after.TotalAlloc-before.TotalAlloc) / float64(objects)
	}
	each(small) // The first run pays the one-time costs.
	fewAllocations, fewBytes := each(small)
	manyAllocations, manyBytes := each(large)
	const more, enough = 1.1, 1000
	if manyAllocations > more*fewAllocations || manyBytes > more*fewBytes {
		t.Errorf("each of %d objects takes %.0f allocations and %.0f bytes, and each of %d takes %.0f and %.0f", small, fewAllocations, fewBytes, large, manyAllocations, manyBytes)
	}
	if manyAllocations > enough {
		t.Errorf("an object takes %.0f allocations", manyAllocations)
	}
}

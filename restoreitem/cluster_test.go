package restoreitem

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A cluster is a fake of the cluster that is restored to.
type cluster struct {
	objects []*unstructured.Unstructured
	// since are the objects that other writers have created since their kinds were first read.
	since []*unstructured.Unstructured
	// configMap is the data of any ConfigMap that is read by name.
	configMap map[string]string
	// config are the settings.
	config map[string]string
	// reconciled are the kinds that Crossplane or a provider reconciles.
	reconciled []string

	// Errors of the methods. Owner, Exists and Named share err.
	err, configErr, reconciledErr, modifierErr, restoreErr error
	// restore is the live Restore.
	restore map[string]any
	// takeable are the claims that another writer created.
	takeable []string
	// taken is the XR that was taken over.
	taken    *unstructured.Unstructured
	takenErr error
	// takenWith is the hold of the XR that was taken over.
	takenWith hold.Hold

	// key signs marks.
	key    hold.Key
	keyErr error
	// keyIn is the namespace of the last MarkKey call.
	keyIn string
	// returned is the status that was written, by object.
	returned map[string]map[string]any

	// managed are the objects whose field managers were to be written back.
	managed    []string
	managedErr error
	movedErr   error

	// ahead is by how much its API server's clock is ahead.
	ahead time.Duration

	// asked are the calls: the method and its object.
	asked []string
}

// live returns a cluster with the given objects.
func live(objects ...*unstructured.Unstructured) *cluster { return &cluster{objects: objects} }

// failingCluster returns a cluster whose live objects can't be read.
func failingCluster(err error) *cluster { return &cluster{err: err} }

// Owner finds cluster-scoped owners from any namespace.
func (c *cluster) Owner(_ context.Context, ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, error) {
	c.asked = append(c.asked, "owner "+ref.Kind+" "+namespace+"/"+ref.Name)
	if c.err != nil {
		return nil, c.err
	}
	for _, u := range c.objects {
		if u.GetAPIVersion() == ref.APIVersion && u.GetKind() == ref.Kind && u.GetName() == ref.Name && (u.GetNamespace() == "" || u.GetNamespace() == namespace) {
			return u, nil
		}
	}

	return nil, apierrors.NewNotFound(schema.GroupResource{}, ref.Name)
}

func (c *cluster) Exists(_ context.Context, r xp.Ref) (bool, error) {
	c.asked = append(c.asked, "exists "+r.String())
	for _, u := range c.objects {
		if xp.RefTo(u).ID() == r.ID() {
			return true, c.err
		}
	}

	return false, c.err
}

func (c *cluster) ExistsNow(ctx context.Context, r xp.Ref) (bool, error) {
	c.objects, c.since = append(c.objects, c.since...), nil

	return c.Exists(ctx, r)
}

func (c *cluster) Composing(_ context.Context, key hold.Key, gvk schema.GroupVersionKind, composition string) ([]xp.Ref, error) {
	c.asked = append(c.asked, "composing "+gvk.Kind+" "+composition)
	var composing []xp.Ref
	for _, u := range c.objects {
		if u.GroupVersionKind() == gvk && key.Composes(u) && xp.CompositeFrom(u).Composition() == composition {
			composing = append(composing, xp.RefTo(u))
		}
	}

	return composing, c.err
}

func (c *cluster) Named(_ context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	c.asked = append(c.asked, "named "+gvk.Kind+" "+externalName)
	var named []xp.Managing
	for _, u := range c.objects {
		name := u.GetAnnotations()[xp.AnnotationExternalName]
		if name == "" {
			name, _ = xp.ProviderID(u)
		}
		if u.GroupVersionKind().GroupKind() == gvk.GroupKind() && name == externalName {
			named = append(named, xp.ManagingOf(u))
		}
	}

	return named, c.err
}

func (c *cluster) Moved(_ context.Context, gvk schema.GroupVersionKind, externalName string) ([]xp.Managing, error) {
	var moved []xp.Managing
	for _, u := range c.objects {
		if u.GroupVersionKind().GroupKind() == gvk.GroupKind() && xp.Annotation(u, xp.AnnotationExternalName) == externalName && xp.Label(u, xp.LabelRestore) != "" {
			moved = append(moved, xp.ManagingOf(u))
		}
	}

	return moved, c.movedErr
}

func (c *cluster) ConfigMap(_ context.Context, namespace, name string) (map[string]string, error) {
	c.asked = append(c.asked, "configmap "+namespace+"/"+name)

	return c.configMap, c.modifierErr
}

func (c *cluster) Restore(_ context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	c.asked = append(c.asked, "restore "+namespace+"/"+name)

	return &unstructured.Unstructured{Object: c.restore}, c.restoreErr
}

func (c *cluster) IsReconciled(_ context.Context, gvk schema.GroupVersionKind) (bool, error) {
	c.asked = append(c.asked, "reconciled "+gvk.Kind)

	return slices.Contains(c.reconciled, gvk.Kind), c.reconciledErr
}

func (c *cluster) ReturnStatus(_ context.Context, _ hold.Key, r xp.Ref, status map[string]any) error {
	if c.returned == nil {
		c.returned = map[string]map[string]any{}
	}
	c.returned[r.String()] = status

	return c.err
}

func (c *cluster) ServerTime(own time.Time) time.Time { return own.Add(c.ahead) }

func (c *cluster) MarkKey(_ context.Context, namespace string) (hold.Key, error) {
	c.keyIn = namespace

	return c.key, c.keyErr
}

func (c *cluster) Settings(_ context.Context, namespace string) (map[string]string, error) {
	c.asked = append(c.asked, "settings in "+namespace)

	return c.config, c.configErr
}

func restoreOf(mapping map[string]string) *velerov1.Restore {
	return &velerov1.Restore{
		ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "monday"},
		Spec:       velerov1.RestoreSpec{NamespaceMapping: mapping},
	}
}

// at returns a clock that stands still.
func at(seconds int) func() time.Time {
	return func() time.Time { return time.Date(2026, 1, 2, 3, 4, seconds, 0, time.UTC) }
}

// An adopted is the result for an item.
type adopted struct {
	*velero.RestoreItemActionExecuteOutput

	// object is what Velero is to create, nil if the action did not change the item.
	object *unstructured.Unstructured
	// logged are the levels and messages in the log, and codes their codes.
	logged []string
	codes  []reason.Code
	// note is what the restore reports of it, and failed means that the operation fails with it.
	note   string
	failed bool
	err    error
	// item was restored to the cluster.
	item    *unstructured.Unstructured
	cluster *cluster
}

// adopt runs the action on an item. The test fails if that changes the item in the backup.
func adopt(t *testing.T, c *cluster, item *unstructured.Unstructured, restore *velerov1.Restore) adopted {
	t.Helper()

	return adoptWith(t, Shared{}, c, item, restore)
}

func adoptWith(t *testing.T, shared Shared, c *cluster, item *unstructured.Unstructured, restore *velerov1.Restore) adopted {
	t.Helper()
	log, hook := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), c, nil, log, shared)
	a.now = at(5)
	before := item.DeepCopy()
	out, err := a.Execute(inputFor(item, restore))
	got := adopted{RestoreItemActionExecuteOutput: out, err: err, item: item, cluster: c}
	if out != nil {
		// Notes have tests of their own.
		operation := *out
		id, note, _ := strings.Cut(out.OperationID, noteAfter)
		progress := velero.OperationProgress{}
		if noteText(out.OperationID, &progress) {
			id = ""
		} else {
			noteText(note, &progress)
		}
		operation.OperationID, got.note, got.failed = id, progress.Description, progress.Err != ""
		got.RestoreItemActionExecuteOutput, got.object = &operation, updated(out)
	}
	for _, e := range hook.AllEntries() {
		code, _ := e.Data["reason"].(string)
		got.logged, got.codes = append(got.logged, e.Level.String()+": "+e.Message), append(got.codes, reason.Code(code))
	}
	if diff := cmp.Diff(before, item); diff != "" {
		t.Errorf("the backed-up item was changed: %s", diff)
	}

	return got
}

// updated returns the object that an action returns, nil if it did not change the item.
func updated(out *velero.RestoreItemActionExecuteOutput) *unstructured.Unstructured {
	if out.UpdatedItem == nil {
		return nil
	}

	return &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
}

// hold returns the hold of what was restored, nil if it has none.
func (a adopted) hold(t *testing.T) *hold.Hold {
	t.Helper()
	if a.err != nil {
		t.Fatal(a.err)
	}
	if a.object == nil {
		return nil
	}
	h, err := hold.Of(a.object)
	if err != nil {
		t.Fatal(err)
	}

	return h
}

// An adoptCase is an item that is restored beside what is live, and what is wanted of the result.
type adoptCase[W any] struct {
	reason string
	item   *unstructured.Unstructured
	// live is an empty cluster if it is nil, and config are its settings.
	live   *cluster
	config map[string]string
	shared Shared
	// restore is a Restore of everything if it is nil, and before is what it has come to before.
	restore *velerov1.Restore
	before  *unstructured.Unstructured
	want    W
	// err is the error, which can be errAny.
	err error
}

// runAdopts runs Adopt on the item of each case, and compares what of returns with what is wanted.
func runAdopts[W any](t *testing.T, cases map[string]adoptCase[W], of func(t *testing.T, out adopted) W) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, restore := tc.live, tc.restore
			if c == nil {
				c = live()
			}
			if tc.config != nil {
				c.config = tc.config
			}
			if restore == nil {
				restore = restoreOf(nil)
			}
			if tc.before != nil {
				tc.shared.Requested = &RequestedItems{}
				execute(t, newOrder(tc.shared), tc.before, restore)
			}
			out := adoptWith(t, tc.shared, c, tc.item, restore)
			if !errors.Is(out.err, tc.err) && (!errors.Is(tc.err, errAny) || out.err == nil) {
				t.Fatalf("%s\ngot error %v", tc.reason, out.err)
			}
			if out.err != nil {
				return
			}
			if diff := cmp.Diff(tc.want, of(t, out), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// newOrder and newAdopt return actions that share what is given, and log nothing.
func newOrder(shared Shared) *Order {
	log, _ := logtest.NewNullLogger()

	return NewOrder(Crossplane(), kindsFn(served), log, shared)
}

func newAdopt(c Cluster, shared Shared) *Adopt {
	log, _ := logtest.NewNullLogger()

	return NewAdopt(Crossplane(), c, nil, log, shared)
}

// execute runs an action on an item. The test fails if that fails.
func execute(t *testing.T, a riav2.RestoreItemAction, item *unstructured.Unstructured, restore *velerov1.Restore) *velero.RestoreItemActionExecuteOutput {
	t.Helper()
	out, err := a.Execute(inputFor(item, restore))
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// restoreWith returns a Restore with a spec.
func restoreWith(spec velerov1.RestoreSpec) *velerov1.Restore {
	r := restoreOf(nil)
	r.Spec = spec

	return r
}

// held returns u with a hold, as a restore holds it or as a backup has it.
func held(u *unstructured.Unstructured, h hold.Hold) *unstructured.Unstructured {
	u = u.DeepCopy()
	if _, err := hold.Put(u, h); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

func (c *cluster) ReturnManagers(_ context.Context, _ *unstructured.Unstructured, r xp.Ref) error {
	c.managed = append(c.managed, r.String())

	return c.managedErr
}

func (c *cluster) TakeOver(
	_ context.Context, _ hold.Key, _ *unstructured.Unstructured, r xp.Ref, of hold.Hold, _ map[string]string,
) (*unstructured.Unstructured, error) {
	c.takenWith = of
	c.asked = append(c.asked, "take over "+r.String())

	return c.taken, c.takenErr
}

func (c *cluster) CanTakeOver(_ context.Context, r xp.Ref) (bool, error) {
	return slices.Contains(c.takeable, r.String()), c.takenErr
}

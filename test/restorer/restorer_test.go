package restorer

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/client"
	"github.com/vmware-tanzu/velero/pkg/cmd/server/config"
	veleroDiscovery "github.com/vmware-tanzu/velero/pkg/discovery"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"github.com/vmware-tanzu/velero/pkg/restore"
	"github.com/vmware-tanzu/velero/pkg/util/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	plugincluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/restorer/forest"
)

var (
	seedFlag  = flag.Uint64("forest.seed", 0, "the first seed; that of a failure is printed")
	countFlag = flag.Uint64("forest.count", 15, "how many forests to restore")
)

// TestForestsByVelero restores random forests with Velero's own engine into a real API server, and
// checks the same promises there.
func TestForestsByVelero(t *testing.T) {
	c := newCluster(t)
	c.collect(t.Context(), t)
	t.Run("Overtaken", func(t *testing.T) { testOvertaken(t, c) })
	t.Run("Tampered", func(t *testing.T) { testTampered(t, c) })
	c.clear(t.Context(), t)
	objects := 0
	for seed := *seedFlag; seed < *seedFlag+*countFlag; seed++ {
		s := play(t, c, seed)
		objects += len(s.First.Created)
		for name, broken := range forest.Judge(s) {
			t.Errorf("%s is broken; to see it again: cd test/restorer && go test -run TestForestsByVelero -forest.seed %d -forest.count 1\n%s\n%d times, such as: %s", name, seed,
				s.Describe(), len(broken), strings.Join(broken[:min(5, len(broken))], "\n"))
		}
		c.clear(t.Context(), t)
	}
	t.Logf("%d forests from seed %d: %d objects created", *countFlag, *seedFlag, objects)
	if objects == 0 {
		t.Error("nothing was restored, so nothing was judged")
	}
}

// play generates a forest and restores it twice.
func play(t *testing.T, c *cluster, seed uint64) *forest.Scenario {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // It must be the same every time.
	s := &forest.Scenario{Forest: forest.Generate(seed, forest.Limits{Servable: true, Largest: 40}), Mask: mask}
	s.Archive = forest.BackUp(s.Forest, forest.Backups(s.Forest, random), random, forest.Defect{})
	of := forest.Restores(s.Forest, random, false)
	s.First = run(t, c, s.Archive, of)
	again := of.DeepCopy()
	again.Name = "tuesday"
	s.Second = run(t, c, s.Archive, again)
	for _, r := range []*forest.Run{s.Second} {
		maskAll(r.Before, of)
		maskAll(r.After, of)
	}

	return s
}

// mask removes the fields that the API server sets on every object.
func mask(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if u.GetKind() == "Deployment" {
		unstructured.RemoveNestedField(u.Object, "spec")
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
}

// maskAll removes the fields that --existing-resource-policy=update changes on objects unrelated to
// Crossplane.
func maskAll(all map[xp.ID]*unstructured.Unstructured, of *velerov1.Restore) {
	if of.Spec.ExistingResourcePolicy != velerov1.PolicyTypeUpdate {
		return
	}
	for _, u := range all {
		for _, field := range []string{"resourceVersion", "managedFields", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		l := u.GetLabels()
		delete(l, velerov1.RestoreNameLabel)
		u.SetLabels(l)
	}
}

// run restores a backup with Velero's engine.
func run(t *testing.T, c *cluster, a *forest.Archive, of *velerov1.Restore) *forest.Run {
	t.Helper()
	ctx := t.Context()
	r := &forest.Run{Of: of, Record: &forest.Record{}, Failed: map[xp.Item]error{}, Tried: map[xp.Item]bool{}, Before: c.all(ctx, t)}
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	w := &witness{DynamicFactory: client.NewDynamicFactory(c.dynamic)}
	warnings, errs := engine(t, c, w).Restore(&restore.Request{
		Log: quiet, Restore: of, Backup: a.Of, BackupReader: bytes.NewReader(xptest.Backup(a.Objects()...)), DisableInformerCache: true,
		ResourceDeletionStatusTracker: kube.NewResourceDeletionStatusTracker(),
	}, actions(c, r), nil)
	c.collect(ctx, t)
	r.After = c.all(ctx, t)
	for _, u := range w.created {
		if i, ok := a.ItemAt(u, of.Spec.NamespaceMapping); ok {
			r.Created = append(r.Created, forest.Restored{Item: i, Object: u})
			if r.After[xp.RefTo(u).ID()] == nil {
				t.Errorf("%s was created, and is gone: %v", xp.String(u), warnings)
			}
		}
	}
	for _, list := range errs.Namespaces {
		for _, e := range list {
			check(t, r, e)
		}
	}
	for _, e := range append(errs.Cluster, errs.Velero...) {
		check(t, r, e)
	}

	return r
}

// engine returns Velero's engine, with clients of the factory.
func engine(t *testing.T, c *cluster, w client.DynamicFactory) restore.Restorer {
	t.Helper()
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	helper, err := veleroDiscovery.NewHelper(c.discovery, quiet)
	must(t, err)
	clientset, err := kubernetes.NewForConfig(c.REST())
	must(t, err)
	kb, err := crclient.New(c.REST(), crclient.Options{})
	must(t, err)
	e, err := restore.NewKubernetesRestorer(helper, w, config.GetDefaultConfig().RestoreResourcePriorities, clientset.CoreV1().Namespaces(), nil, 0, time.Minute,
		time.Minute, quiet, nil, nil, nil, kb, nil)
	must(t, err)

	return e
}

// check fails for an error that comes from no action.
func check(t *testing.T, r *forest.Run, e string) {
	t.Helper()
	for _, err := range r.Failed {
		if strings.Contains(e, err.Error()) {
			return
		}
	}
	t.Errorf("the restore has failed: %s", e)
}

// actions returns the plugin's actions, as its main.go registers them, after a spy.
func actions(c *cluster, r *forest.Run) []riav2.RestoreItemAction {
	known, log := plugincluster.New(c.dynamic, c.discovery), r.Record.Log()
	shared := restoreitem.Shared{Requested: &restoreitem.RequestedItems{}, XRDs: restoreitem.NewXRDCheck(known)}
	all := []riav2.RestoreItemAction{&spy{run: r}}
	for _, o := range restoreitem.Orders() {
		all = append(all, &failing{restoreitem.NewOrder(o.Selector, known, log, shared), r})
	}
	for _, a := range restoreitem.Adopts() {
		all = append(all, &failing{restoreitem.NewAdopt(a.Selector, adopter.NewTarget(known), nil, log, shared), r})
	}

	return all
}

// failing records the errors of an action.
type failing struct {
	riav2.RestoreItemAction

	run *forest.Run
}

// Execute calls the action.
func (f *failing) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	out, err := f.RestoreItemAction.Execute(input)
	if err != nil {
		f.run.Failed[item(input)] = err

		return out, err
	}
	// The client of a plugin's process does the same (velero
	// pkg/plugin/framework/restoreitemaction/v2).
	if out.UpdatedItem == nil {
		out.UpdatedItem = input.Item
	}

	return out, nil
}

// spy is an action that records the items that Velero comes to.
type spy struct {
	riav2.RestoreItemAction

	run *forest.Run
}

// Name is never called by Velero.
func (*spy) Name() string { return "0-spy" }

// AppliesTo selects all.
func (*spy) AppliesTo() (velero.ResourceSelector, error) { return velero.ResourceSelector{}, nil }

// Execute changes nothing.
func (s *spy) Execute(input *velero.RestoreItemActionExecuteInput) (*velero.RestoreItemActionExecuteOutput, error) {
	s.run.Tried[item(input)] = true

	return velero.NewRestoreItemActionExecuteOutput(input.Item), nil
}

func item(input *velero.RestoreItemActionExecuteInput) xp.Item {
	u := &unstructured.Unstructured{Object: input.ItemFromBackup.UnstructuredContent()}
	k, _ := forest.KindOf(u.GroupVersionKind().GroupKind())

	return xp.Item{GroupResource: k.Resource(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// witness records the objects that Velero creates, in order.
type witness struct {
	client.DynamicFactory

	created []*unstructured.Unstructured
}

// ClientForGroupVersionResource returns a client that reports to the witness.
func (w *witness) ClientForGroupVersionResource(gv schema.GroupVersion, r metav1.APIResource, ns string) (client.Dynamic, error) {
	d, err := w.DynamicFactory.ClientForGroupVersionResource(gv, r, ns)

	return &recording{Dynamic: d, witness: w}, err
}

type recording struct {
	client.Dynamic

	witness *witness
}

// Create creates an object.
func (d *recording) Create(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after, err := d.Dynamic.Create(u)
	if err == nil {
		d.witness.created = append(d.witness.created, after.DeepCopy())
	}

	return after, err
}

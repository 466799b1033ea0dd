package backupitem

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A protected cluster serves one kind of Usage.
type protected struct {
	*cluster

	usages []*unstructured.Unstructured
	lists  int
	// refusal is the error of a list of them.
	refusal error
}

func (p *protected) Served(gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	if gk.Group == xp.GroupAPIExtensions && gk.Kind == "Usage" {
		return gk.WithVersion("v1beta1"), true, nil
	}

	return p.cluster.Served(gk)
}

func (p *protected) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if gvk.Group != xp.GroupAPIExtensions || gvk.Version != "v1beta1" {
		return p.cluster.Each(ctx, gvk, namespace, options, do)
	}
	p.lists++
	for _, u := range p.usages {
		do(u)
	}

	return p.refusal
}

func TestLeftovers(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XR("c", xptest.ControlledBy(x), xptest.Labelled(xp.LabelComposite, "x"))
	namesake := xptest.Object("example.org/v1alpha1", "XPart", "", "x", xptest.Finalizers(xp.FinalizerComposite), xptest.ControlledBy(x))
	usage := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object(xp.GroupAPIExtensions+"/v1beta1", "Usage", "", "u", append([]xptest.Option{xptest.Labelled(xp.LabelComposite, "x")}, o...)...)
	}
	mine := usage(xptest.ControlledBy(x))
	cases := map[string]struct {
		reason string
		xr     *unstructured.Unstructured
		usage  *unstructured.Unstructured
		want   string
	}{
		"Listed":       {reason: "A Usage in its XR's list belongs to the XR.", xr: xptest.With(x, xptest.Refs(mine)), usage: mine},
		"Dropped":      {reason: "A Usage that its XR dropped stays out.", xr: x, usage: mine, want: "its XR composed it and no longer lists it"},
		"Terminating":  {reason: "Velero does not back up an object that is being deleted.", xr: xptest.With(x, xptest.Refs(mine)), usage: xptest.With(mine, xptest.Deleting()), want: "it is being deleted"},
		"Lost":         {reason: "A Usage without its XR may be wanted, which only the end of a restore shows.", xr: x, usage: usage()},
		"LostDeleting": {reason: "A Usage that is being deleted stays out.", xr: x, usage: usage(xptest.Deleting()), want: "it is being deleted"},
		"OfTheTree":    {reason: "The plugin names the Usage once, with the XR at the top of the tree.", xr: child, usage: usage(xptest.Deleting())},
		"Namesake":     {reason: "A nested XR with the top XR's name must not name the Usage again.", xr: namesake, usage: usage(xptest.Deleting())},
		"OtherOwner":   {reason: "The plugin names a Usage of another tree with its own XR.", xr: xptest.XR("y"), usage: mine},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &protected{cluster: clusterOf(), usages: []*unstructured.Unstructured{tc.usage}}
			resolver, f := NewResolver(p), &found{}
			for range 2 {
				resolver.leftovers(t.Context(), f, xp.CompositeFrom(tc.xr))
			}
			got := ""
			if len(f.notes) > 0 {
				_, got, _ = strings.Cut(f.notes[0].why.Text, "is left behind: ")
				got, _, _ = strings.Cut(got, ", so ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.lists != 1 {
				t.Errorf("%s\nafter %d lists: -want, +got:\n%s", tc.reason, p.lists, diff)
			}
		})
	}
	p, namespaced := &protected{cluster: clusterOf(), usages: []*unstructured.Unstructured{usage(xptest.Deleting())}}, &found{}
	NewResolver(p).leftovers(t.Context(), namespaced, xp.CompositeFrom(xptest.XRV2("x")))
	if p.lists+len(namespaced.notes) > 0 {
		t.Errorf("a namespaced XR cannot compose a cluster-scoped Usage; after %d lists: %v", p.lists, namespaced.notes)
	}
}

// A failed check for Usages must not cost the backup the XR.
func TestLeftoversThatCannotBeListed(t *testing.T) {
	x := xptest.XR("x")
	objects, items := platform()
	p := &protected{cluster: clusterOf(objects...), refusal: errAPI}
	s := newSession(t, p)
	for range 2 {
		if diff := cmp.Diff(items, s.take(x, &velerov1.Backup{}).Items); diff != "" {
			t.Fatalf("want the XR in the backup with the rest; -want, +got:\n%s", diff)
		}
	}
	if p.lists != 1 || len(s.codes()) != 2 {
		t.Errorf("the plugin listed Usages %d times, and logged %v", p.lists, s.codes())
	}
	for _, e := range s.log.AllEntries() {
		if e.Level != logrus.WarnLevel || !strings.Contains(e.Message, "kubectl get Usage.apiextensions.crossplane.io -A") {
			t.Errorf("the log must name what was not read; got %s %q", e.Level, e.Message)
		}
	}
}

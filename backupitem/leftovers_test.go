package backupitem

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// protected is a cluster that serves one kind of Usage.
type protected struct {
	*cluster

	usages []*unstructured.Unstructured
	lists  int
}

func (p *protected) Served(gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	if gk.Group == xp.GroupAPIExtensions && gk.Kind == "Usage" {
		return gk.WithVersion("v1beta1"), true, nil
	}

	return p.cluster.Served(gk)
}

func (p *protected) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions) ([]*unstructured.Unstructured, error) {
	if gvk.Group != xp.GroupAPIExtensions || gvk.Version != "v1beta1" {
		return p.cluster.List(ctx, gvk, namespace, options)
	}
	p.lists++
	if p.down {
		return nil, errAPI
	}

	return p.usages, nil
}

func TestLeftovers(t *testing.T) {
	x := xptest.XR("x")
	child := xptest.XR("c", xptest.ControlledBy(x), xptest.Labelled(xp.LabelComposite, "x"))
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
		"Listed":      {reason: "What an XR lists is its own.", xr: xptest.With(x, xptest.Refs(mine)), usage: mine},
		"Dropped":     {reason: "What it has dropped is left out.", xr: x, usage: mine, want: "the XR composed it and does not list it any more"},
		"Terminating": {reason: "What is being deleted is not backed up.", xr: xptest.With(x, xptest.Refs(mine)), usage: xptest.With(mine, xptest.Deleting()), want: "it is being deleted"},
		"Lost":        {reason: "Whether it is one without its XR nobody knows before the end of a restore.", xr: x, usage: usage()},
		"LostGoing":   {reason: "But it is not backed up when it is being deleted.", xr: x, usage: usage(xptest.Deleting()), want: "it is being deleted"},
		"OfTheTree":   {reason: "It is named once, with the XR at the top.", xr: child, usage: usage(xptest.Deleting())},
		"Theirs":      {reason: "Another's is named with the other.", xr: xptest.XR("y"), usage: mine},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &protected{cluster: clusterOf(), usages: []*unstructured.Unstructured{tc.usage}}
			links, f := NewLinks(p), &found{}
			for range 2 {
				if err := links.leftovers(t.Context(), f, xp.CompositeFrom(tc.xr)); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if len(f.left) > 0 {
				got, _, _ = strings.Cut(f.left[0].why, ", so ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.lists != 1 {
				t.Errorf("%s\nafter %d lists: -want, +got:\n%s", tc.reason, p.lists, diff)
			}
		})
	}
	p, namespaced := &protected{cluster: clusterOf(), usages: []*unstructured.Unstructured{usage(xptest.Deleting())}}, &found{}
	if err := NewLinks(p).leftovers(t.Context(), namespaced, xp.CompositeFrom(xptest.ModernXR("x"))); err != nil || p.lists+len(namespaced.left) > 0 {
		t.Errorf("a namespaced XR composes no cluster-scoped Usage; after %d lists: %v, %v", p.lists, namespaced.left, err)
	}
	if err := NewLinks(&protected{cluster: &cluster{down: true}}).leftovers(t.Context(), &found{}, xp.CompositeFrom(x)); err == nil {
		t.Error("no answer is not a no")
	}
}

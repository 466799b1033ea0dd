package backupitem

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A tenant's XR can list as much as etcd takes, and the whole backup waits for each request.
func TestManyMissingAreListed(t *testing.T) {
	const many = 10_000
	refs := make([]any, many)
	for i := range refs {
		refs[i] = map[string]any{"apiVersion": xptest.ManagedVersion, "kind": xptest.ManagedKind, "name": fmt.Sprint("b", i)}
	}
	xr := xptest.XR("x", xptest.Field(refs, "spec", "resourceRefs"))
	// It lacks the label, and is found all the same.
	last := xptest.MR(fmt.Sprint("b", many-1), xptest.ControlledBy(xr), xptest.Without("metadata", "labels"))
	objects, _ := platform()
	c := clusterOf(append(objects, xr, last)...)
	got := backUp(t, c, xr, &velerov1.Backup{})
	asked := 0
	for _, n := range c.asked {
		asked += n
	}
	if asked > 100 || len(c.lists) > 10 {
		t.Errorf("%d refs made %d requests and %d lists", many, asked, len(c.lists))
	}
	if len(got.Dangling) != many-1 || !slices.Contains(got.Items, bucket(last.GetName())) {
		t.Errorf("the plugin must find one of %d refs; got %d that dangle", many, len(got.Dangling))
	}
}

// A few missing objects are read singly: there can be tens of thousands of a kind.
func TestFewMissingAreReadSingly(t *testing.T) {
	cases := map[string]struct {
		reason  string
		missing int
		// lists are the lists of Buckets.
		lists []string
	}{
		"Few":     {reason: "A few reads cost less than a list.", missing: maxSingleReads, lists: []string{"Bucket  crossplane.io/composite"}},
		"OneMore": {reason: "A list costs less than many reads.", missing: maxSingleReads + 1, lists: []string{"Bucket  ", "Bucket  crossplane.io/composite"}},
		"AnyMore": {reason: "The plugin lists a kind once.", missing: maxSingleReads + 9, lists: []string{"Bucket  ", "Bucket  crossplane.io/composite"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var missing []*unstructured.Unstructured
			for n := range tc.missing {
				missing = append(missing, xptest.MR(fmt.Sprint("b", n)))
			}
			objects, _ := platform()
			c := clusterOf(objects...)
			if got := backUp(t, c, xptest.XR("x", xptest.Refs(missing...)), &velerov1.Backup{}); len(got.Dangling) != tc.missing {
				t.Errorf("%s\n%d of %d dangle", tc.reason, len(got.Dangling), tc.missing)
			}
			c.checkCost(t)
			if diff := cmp.Diff(tc.lists, c.lists); diff != "" {
				t.Errorf("%s\n-want, +listed:\n%s", tc.reason, diff)
			}
			asked := 0
			for id := range c.asked {
				if id.Kind == xptest.ManagedKind {
					asked++
				}
			}
			if asked != min(tc.missing, maxSingleReads) {
				t.Errorf("%s\nthe plugin read %d resources", tc.reason, asked)
			}
		})
	}
}

// A vast cluster serves every kind whose name begins with K.
type vast struct{ *cluster }

func (v vast) Served(gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	if strings.HasPrefix(gk.Kind, "K") {
		return gk.WithVersion("v1"), true, nil
	}

	return v.cluster.Served(gk)
}

func (v vast) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	if strings.HasPrefix(gvk.Kind, "K") {
		return gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind) + "s"), false, nil
	}

	return v.cluster.Resource(gvk)
}

func (v vast) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if strings.HasPrefix(gvk.Kind, "K") {
		v.lists = append(v.lists, gvk.Kind)

		return nil
	}

	return v.cluster.Each(ctx, gvk, namespace, options, do)
}

// listing returns an XR with references of so many kinds.
func listing(name string, kinds int) *unstructured.Unstructured {
	refs := make([]any, kinds)
	for n := range refs {
		refs[n] = map[string]any{"apiVersion": "cloud.example.org/v1alpha1", "kind": fmt.Sprint("K", n), "name": "k"}
	}

	return xptest.XR(name, xptest.Field(refs, "spec", "resourceRefs"))
}

// An XR can list thousands of kinds, and each costs a list.
func TestKindsOfOneXRAreBounded(t *testing.T) {
	const many = 1000
	objects, _ := platform()
	c := vast{clusterOf(objects...)}
	got := backUp(t, c, listing("x", many), &velerov1.Backup{})
	if len(c.lists) > mostKinds {
		t.Errorf("%d kinds made %d lists", many, len(c.lists))
	}
	if len(got.Dangling) != mostKinds {
		t.Errorf("a resource that was not read may exist, so a restore must wait for it; got %d that dangle", len(got.Dangling))
	}
	if !isOf(reason.TooManyReferences)(got.Left[len(got.Left)-1]) {
		t.Errorf("the last warning must count the others; got %v", got.Left)
	}
}

// Thousands of unresolved references must not give thousands of lines.
func TestWarningsAreSummedUp(t *testing.T) {
	const many = 14_000
	objects, _ := platform()
	s := newSession(t, clusterOf(objects...))
	got := s.take(listing("x", many), &velerov1.Backup{})
	const want = "XOrder x names 13980 more like the 20 before, and the backup does not add them. To see all that it lists, run: " +
		"kubectl get XOrder.example.org x -o yaml [TooManyReferences]"
	if diff := cmp.Diff(want, s.log.LastEntry().Message); len(got.Left) != mostNamed+1 || diff != "" {
		t.Errorf("%d lines; -want, +got:\n%s", len(got.Left), diff)
	}
	if len(got.Dangling) != many {
		t.Errorf("a restore must not wait for missing resources; got %d that dangle", len(got.Dangling))
	}
}

// Annotations on a stored copy must not keep Velero from storing or restoring it: a call of a
// plugin takes 4 MiB.
func TestNotesLeaveRoom(t *testing.T) {
	const length = 100
	objects, _ := platform()
	for _, many := range []int{100, 4_000, 12_000} {
		refs := make([]any, many)
		for n := range refs {
			refs[n] = map[string]any{"apiVersion": "cloud.example.org/v1alpha1", "kind": "Gone", "name": fmt.Sprintf("%0*d", length, n)}
		}
		xr := xptest.XR("x", xptest.Field(refs, "spec", "resourceRefs"))
		s := newSession(t, clusterOf(objects...))
		got := s.take(xr, &velerov1.Backup{})
		b, err := json.Marshal(got.Stored)
		if err != nil || len(b) > longestCopy {
			t.Errorf("%d refs make a copy of %d bytes, error %v", many, len(b), err)
		}
		if len(got.Dangling) == 0 || len(got.Dangling) > many {
			t.Fatalf("%d of %d dangle", len(got.Dangling), many)
		}
		want := fmt.Sprintf("which are too many for a call of a plugin, so a restore waits for %d of them", many-len(got.Dangling))
		if said := s.log.LastEntry().Message; strings.Contains(said, want) != (len(got.Dangling) < many) {
			t.Errorf("%d of %d dangle, and the last line is %s", len(got.Dangling), many, said)
		}
	}
}

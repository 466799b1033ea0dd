package live

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func listed(name, kind string, categories ...string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Verbs: metav1.Verbs{"list"}, Categories: categories}
}

func TestIsReconciled(t *testing.T) {
	s := newServer()
	s.kinds = map[string][]metav1.APIResource{"example.org/v1": {
		listed("xorders", "XOrder", "crossplane", "composite"), listed("orders", "Order", "claim"), listed("buckets", "Bucket", "managed"),
		listed("configs", "Config", "crossplane", "provider"),
		{Name: "configs/status", Kind: "Config", Categories: []string{"managed"}},
	}}
	c := s.cluster()
	for kind, want := range map[string]bool{"XOrder": true, "Order": true, "Bucket": true, "Config": false, "Missing": false} {
		got, err := c.IsReconciled(context.Background(), schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind})
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", kind, got, err)
		}
	}
	if got, err := c.IsReconciled(context.Background(), schema.GroupVersionKind{Group: "other.org", Version: "v1", Kind: "XOrder"}); got || err != nil {
		t.Errorf("a group that is not served: got %v, %v", got, err)
	}
}

func TestKinds(t *testing.T) {
	s := newServer()
	s.kinds = map[string][]metav1.APIResource{
		"example.org/v1": {listed("xorders", "XOrder", "composite"), listed("orders", "Order", "claim")},
		"example.org/v1beta1": {
			listed("xorders", "XOrder", "composite"), listed("olds", "Old", "crossplane", "composite"), {Name: "xorders/status", Kind: "XOrder", Categories: []string{"composite"}},
		},
		"cloud.example.org/v1": {listed("buckets", "Bucket", "crossplane", "managed"), listed("configs", "ProviderConfig", "crossplane")},
	}
	kinds, unread, err := s.cluster().Kinds(context.Background(), xp.CategoryComposite, xp.CategoryManaged)
	if err != nil || len(unread) > 0 {
		t.Fatalf("got %v, %v", unread, err)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return refOf(a).Compare(refOf(b)) })
	want := []schema.GroupVersionKind{
		{Group: "cloud.example.org", Version: "v1", Kind: "Bucket"},
		{Group: "example.org", Version: "v1", Kind: "XOrder"},
		{Group: "example.org", Version: "v1beta1", Kind: "Old"},
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("each kind must come once, in the preferred version of its group if that has it: -want, +got:\n%s", diff)
	}
}

func refOf(gvk schema.GroupVersionKind) xp.Ref {
	return xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind}
}

func TestKindsReturnsUnreadGroups(t *testing.T) {
	s := newServer()
	c := s.cluster()
	if _, err := c.cachedGroups(); err != nil {
		t.Fatal(err)
	}
	s.discoveryErr = errDown
	kinds, unread, err := c.Kinds(context.Background(), xp.CategoryManaged)
	if err != nil || len(kinds) > 0 || len(unread) != len(s.kinds) {
		t.Errorf("a group without an answer must be in the list of unread ones: got %v, %v, %v", kinds, unread, err)
	}
	if _, _, err := s.cluster().Kinds(context.Background(), xp.CategoryManaged); !errors.Is(err, errDown) {
		t.Errorf("without groups no kind is known: got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := c.Kinds(ctx, xp.CategoryManaged); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestIsClaimKind(t *testing.T) {
	s := newServer()
	s.kinds = map[string][]metav1.APIResource{"example.org/v1": {
		listed("xorders", "XOrder", "crossplane", "composite"), listed("orders", "Order", "crossplane", "claim"), listed("buckets", "Bucket", "managed"),
	}}
	c := s.cluster()
	for kind, want := range map[string]bool{"XOrder": false, "Order": true, "Bucket": false, "Missing": false} {
		got, err := c.IsClaimKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: kind})
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v", kind, got, err)
		}
	}
}

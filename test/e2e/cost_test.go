package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// plugin is the plugin's user agent.
const plugin = "velero-plugin-for-crossplane"

// asked returns the plugin's requests to a cluster, from the one with the index after.
func asked(t *testing.T, c *stack.Cluster, after int) []stack.Request {
	t.Helper()
	requests, err := c.Requests(t.Context())
	must(t, err)
	requests = slices.DeleteFunc(requests, func(r stack.Request) bool { return r.UserAgent != plugin })

	return requests[after:]
}

// wantOnlyRead checks that the plugin has sent requests from the index after, and only reads.
func wantOnlyRead(t *testing.T, c *stack.Cluster, what string, after int) {
	t.Helper()
	requests := asked(t, c, after)
	if len(requests) == 0 {
		t.Errorf("%s has asked for nothing", what)
	}
	for _, r := range requests {
		if r.Verb != "get" && r.Verb != "list" {
			t.Errorf("%s has asked to %s %s", what, r.Verb, r.URI)
		}
	}
}

// wantCheap checks that no request gets a single object of these resources, and that no get is sent
// twice.
func wantCheap(t *testing.T, what string, items int64, requests []stack.Request, never ...string) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range requests {
		seen[r.Verb+" "+r.URI]++
		if r.Verb == "get" && slices.Contains(never, r.Resource) {
			t.Errorf("the %s has requested the single object %s %s/%s", what, r.Resource, r.Namespace, r.Name)
		}
	}
	for request, n := range seen {
		if n > 1 && strings.HasPrefix(request, "get ") {
			t.Errorf("the %s asked %d times: %s", what, n, request)
		}
	}
	t.Logf("the %s of %d items took %d requests of the plugin", what, items, len(requests))
	if items < 4*count || int64(len(requests)) > items/2 {
		t.Errorf("that is too much for so few items: %v", seen)
	}
}

// backUpCounted backs up a tenant and checks the number of the plugin's requests.
func (s *suite) backUpCounted(t *testing.T, n *tenant) {
	t.Helper()
	before := len(asked(t, s.source, 0))
	s.backUp(t, s.source, n)
	wantCheap(t, "backup", itemsOf(t, s.source, "Backup", n.Namespace, "totalItems"), withoutKey(t, asked(t, s.source, before)),
		"buckets", "networks", "databases", "secrets")
}

// withoutKey returns requests without those for the key that signs marks, which is read once, and
// created if there is none, for any number of items.
func withoutKey(t *testing.T, requests []stack.Request) []stack.Request {
	t.Helper()
	others := slices.DeleteFunc(slices.Clone(requests), func(r stack.Request) bool { return r.Namespace == "velero" && r.Resource == "secrets" })
	if n := len(requests) - len(others); n > 2 {
		t.Errorf("the key was asked for %d times", n)
	}

	return others
}

// wantCheapRestore checks the requests of a restore up to the first poll of its operations, which
// begins with a list of restored objects. In this restore a Database owns a Secret.
func wantCheapRestore(t *testing.T, c *stack.Cluster, name string, before int) {
	t.Helper()
	requests := asked(t, c, before)
	poll := slices.IndexFunc(requests, func(r stack.Request) bool { return strings.Contains(r.URI, "velero.io%2Frestore-name") })
	if poll < 0 {
		t.Fatal("no operation of the restore was polled")
	}
	wantCheap(t, "restore", itemsOf(t, c, "Restore", name, "itemsRestored"), withoutKey(t, requests[:poll]), "buckets", "networks", "secrets")
}

// itemsOf returns the number of items of a backup or restore.
func itemsOf(t *testing.T, c *stack.Cluster, kind, name, field string) int64 {
	t.Helper()
	r, err := c.Resource(t.Context(), schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: kind}, "velero")
	must(t, err)
	u, err := r.Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	items, _, _ := unstructured.NestedInt64(u.Object, "status", "progress", field)

	return items
}

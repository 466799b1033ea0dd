package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// honest is a tenant who is restored after the hostile ones, beside what they have left.
const honest = "honest"

// hoard is the number of missing objects that an XR lists: over half of etcd's limit of an object.
const hoard = 10_000

// forgeHoard makes a paused XR list more than any XR composes: some of it has kinds that can't be
// read, and names that no object can have.
func forgeHoard(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	refs := []any{
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "t"},
		map[string]any{"apiVersion": "apiextensions.crossplane.io/v99", "kind": "Composition", "name": "c"},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "../" + victim + "/c"},
	}
	for i := range hoard {
		refs = append(refs, map[string]any{"apiVersion": l.managed[0].GetAPIVersion(), "kind": l.managed[0].GetKind(), "name": fmt.Sprint(n.Namespace, "-", i)})
	}
	s.forge(t, n, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationPaused: "true"}},
		"spec":     map[string]any{"crossplane": map[string]any{"resourceRefs": refs}},
	})
}

// testHostile checks, after an honest tenant was restored beside all that the others have left, that an XR
// with very many references came back held.
func (s *suite) testHostile(t *testing.T, forgeries map[string]*forgery) {
	t.Helper()
	f := forgeries["Hoard"]
	logs, err := s.target.Velero(t.Context(), "restore", "logs", f.restores[0])
	must(t, err)
	if strings.Contains(logs, "panic") {
		t.Errorf("the plugin died in the restore of %s", f.namespace)
	}
	hoarder, err := f.tenant.live(t.Context(), s.target)
	must(t, err)
	refs, _, err := unstructured.NestedSlice(hoarder.Object, "spec", "crossplane", "resourceRefs")
	must(t, err)
	if state := holdStateOf(hoarder); state != held || len(refs) < hoard {
		t.Errorf("an XR that lists %d objects came back %s, with %d", hoard, state, len(refs))
	}
	// A write of the plugin to the victim's namespace would be a tenant's, with the plugin's
	// rights.
	requests, err := s.target.Requests(t.Context())
	must(t, err)
	for _, r := range requests {
		if strings.Contains(r.Namespace, victim) && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			t.Errorf("%s of %s %s/%s", r.Verb, r.Resource, r.Namespace, r.Name)
		}
	}
}

// withHonest backs up a tenant who forges nothing.
func (s *suite) withHonest(t *testing.T, namespace string) *tenant {
	t.Helper()
	n := s.few(t, s.source, drill.Platform{Namespace: namespace}, 2)
	s.backUp(t, s.source, n)

	return n
}

// inventions is the number of made-up kinds that an XR lists: about the limit of an object in etcd.
const inventions = 15000

// forgeKinds makes a paused XR list objects of made-up kinds, each with a group of its own.
func forgeKinds(t *testing.T, s *suite, n *tenant, _ *targets) {
	t.Helper()
	var refs []any
	for i := range inventions {
		refs = append(refs, map[string]any{"apiVersion": fmt.Sprintf("g%d.%s/v1", i, invented), "kind": "Made", "name": "up"})
	}
	s.forge(t, n, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationPaused: "true"}},
		"spec":     map[string]any{"crossplane": map[string]any{"resourceRefs": refs}},
	})
}

// invented is the suffix of the made-up groups.
const invented = "invented.example"

// checkKinds checks that the backup has the XR, and the plugin has requested few of its kinds.
func checkKinds(t *testing.T, _ *suite, f *forgery) {
	t.Helper()
	const few = 100
	unserved := 0
	for _, r := range f.asked {
		if strings.Contains(r.URI, invented) || r.Code == http.StatusNotFound {
			unserved++
		}
	}
	t.Logf("in the backup with %d made-up kinds the plugin has made %d requests, %d of them for kinds that are not served", inventions, len(f.asked), unserved)
	if len(f.asked) == 0 || len(f.asked) >= few {
		t.Errorf("%s The plugin has made %d requests in the backup, %d of them for kinds that are not served", f.reason, len(f.asked), unserved)
	}
	for path, content := range f.contents {
		if strings.HasSuffix(path, "/"+f.tenant.Name(0)+".json") && strings.Count(content, invented) >= inventions {
			return
		}
	}
	t.Errorf("%s The backup does not have it", f.reason)
}

// limits are kinds that limit tenants, and that no XR composes.
var limits = []string{"resourcequotas", "networkpolicies", "rolebindings"}

// forgeLimits makes a paused XR list objects of its namespace that it does not compose.
func forgeLimits(t *testing.T, s *suite, n *tenant, _ *targets) {
	t.Helper()
	var refs []any
	objects := limitsIn(n.Namespace, nil)
	must(t, s.source.ApplyObjects(t.Context(), objects...))
	for _, u := range objects {
		refs = append(refs, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()})
	}
	s.forge(t, n, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{annotationPaused: "true"}},
		"spec":     map[string]any{"crossplane": map[string]any{"resourceRefs": refs}},
	})
}

// limitsIn returns one object of each of the limits.
func limitsIn(namespace string, labels map[string]any) []*unstructured.Unstructured {
	meta := map[string]any{"namespace": namespace, "name": namespace + "-limits", "labels": labels}

	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": map[string]any{"hard": map[string]any{"pods": "10"}}}},
		{Object: map[string]any{
			"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta, "spec": map[string]any{"podSelector": map[string]any{}},
		}},
		{Object: map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
			"roleRef": map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
		}},
	}
}

// checkLimits checks that the restores have listed these kinds in their own namespace only, and
// that no such object has an owner.
func checkLimits(t *testing.T, s *suite, f *forgery) {
	t.Helper()
	here := 0
	for _, r := range asked(t, s.target, 0) {
		switch {
		case r.Verb != "list" || !slices.Contains(limits, r.Resource):
		case r.Namespace == f.namespace:
			here++
		default:
			t.Errorf("%s The plugin has asked to %s %s", f.reason, r.Verb, r.URI)
		}
	}
	if here == 0 {
		t.Errorf("the plugin has not looked for what is in %s, so this tests nothing", f.namespace)
	}
	for _, u := range limitsIn(f.namespace, nil) {
		live, err := get(t.Context(), s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		if len(live.GetOwnerReferences()) > 0 {
			t.Errorf("%s %s %s is owned by %v", f.reason, u.GetKind(), u.GetName(), live.GetOwnerReferences())
		}
	}
}

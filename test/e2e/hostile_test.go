package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// honest is a tenant who restores after the hostile ones, beside what they have left.
const honest = "honest"

// hoard is how many objects an XR lists that don't exist: a quarter of what etcd takes, and more than a mark can have.
const hoard = 4000

// forgePaths names what is in the victim's namespace by paths that lead there from the forger's: Velero looks for what is asked for by its file.
func forgePaths(t *testing.T, s *suite, n *tenant, l *loot) {
	t.Helper()
	target := func(u *unstructured.Unstructured) map[string]any {
		return map[string]any{
			"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "resourceRef": map[string]any{"name": "../" + victim + "/" + u.GetName()},
		}
	}
	usages := []*unstructured.Unstructured{forgedUsage(n, "composite", map[string]any{"of": target(l.composite), "reason": "forged"})}
	for i := range l.managed {
		usages = append(usages, forgedUsage(n, fmt.Sprint("managed-", i), map[string]any{"of": target(&l.managed[i]), "reason": "forged"}))
	}
	must(t, s.source.ApplyObjects(t.Context(), usages...))
}

// forgeHoard has an XR, which its owner keeps Crossplane from correcting, list more than anybody composes, some of it of kinds that nobody can read and
// with names that nothing can have.
func forgeHoard(t *testing.T, s *suite, n *tenant, l *loot) {
	t.Helper()
	refs := []any{
		map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "name": "t"},
		map[string]any{"apiVersion": "apiextensions.crossplane.io/v99", "kind": "Composition", "name": "c"},
		map[string]any{"apiVersion": "pkg.crossplane.example/v1", "kind": "Provider", "name": "p"},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "../" + victim + "/c"},
	}
	mr := l.managed[0]
	for i := range hoard {
		refs = append(refs, map[string]any{"apiVersion": mr.GetAPIVersion(), "kind": mr.GetKind(), "name": fmt.Sprint(n.Namespace, "-", i)})
	}
	s.forge(t, n, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true"}},
		"spec":     map[string]any{"crossplane": map[string]any{"resourceRefs": refs}},
	})
}

// testHostile restores an honest tenant beside all that the others have left, and looks whether each of them is told of.
func (s *suite) testHostile(t *testing.T, n *tenant, forgeries map[string]*forgery) {
	t.Helper()
	s.restore(t, n, honest+"-again")
	s.settle(t, n)
	s.wantSound(t, n)
	for name, told := range map[string][]string{
		"Paths": {"nothing can be called that"},
		"Hoard": {"cannot put a hold on", "its 4004 resourceRefs"},
	} {
		f := forgeries[name]
		logs, err := s.target.Velero(t.Context(), "restore", "logs", f.restores[0])
		must(t, err)
		wantTold(t, "the log of the restore of "+f.namespace, logs, append(told, f.namespace)...)
		if strings.Contains(logs, "panic") {
			t.Errorf("the plugin died in the restore of %s", f.namespace)
		}
	}
	// Whoever writes to a namespace in the name of the plugin writes what is theirs.
	requests, err := s.target.Requests(t.Context())
	must(t, err)
	for _, r := range requests {
		if strings.Contains(r.Namespace, victim) && r.Verb != "get" && r.Verb != "list" && r.Verb != "watch" {
			t.Errorf("%s of %s %s/%s", r.Verb, r.Resource, r.Namespace, r.Name)
		}
	}
}

// withHonest backs a tenant up who forges nothing.
func (s *suite) withHonest(t *testing.T) *tenant {
	t.Helper()
	n := s.few(t, s.source, drill.Platform{Namespace: honest}, 2)
	s.backUp(t, s.source, n)

	return n
}

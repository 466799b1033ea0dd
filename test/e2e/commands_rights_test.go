package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// served returns all resources and subresources that the API server serves.
func (s *suite) served(t *testing.T) []schema.GroupResource {
	t.Helper()
	admin, err := kubernetes.NewForConfig(s.target.REST())
	must(t, err)
	_, lists, err := admin.Discovery().ServerGroupsAndResources()
	must(t, err)
	all := map[schema.GroupResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			all[schema.GroupResource{Group: gv.Group, Resource: r.Name}] = true
		}
	}

	return slices.Collect(maps.Keys(all))
}

// testRights grants each role of the examples to its ServiceAccount. It compares all rights of the
// account with those that the role needs.
func (s *suite) testRights(t *testing.T, h *hooked) {
	backup := filepath.Join(t.TempDir(), "backup.tar.gz")
	_, err := s.target.Velero(t.Context(), "backup", "download", h.Namespace, "--output", backup)
	must(t, err)
	served := s.served(t)
	for name, tc := range rolesOf(h, backup) {
		t.Run(name, func(t *testing.T) {
			for _, file := range tc.files {
				must(t, s.target.ApplyObjects(t.Context(), h.example(t, file)...))
			}
			a := s.account(t, tc.namespace, tc.name)
			if !s.version.IsV1() {
				s.wantRights(t, a, served, tc) // They are the same on v1, and there are many.
			}
			s.wantAble(t, a, tc)
		})
	}
	if !s.version.IsV1() {
		t.Run("Aggregated", func(t *testing.T) { s.testAggregated(t, h) })
	}
}

// wantRights checks that an account has no other rights than those of a role. wantAble shows that it has these.
func (s *suite) wantRights(t *testing.T, a *account, served []schema.GroupResource, of role) {
	t.Helper()
	// A right in all namespaces is also one in elsewhere.
	rights := slices.DeleteFunc(a.rights(t, served, of.namespace, elsewhere), isEverybodys)
	for _, r := range rights {
		if !of.may.MatchString(fmt.Sprintf("%s %s.%s %s", r.Verb, r.Resource, r.Group, r.Namespace)) {
			t.Errorf("%s It may %+v.", of.reason, r)
		}
	}
	if of.rights != 0 && len(rights) != of.rights {
		t.Errorf("%s It has these rights: %+v", of.reason, rights)
	}
	clients, err := kubernetes.NewForConfig(a.config)
	must(t, err)
	if _, err := clients.CoreV1().Secrets("velero").Get(t.Context(), "any", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("It may get a Secret: %v", err)
	}
}

// isEverybodys reports whether Kubernetes grants a right to every authenticated user: to review
// one's own identity and rights.
func isEverybodys(r right) bool {
	switch r.Resource + "." + r.Group {
	case "selfsubjectreviews.authentication.k8s.io", "selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io":
		return r.Verb == "create"
	default:
		return false
	}
}

// wantAble runs the commands of a role, and checks that none of their requests is refused.
func (s *suite) wantAble(t *testing.T, a *account, of role) {
	t.Helper()
	for _, line := range slices.Sorted(maps.Keys(of.does)) {
		code := of.does[line]
		if code == asAdministrator {
			code = command(t, s.target, strings.Fields(line)...).code
		}
		before := len(s.requestsOf(t, of))
		if r := commandAs(t, s.target, a.kubeconfig, strings.Fields(line)...); r.code != code {
			t.Errorf("%s\n%s ended with %d:\n%s%s", of.reason, line, r.code, r.stdout, r.stderr)
		}
		for _, r := range s.requestsOf(t, of)[before:] {
			if r.Code == http.StatusForbidden && !slices.Contains(of.without, "*") && !slices.Contains(of.without, r.Resource) {
				t.Errorf("%s\n%s was refused %s %s", of.reason, line, r.Verb, r.URI)
			}
		}
	}
	for line, code := range of.cannot {
		if r := commandAs(t, s.target, a.kubeconfig, strings.Fields(line)...); r.code != code || !strings.Contains(r.stderr, "forbidden") {
			t.Errorf("%s\n%s ended with %d:\n%s%s", of.reason, line, r.code, r.stdout, r.stderr)
		}
	}
}

// requestsOf returns all requests of the account of a role.
func (s *suite) requestsOf(t *testing.T, of role) []stack.Request {
	t.Helper()
	requests, err := s.target.Requests(t.Context())
	must(t, err)

	return slices.DeleteFunc(requests, func(r stack.Request) bool { return r.User != "system:serviceaccount:"+of.namespace+":"+of.name })
}

// viewers are roles that a cluster with packages has besides those that its RBAC manager creates
// for its XRDs: one from Crossplane's chart, and those that the RBAC manager creates for a
// provider's package (crossplane cluster/charts, and internal/controller/rbac/provider/roles).
const viewers = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "crossplane:aggregate-to-view", labels: {rbac.crossplane.io/aggregate-to-view: "true"}}
rules:
- {apiGroups: [""], resources: [events, namespaces], verbs: [get, list, watch]}
- apiGroups: [apiextensions.crossplane.io, pkg.crossplane.io, secrets.crossplane.io, protection.crossplane.io, ops.crossplane.io]
  resources: ["*"]
  verbs: [get, list, watch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "crossplane:provider:cloud:aggregate-to-view", labels: {rbac.crossplane.io/aggregate-to-view: "true"}}
rules:
- {apiGroups: [cloud.example.org, cloud.m.example.org], resources: ["*"], verbs: [get, list, watch]}
`

// testAggregated gets the rights of validate from Crossplane's RBAC manager.
func (s *suite) testAggregated(t *testing.T, h *hooked) {
	ctx := t.Context()
	of := rolesOf(h, "")["Validate"]
	must(t, s.target.AddRBACManager(ctx))
	must(t, s.target.Apply(ctx, []byte(viewers)))
	must(t, s.target.ApplyObjects(ctx, append(h.example(t, "rbac/validate.yaml"), h.example(t, "rbac/validate-aggregated.yaml")...)...))
	a := s.account(t, of.namespace, of.name)
	served := s.served(t)
	s.eventually(t, "the rights that are aggregated", func(context.Context) error {
		has := a.rights(t, served, of.namespace)
		for group, resource := range map[string]string{
			"platform.example.org": "environments", "cloud.example.org": "buckets", "apiextensions.crossplane.io": "compositionrevisions",
		} {
			if r := (right{Verb: "list", Group: group, Resource: resource, Namespace: of.namespace}); !slices.Contains(has, r) {
				return fmt.Errorf("it may not %+v", r)
			}
		}

		return nil
	})
	for _, r := range a.rights(t, served, of.namespace) {
		if !isEverybodys(r) && !slices.Contains([]string{"get", "list", "watch"}, r.Verb) || r.Resource == "secrets" {
			t.Errorf("It may %+v", r)
		}
	}
	s.wantAble(t, a, role{
		reason: "The rights are Crossplane's own.", namespace: of.namespace, name: of.name, does: map[string]int{"validate --strict -n " + h.Namespace: 0},
		without: []string{"deployments"}, // As with validate.yaml.
	})
}

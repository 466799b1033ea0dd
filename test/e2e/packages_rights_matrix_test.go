//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// extra is the rights that a user gives the provider beside those from Crossplane, by the name of
// its ServiceAccount in this cluster.
const extra = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: extra
rules:
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: extra
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: extra
subjects:
- kind: ServiceAccount
  namespace: crossplane-system
  name: %s
`

// activeProvider returns the active revision of the provider. Its ServiceAccount has the same name.
func activeProvider(ctx context.Context, c *stack.Cluster) (string, error) {
	revisions, err := list(ctx, c, schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "ProviderRevision"}, "", "")
	if err != nil {
		return "", err
	}
	for _, u := range revisions {
		if stateOf(&u) == "Active" {
			return u.GetName(), nil
		}
	}

	return "", errors.New("no revision of the provider is active")
}

// giveExtra gives the provider more rights in the source.
func (s *suite) giveExtra(t *testing.T) {
	t.Helper()
	name, err := activeProvider(t.Context(), s.source)
	must(t, err)
	must(t, s.source.Apply(t.Context(), fmt.Appendf(nil, extra, name)))
}

// testExtra expects the provider to have its rights after a restore, or validate to report that
// they are lost and how to grant them again.
func (s *suite) testExtra(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	name, err := activeProvider(ctx, s.target)
	must(t, err)
	config := s.target.REST()
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + systemNamespace + ":" + name}
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	mayList := func() bool {
		_, err := clients.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 1})
		if !apierrors.IsForbidden(err) {
			must(t, err)
		}

		return err == nil
	}
	misplaced := func() []string {
		var next []string
		v, _ := s.judge(t)
		for _, p := range v.Problems {
			if p.Code == "RightsMisplaced" && p.Object.Name == "extra" && p.Severity == "problem" {
				next = append(next, p.Next)
			}
		}

		return next
	}

	if mayList() != (s.version != stack.V24) {
		t.Errorf("Only from v2.4 on the revision has another name, and its ServiceAccount %s lacks the rights that a user granted: %t", name, mayList())
	}
	said := misplaced()
	if mayList() {
		if len(said) > 0 {
			t.Errorf("The provider has its rights, and validate reports that it lacks them: %q", said)
		}

		return
	}
	if len(said) != 1 {
		t.Fatalf("The provider has lost its rights, and validate reports %q", said)
	}
	_, command, _ := strings.Cut(said[0], "kubectl ")
	command, _, _ = strings.Cut(command, ";")
	must(t, newGit(t).kubectl(ctx, s.target, nil, nil, strings.Fields(command)...))
	if said := misplaced(); !mayList() || len(said) > 0 {
		t.Errorf("kubectl %s: the provider may list: %t, and validate reports %q", command, mayList(), said)
	}
}

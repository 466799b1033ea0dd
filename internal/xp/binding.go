package xp

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const groupRBAC = "rbac.authorization.k8s.io"

// Kinds of RBAC.
var (
	KindRoleBinding        = schema.GroupVersionKind{Group: groupRBAC, Version: "v1", Kind: "RoleBinding"}
	KindClusterRoleBinding = schema.GroupVersionKind{Group: groupRBAC, Version: "v1", Kind: "ClusterRoleBinding"}
)

const kindServiceAccount = "ServiceAccount"

// Names of ServiceAccounts in RBAC: the prefix of one, the group of all (or, with a suffix, of all
// in a namespace), the group of all users (kubernetes apiserver pkg/authentication/serviceaccount).
const (
	accountUserPrefix  = "system:serviceaccount:"
	accountsGroup      = "system:serviceaccounts"
	authenticatedGroup = "system:authenticated"
)

// hashLength is the length of the hash that ends the name of a package revision
// (crossplane-runtime xpkg.FriendlyID).
const hashLength = 12

// A Grant is the role that a RoleBinding or ClusterRoleBinding gives.
type Grant struct {
	// Binding is the RoleBinding or ClusterRoleBinding. A Binding with a namespace grants the role
	// there, one without grants it everywhere.
	Binding Ref
	// Role is the kind and name of the role, with a space between them.
	Role string
	// Accounts are the ServiceAccounts that are subjects by name.
	Accounts []Ref

	groups []string
}

// AccountRef names a ServiceAccount.
func AccountRef(namespace, name string) Ref {
	return Ref{APIVersion: "v1", Kind: kindServiceAccount, Namespace: namespace, Name: name}
}

// GrantOf returns what the binding of a user grants. It returns false for any other object, and for
// a binding that Crossplane's RBAC manager makes.
func GrantOf(u *unstructured.Unstructured) (g Grant, ok bool) {
	if gk := u.GroupVersionKind().GroupKind(); gk != KindRoleBinding.GroupKind() && gk != KindClusterRoleBinding.GroupKind() || madeForPackage(u) != "" {
		return Grant{}, false
	}
	kind, _, _ := unstructured.NestedString(u.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
	g = Grant{Binding: RefTo(u), Role: kind + " " + name}
	subjects, _ := u.Object["subjects"].([]any)
	for _, s := range subjects {
		m, _ := s.(map[string]any)
		kind, _ := m["kind"].(string)
		name, _ := m["name"].(string)
		namespace, _ := m["namespace"].(string)
		user, isAccount := strings.CutPrefix(name, accountUserPrefix)
		switch {
		case kind == "Group":
			g.groups = append(g.groups, name)
		case kind == "User" && isAccount:
			namespace, name, _ = strings.Cut(user, ":")
			g.Accounts = append(g.Accounts, AccountRef(namespace, name))
		case kind == kindServiceAccount:
			g.Accounts = append(g.Accounts, AccountRef(namespace, name))
		}
	}

	return g, true
}

// GivesTo reports whether the binding grants the role to a ServiceAccount, by name or by group.
func (g Grant) GivesTo(account Ref) bool {
	return slices.Contains(g.Accounts, account) || slices.ContainsFunc(g.groups, func(group string) bool {
		return group == authenticatedGroup || group == accountsGroup || group == accountsGroup+":"+account.Namespace
	})
}

// IsSameAs reports whether both bindings grant the same role in the same place.
func (g Grant) IsSameAs(o Grant) bool {
	return g.Role == o.Role && g.Binding.Namespace == o.Binding.Namespace
}

// SplitRevisionName returns the part of a package revision's name that precedes the hash. It
// returns false for a name without a hash.
func SplitRevisionName(name string) (pkg string, ok bool) {
	n := strings.LastIndexByte(name, '-')
	if n < 1 || len(name)-n-1 != hashLength || strings.Trim(name[n+1:], "0123456789abcdef") != "" {
		return "", false
	}

	return name[:n], true
}

// RunsAs returns the name of the ServiceAccount of a package revision. That is the name of the
// revision, unless its DeploymentRuntimeConfig in configs has another (crossplane
// internal/controller/pkg/runtime).
func RunsAs(revision *unstructured.Unstructured, configs []*unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(revision.Object, "spec", "runtimeConfigRef", "name")
	for _, c := range configs {
		if name == "" || c.GetName() != name {
			continue
		}
		pod, _, _ := unstructured.NestedString(c.Object, "spec", "deploymentTemplate", "spec", "template", "spec", "serviceAccountName")
		account, _, _ := unstructured.NestedString(c.Object, "spec", "serviceAccountTemplate", "metadata", "name")

		return cmp.Or(pod, account, revision.GetName())
	}

	return revision.GetName()
}

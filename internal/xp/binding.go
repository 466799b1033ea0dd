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

// Names by which RBAC knows ServiceAccounts: one, and all, or all of a namespace (kubernetes
// apiserver pkg/authentication/serviceaccount).
const (
	userOfAccount   = "system:serviceaccount:"
	groupOfAccounts = "system:serviceaccounts"
	groupOfAll      = "system:authenticated"
)

// lengthOfHash is how much of a hash is at the end of the name of a package revision
// (crossplane-runtime xpkg.FriendlyID).
const lengthOfHash = 12

// A Grant is the role that a RoleBinding or ClusterRoleBinding gives.
type Grant struct {
	// Binding is what gives it, in the namespace in which it is given, or everywhere.
	Binding Ref
	// Role is the kind and the name of what is given.
	Role string
	// Accounts are the ServiceAccounts that are named.
	Accounts []Ref

	groups []string
}

// AccountRef names a ServiceAccount.
func AccountRef(namespace, name string) Ref {
	return Ref{APIVersion: "v1", Kind: kindServiceAccount, Namespace: namespace, Name: name}
}

// GrantOf returns what a person's binding gives; ok is false for anything else, and for what
// Crossplane's RBAC manager makes.
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
		user, isAccount := strings.CutPrefix(name, userOfAccount)
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

// GivesTo reports whether a ServiceAccount is given the role.
func (g Grant) GivesTo(account Ref) bool {
	return slices.Contains(g.Accounts, account) || slices.ContainsFunc(g.groups, func(group string) bool {
		return group == groupOfAll || group == groupOfAccounts || group == groupOfAccounts+":"+account.Namespace
	})
}

// IsSameAs reports whether it is the same role that both give in the same place.
func (g Grant) IsSameAs(o Grant) bool {
	return g.Role == o.Role && g.Binding.Namespace == o.Binding.Namespace
}

// SplitRevisionName takes the name of a package revision apart: what it has of the package's name
// is followed by a hash. It returns false for any other name.
func SplitRevisionName(name string) (pkg string, ok bool) {
	n := strings.LastIndexByte(name, '-')
	if n < 1 || len(name)-n-1 != lengthOfHash || strings.Trim(name[n+1:], "0123456789abcdef") != "" {
		return "", false
	}

	return name[:n], true
}

// RunsAs returns the name of the ServiceAccount that a package revision runs as: the revision's
// own, unless one of the DeploymentRuntimeConfigs says otherwise (crossplane
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

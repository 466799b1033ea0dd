package xp

import (
	"cmp"
	"maps"
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

// accountUserPrefix begins the name of a ServiceAccount as a user in RBAC (kubernetes apiserver
// pkg/authentication/serviceaccount).
const accountUserPrefix = "system:serviceaccount:"

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
	g = Grant{Binding: RefTo(u), Role: Get[string](u.Object, "roleRef", "kind") + " " + Get[string](u.Object, "roleRef", "name")}
	for _, subject := range Get[[]any](u.Object, "subjects") {
		kind, name := Get[string](subject, "kind"), Get[string](subject, "name")
		user, isAccount := strings.CutPrefix(name, accountUserPrefix)
		switch {
		case kind == "Group":
			g.groups = append(g.groups, name)
		case kind == "User" && isAccount:
			namespace, name, _ := strings.Cut(user, ":")
			g.Accounts = append(g.Accounts, AccountRef(namespace, name))
		case kind == kindServiceAccount:
			g.Accounts = append(g.Accounts, AccountRef(Get[string](subject, "namespace"), name))
		}
	}

	return g, true
}

// GivesTo reports whether the binding grants the role to a ServiceAccount, by name or by group.
func (g Grant) GivesTo(account Ref) bool {
	groups := []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + account.Namespace}

	return slices.Contains(g.Accounts, account) || slices.ContainsFunc(g.groups, func(group string) bool { return slices.Contains(groups, group) })
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
	name := Get[string](revision.Object, "spec", "runtimeConfigRef", "name")
	for _, c := range configs {
		if name != "" && c.GetName() == name {
			return cmp.Or(Get[string](c.Object, "spec", "deploymentTemplate", "spec", "template", "spec", "serviceAccountName"),
				Get[string](c.Object, "spec", "serviceAccountTemplate", "metadata", "name"), revision.GetName())
		}
	}

	return revision.GetName()
}

// AddedSettings returns, for messages, what others than Crossplane have added to the ServiceAccount
// of a package, such as the cloud role of a provider. It returns nil for any other object.
// Crossplane keeps these settings, but does not make them again.
func AddedSettings(u *unstructured.Unstructured) []string {
	if c, _ := Controller(u); !isCore(u, kindServiceAccount) || !isPackageRevisionKind(schema.FromAPIVersionAndKind(c.APIVersion, c.Kind)) {
		return nil
	}
	var added []string
	for _, of := range []struct{ field, name string }{{"annotations", "annotation"}, {"labels", "label"}} {
		for _, key := range slices.Sorted(maps.Keys(Get[map[string]any](u.Object, "metadata", of.field))) {
			// Crossplane, Velero and kubectl keep their own records there.
			if !isOf(key, domain, "velero.io", "kubectl.kubernetes.io") && !isWrittenByCrossplane(u, of.field, key) {
				added = append(added, of.name+" "+key)
			}
		}
	}
	for _, field := range []string{"imagePullSecrets", "secrets"} {
		for _, entry := range Get[[]any](u.Object, field) {
			name := Get[string](entry, "name")
			// Kubernetes and OpenShift make these for each ServiceAccount.
			if name != "" && !strings.HasPrefix(name, u.GetName()+"-token-") && !strings.HasPrefix(name, u.GetName()+"-dockercfg-") {
				added = append(added, strings.TrimSuffix(field, "s")+" "+name)
			}
		}
	}
	if _, ok := u.Object["automountServiceAccountToken"].(bool); ok {
		added = append(added, "automountServiceAccountToken")
	}

	return added
}

// IsNamedAfterRevision reports whether the ServiceAccount of a package has the name of its
// revision. Crossplane chooses that name unless a DeploymentRuntimeConfig has another. The
// ServiceAccount of another revision then has another name.
func IsNamedAfterRevision(serviceAccount *unstructured.Unstructured) bool {
	c, ok := Controller(serviceAccount)

	return ok && c.Name == serviceAccount.GetName()
}

// isWrittenByCrossplane reports whether Crossplane's package manager manages a label or annotation
// (crossplane internal/controller/pkg/runtime): under the name of its program, and from v2.4 on one
// of its own. It writes those of a DeploymentRuntimeConfig.
func isWrittenByCrossplane(u *unstructured.Unstructured, field, key string) bool {
	return slices.ContainsFunc(Get[[]any](u.Object, "metadata", "managedFields"), func(entry any) bool {
		manager := Get[string](entry, "manager")

		return (manager == "crossplane" || manager == "pkg.crossplane.io/runtime") &&
			Has(Get[map[string]any](entry, "fieldsV1", "f:metadata", "f:"+field), "f:"+key)
	})
}

package forest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Role is the role of an object in Crossplane.
type Role string

// Roles.
const (
	RoleXR       Role = "XR"
	RoleClaim    Role = "claim"
	RoleMR       Role = "MR"
	RoleUsage    Role = "Usage"
	RolePlatform Role = "platform"
	RoleConfig   Role = "provider config"
	RoleRebuilt  Role = "rebuilt by the control plane"
	RoleSecret   Role = "connection secret"
	// RoleOther is any other object. It may be composed.
	RoleOther Role = "other"
)

// A Kind is a kind of a forest.
type Kind struct {
	schema.GroupVersionKind

	Plural     string
	Namespaced bool
}

// Resource returns the resource as Velero names it.
func (k Kind) Resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// Reconciled reports whether Crossplane or a provider reconciles the kind.
func (k Kind) Reconciled() bool { return k.Category() != "" }

// Category returns the category of the CRD, "" if neither Crossplane nor a provider reconciles the
// kind.
func (k Kind) Category() string {
	switch k {
	case claimKind:
		return xp.CategoryClaim
	case legacyXR, modernXR, clusterXR:
		return xp.CategoryComposite
	case clusterMR, localMR:
		return xp.CategoryManaged
	default:
		return ""
	}
}

func kind(group, version, name, plural string, namespaced bool) Kind {
	return Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Plural: plural, Namespaced: namespaced}
}

// Kinds of a forest. Some have the same name in different groups.
var (
	legacyXR    = kind("example.org", "v1alpha1", "XOrder", "xorders", false)
	claimKind   = kind("example.org", "v1alpha1", "Order", "orders", true)
	modernXR    = kind("modern.example.org", "v1", "Order", "orders", true)
	clusterXR   = kind("modern.example.org", "v1", "Fleet", "fleets", false)
	clusterMR   = kind("cloud.example.org", "v1beta1", "Bucket", "buckets", false)
	localMR     = kind("s3.m.example.org", "v1beta1", "Bucket", "buckets", true)
	config      = kind("cloud.example.org", "v1beta1", "ProviderConfig", "providerconfigs", false)
	localConfig = kind("m.example.org", "v1beta1", "ProviderConfig", "providerconfigs", true)
	wideConfig  = kind("m.example.org", "v1beta1", "ClusterProviderConfig", "clusterproviderconfigs", false)
	configUsage = kind("cloud.example.org", "v1beta1", "ProviderConfigUsage", "providerconfigusages", false)
	oldUsage    = kind(xp.GroupAPIExtensions, "v1beta1", "Usage", "usages", false)
	usage       = kind(xp.GroupProtection, "v1beta1", "Usage", "usages", true)
	wideUsage   = kind(xp.GroupProtection, "v1beta1", "ClusterUsage", "clusterusages", false)
	xrd         = kind(xp.GroupAPIExtensions, "v1", "CompositeResourceDefinition", "compositeresourcedefinitions", false)
	composition = kind(xp.GroupAPIExtensions, "v1", "Composition", "compositions", false)
	revision    = kind(xp.GroupAPIExtensions, "v1", "CompositionRevision", "compositionrevisions", false)
	widget      = kind("foreign.io", "v1", "Widget", "widgets", true)
	gadget      = kind("foreign.io", "v1", "Gadget", "gadgets", false)
	configMap   = kind("", "v1", "ConfigMap", "configmaps", true)
	deployment  = kind("apps", "v1", "Deployment", "deployments", true)
	secret      = kind("", "v1", "Secret", "secrets", true)
	namespace   = kind("", "v1", "Namespace", "namespaces", false)
	// unservedKind is a kind that no server has.
	unservedKind = kind("ghost.example.net", "v1", "Ghost", "ghosts", true)
)

// Kinds returns the served kinds.
func Kinds() []Kind {
	return []Kind{
		legacyXR, claimKind, modernXR, clusterXR, clusterMR, localMR, config, localConfig, wideConfig, configUsage, oldUsage, usage, wideUsage, xrd, composition,
		revision, widget, gadget, configMap, deployment, secret, namespace,
	}
}

var kinds = func() map[schema.GroupKind]Kind {
	all := map[schema.GroupKind]Kind{}
	for _, k := range Kinds() {
		all[k.GroupKind()] = k
	}

	return all
}()

// KindOf returns the kind of a group and name. It returns false if the kind is not served.
func KindOf(gk schema.GroupKind) (Kind, bool) {
	k, ok := kinds[gk]

	return k, ok
}

// itemOf returns an object as Velero identifies it.
func itemOf(u *unstructured.Unstructured) xp.Item {
	k, _ := KindOf(u.GroupVersionKind().GroupKind())

	return xp.Item{GroupResource: k.Resource(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

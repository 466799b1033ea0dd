package xp

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Managing is an MR, and with what it manages its external resource.
type Managing struct {
	Ref

	// Account is the ProviderConfig that the MR names, without an API version. It is the same for
	// two MRs of one kind if they use the same.
	Account Ref
	// Observes says that its provider changes nothing.
	Observes bool
}

// ManagingOf returns what an MR says of itself.
func ManagingOf(mr *unstructured.Unstructured) Managing {
	return Managing{Ref: RefTo(mr), Account: AccountOf(mr), Observes: OnlyObserves(mr)}
}

// AccountOf returns the ProviderConfig that an MR names, without an API version, which an MR does
// not say. One in a namespace is that namespace's, whatever others are called. An MR in a namespace
// that does not say which kind it names means a cluster-scoped one (crossplane-runtime
// apis/common).
func AccountOf(mr *unstructured.Unstructured) Ref {
	v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "providerConfigRef")
	m, _ := v.(map[string]any)
	kind, _ := m["kind"].(string)
	r := Ref{Kind: cmp.Or(kind, "ProviderConfig")}
	r.Name, _ = m["name"].(string)
	switch {
	case mr.GetNamespace() == "":
	case kind == "":
		r.Kind = "ClusterProviderConfig"
	case kind == "ProviderConfig":
		r.Namespace = mr.GetNamespace()
	}

	return r
}

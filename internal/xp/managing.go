package xp

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Managing is an MR as a manager of an external resource.
type Managing struct {
	Ref

	// Account is the ProviderConfig of the MR, without an API version. Two MRs of one kind with the
	// same Account use the same ProviderConfig.
	Account Ref
	// Observes is true if the provider changes nothing.
	Observes bool
}

// ManagingOf reads an MR.
func ManagingOf(mr *unstructured.Unstructured) Managing {
	return Managing{Ref: RefTo(mr), Account: AccountOf(mr), Observes: OnlyObserves(mr)}
}

// AccountOf returns the ProviderConfig that an MR names, without an API version, since an MR names
// none. A ProviderConfig in a namespace differs from one of the same name elsewhere. A namespaced
// MR that names no kind means the cluster-scoped one (crossplane-runtime apis/common).
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

package apiserver

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// ErrDown is an error that no retry helps against.
var ErrDown = errors.New("the API server is on holiday")

// Settings returns a ConfigMap of settings.
func Settings(name string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object("v1", "ConfigMap", "velero", name, append([]xptest.Option{
		xptest.Labelled("velero.io/plugin-config", ""), xptest.Labelled("velero.crossplane.io/settings", ""), xptest.JSON(`{"data":{"clone":"new"}}`),
	}, o...)...)
}

// ErrConversion is the answer if a conversion webhook is missing.
var ErrConversion = apierrors.NewInternalError(errors.New(
	`conversion webhook for cloud.example.org/v1alpha1, Kind=Bucket failed: Post "https://provider.crossplane-system.svc/convert": service "provider" not found`))

// RefsOf returns references to objects.
func RefsOf(objects []*unstructured.Unstructured) (refs []xp.Ref) {
	for _, u := range objects {
		refs = append(refs, xp.RefTo(u))
	}

	return refs
}

// NewCategorized returns a server with the categories of Crossplane's and providers' kinds.
func NewCategorized(objects ...*unstructured.Unstructured) *Server {
	s := NewServer(objects...)
	claims := Listable("orderclaims", xptest.ClaimKind, "claim")
	claims.Namespaced = true
	s.Kinds = map[string][]metav1.APIResource{
		xptest.LegacyVersion:            {Listable("xorders", xptest.LegacyKind, "composite"), claims},
		xptest.ManagedVersion:           {Listable("buckets", xptest.ManagedKind, "managed")},
		"v1":                            s.Kinds["v1"],
		"velero.io/v1":                  {{Name: "restores", Kind: "Restore", Namespaced: true}},
		xp.GroupAPIExtensions + "/v1":   {{Name: "compositionrevisions", Kind: "CompositionRevision"}, {Name: "compositeresourcedefinitions", Kind: "CompositeResourceDefinition"}},
		xp.GroupProtection + "/v1beta1": {{Name: "usages", Kind: "Usage", Namespaced: true}},
	}

	return s
}

// ClaimedTree returns a reconciled claim with its XR and its MR.
func ClaimedTree(namespace, name string) []*unstructured.Unstructured {
	x := xptest.XR("x" + name)
	labels := func(u *unstructured.Unstructured) {
		xptest.Labelled(xp.LabelClaimNamespace, namespace)(u)
		xptest.Reconciled()(u)
	}
	mr := xptest.MR("b"+name, xptest.ControlledBy(x), labels)
	claim := xptest.Claim(name, xptest.In(namespace), xptest.OfXR(x), xptest.Reconciled())

	return []*unstructured.Unstructured{claim, xptest.XR("x"+name, xptest.Refs(mr), xptest.ClaimedBy(claim), labels), mr}
}

// Forbid makes all lists of a resource fail with a 403.
func Forbid(s *Server, resource string) {
	s.FailOn("list", resource, 1<<30, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", ErrDown))
}

// Listable returns a cluster-scoped kind that can be listed, in categories.
func Listable(name, kind string, categories ...string) metav1.APIResource {
	return metav1.APIResource{Name: name, Kind: kind, Verbs: metav1.Verbs{"list"}, Categories: categories}
}

// NamesOf returns the sorted kinds and names of objects.
func NamesOf(objects []*unstructured.Unstructured) (names []string) {
	for _, u := range objects {
		names = append(names, xp.String(u))
	}
	slices.Sort(names)

	return names
}

// Chart returns a Deployment of Crossplane's chart.
func Chart(namespace, name string, ready int64, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object("apps/v1", "Deployment", namespace, name, append([]xptest.Option{
		xptest.Labelled("app.kubernetes.io/part-of", "crossplane"), xptest.Field(ready, "status", "readyReplicas"),
	}, o...)...)
}

// Image is an option for the image of a Deployment.
func Image(i string) xptest.Option {
	return xptest.Field([]any{map[string]any{"image": i}}, "spec", "template", "spec", "containers")
}

// XOrderXRD returns the established XRD of xptest.XR.
func XOrderXRD(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.XRD("xorders.example.org", append([]xptest.Option{xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"}},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}`)}, o...)...)
}

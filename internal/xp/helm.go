package xp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// prefixRelease is the prefix of the Secrets in which Helm keeps the revisions of releases
	// (helm pkg/storage, makeKey).
	prefixRelease = "sh.helm.release.v1."
	// maxRevisions is the number of revisions that provider-helm has Helm keep.
	maxRevisions = 20
)

// groupsRelease are the API groups of provider-helm: of cluster-scoped kinds, and of namespaced
// kinds since Crossplane v2.
var groupsRelease = []string{"helm.crossplane.io", "helm.m.crossplane.io"} //nolint:gochecknoglobals // It is constant.

// ReleaseSecret returns the Secret in which Helm keeps the newest revision of a release that
// provider-helm has seen. It returns false if u is not a Release, was never installed, or may not
// create. provider-helm installs the chart if it finds no revision (provider-helm
// pkg/controller/*/release, Observe). A release in another cluster has no such Secret in this
// cluster.
func ReleaseSecret(u *unstructured.Unstructured) (r Ref, ok bool) {
	if !isRelease(u) || !MayCreate(u) {
		return Ref{}, false
	}
	revision, _, _ := unstructured.NestedInt64(u.Object, "status", "atProvider", "revision")
	r = revisionSecret(u, revision)

	return r, revision > 0 && IsValidName(r.Namespace, r.Name)
}

// RevisionSecrets returns the Secrets of the older revisions of a Release, to which provider-helm
// can roll back.
func RevisionSecrets(u *unstructured.Unstructured) []Ref {
	newest, _, _ := unstructured.NestedInt64(u.Object, "status", "atProvider", "revision")
	var refs []Ref
	for revision := newest - 1; revision > max(newest-maxRevisions, 0); revision-- {
		refs = append(refs, revisionSecret(u, revision))
	}

	return refs
}

// IsReleaseSecret reports whether Helm keeps a revision of a release in a Secret of this name.
func IsReleaseSecret(name string) bool { return strings.HasPrefix(name, prefixRelease) }

// NamesReleaseNamespace reports whether the spec of a Release names the namespace of its release.
// The default is the namespace of the Release.
func NamesReleaseNamespace(u *unstructured.Unstructured) bool {
	return isRelease(u) && namespaceOfRelease(u) != ""
}

func isRelease(u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()

	return gvk.Kind == "Release" && slices.Contains(groupsRelease, gvk.Group)
}

func namespaceOfRelease(u *unstructured.Unstructured) string {
	namespace, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "namespace")

	return namespace
}

func revisionSecret(u *unstructured.Unstructured, revision int64) Ref {
	name := cmp.Or(Annotation(u, AnnotationExternalName), u.GetName())

	return Ref{
		APIVersion: "v1", Kind: "Secret", Namespace: cmp.Or(namespaceOfRelease(u), u.GetNamespace()),
		Name: fmt.Sprintf("%s%s.v%d", prefixRelease, name, revision),
	}
}

package xp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InstalledAgain is what comes of it that Helm's Secrets of a release are missing.
const InstalledAgain = "provider-helm installs the chart again over what is there, with new passwords where the chart makes some"

const (
	// prefixRelease begins the names of the Secrets in which Helm keeps the revisions of releases
	// (helm pkg/storage, makeKey).
	prefixRelease = "sh.helm.release.v1."
	// mostRevisions is how many of them provider-helm has Helm keep.
	mostRevisions = 20
)

// groupsRelease are the groups of provider-helm's kinds: the cluster-scoped ones and, since
// Crossplane v2, those in namespaces.
var groupsRelease = []string{"helm.crossplane.io", "helm.m.crossplane.io"} //nolint:gochecknoglobals // It is constant.

// ReleaseSecret returns the Secret in which Helm keeps the newest revision that provider-helm has
// seen of its release; ok is false if u is no Release, was never installed, or installs nothing.
// provider-helm installs the chart if it finds no revision (provider-helm pkg/controller/*/release,
// Observe). If the release is in another cluster, there is no such Secret in this one.
func ReleaseSecret(u *unstructured.Unstructured) (r Ref, ok bool) {
	if !isRelease(u) || !MayCreate(u) {
		return Ref{}, false
	}
	revision, _, _ := unstructured.NestedInt64(u.Object, "status", "atProvider", "revision")
	r = revisionSecret(u, revision)

	return r, revision > 0 && IsValidName(r.Namespace, r.Name)
}

// RevisionSecrets returns the Secrets in which Helm can keep revisions of a Release before that of
// ReleaseSecret, to which provider-helm can go back.
func RevisionSecrets(u *unstructured.Unstructured) []Ref {
	newest, _, _ := unstructured.NestedInt64(u.Object, "status", "atProvider", "revision")
	var refs []Ref
	for revision := newest - 1; revision > max(newest-mostRevisions, 0); revision-- {
		refs = append(refs, revisionSecret(u, revision))
	}

	return refs
}

// IsReleaseSecret reports whether a Secret of the name is one in which Helm keeps a revision of a
// release.
func IsReleaseSecret(name string) bool { return strings.HasPrefix(name, prefixRelease) }

// NamesReleaseNamespace reports whether a Release says itself in which namespace its release is.
// That of one that does not is its own.
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

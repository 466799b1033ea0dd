package xp

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InputSecrets returns the Secrets that the provider of an MR reads, such as the password of a
// database, sorted and without duplicates. It finds them by the names that providers give to
// references to Secrets. A namespaced MR can name Secrets in its own namespace only. A manifest
// that provider-kubernetes applies is skipped: its references are not for the provider. For a
// Release of provider-helm the Secret of its newest revision is included, in any namespace, and for a
// Workspace of provider-terraform that with its state, if a backup has noted it: only the
// ProviderConfig names it.
func InputSecrets(mr *unstructured.Unstructured) []Ref {
	found := map[Ref]bool{}
	if r, ok := ReleaseSecret(mr); ok {
		found[r] = true
	}
	for _, r := range notedStates(mr) {
		found[r] = true
	}
	for _, field := range []string{"forProvider", "initProvider"} {
		collectSecrets(Get[any](mr.Object, "spec", field), mr.GetNamespace(), found)
	}

	return slices.SortedFunc(maps.Keys(found), Ref.Compare)
}

// collectSecrets adds the Secrets that references at any depth name; if a namespace is given, only
// those in it.
func collectSecrets(v any, namespace string, into map[Ref]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if name == "manifest" {
				continue
			}
			if isSecretReference(name) {
				addSecrets(value, namespace, into)
			}
			collectSecrets(value, namespace, into)
		}
	case []any:
		for _, entry := range v {
			collectSecrets(entry, namespace, into)
		}
	}
}

// isSecretReference reports whether a field holds references to Secrets, such as passwordSecretRef
// (as upjet generates it), secretKeyRef, imagePullSecretRefs.
func isSecretReference(field string) bool {
	return slices.ContainsFunc([]string{"secretref", "secretrefs", "secretkeyref", "secretkeyrefs"}, func(end string) bool {
		return len(field) >= len(end) && strings.EqualFold(field[len(field)-len(end):], end)
	})
}

// addSecrets adds the Secrets that a reference, or a list of references, names.
func addSecrets(v any, namespace string, into map[Ref]bool) {
	entries, ok := v.([]any)
	if !ok {
		entries = []any{v}
	}
	for _, entry := range entries {
		r := RefToSecret(cmp.Or(Get[string](entry, "namespace"), namespace), Get[string](entry, "name"))
		if r.Namespace != "" && (namespace == "" || namespace == r.Namespace) && IsValidName(r.Namespace, r.Name) {
			into[r] = true
		}
	}
}

const (
	// prefixRelease is the prefix of the Secrets in which Helm keeps the revisions of releases
	// (helm pkg/storage, makeKey).
	prefixRelease = "sh.helm.release.v1."
	// prefixTerraform is the prefix of the Secrets in which Terraform's backend kubernetes keeps
	// states (terraform internal/backend/remote-state/kubernetes, createSecretName).
	prefixTerraform = "tfstate-"
	// maxRevisions is the number of revisions that provider-helm has Helm keep.
	maxRevisions = 20
)

// A State is what a tool keeps in a Secret of its own. Only by it a provider knows what it has made:
// without it, it makes that again.
type State struct {
	// Keeper is the tool, What the name that it has for its state.
	Keeper, What string
	// Again is, as part of a message, what the provider does without the Secret.
	Again string
}

// StateIn returns what a Secret of this name keeps; false if it is no such Secret.
func StateIn(secret string) (s State, ok bool) {
	switch {
	case IsReleaseSecret(secret):
		return State{
			Keeper: "Helm", What: "release",
			Again: "provider-helm installs the chart again over what is there, with new passwords where the chart makes some",
		}, true
	case strings.HasPrefix(secret, prefixTerraform):
		return State{
			Keeper: "Terraform", What: "state", Again: "provider-terraform creates all resources of the module again, beside those that exist",
		}, true
	default:
		return State{}, false
	}
}

// IsStateSecret reports whether a Secret of this name keeps a State.
func IsStateSecret(name string) bool {
	_, ok := StateIn(name)

	return ok
}

// IsReleaseSecret reports whether Helm keeps a revision of a release in a Secret of this name.
func IsReleaseSecret(name string) bool { return strings.HasPrefix(name, prefixRelease) }

// ReleaseSecret returns the Secret in which Helm keeps the newest revision of a release that
// provider-helm has seen. It returns false if u is not a Release, was never installed, or may not
// create. provider-helm installs the chart if it finds no revision (provider-helm
// pkg/controller/*/release, Observe). A release in another cluster has no such Secret in this
// cluster.
func ReleaseSecret(u *unstructured.Unstructured) (r Ref, ok bool) {
	newest := newestRevision(u)
	r = revisionSecret(u, newest)

	return r, isRelease(u) && MayCreate(u) && newest > 0 && IsValidName(r.Namespace, r.Name)
}

// RevisionSecrets returns the Secrets of the older revisions of a Release, to which provider-helm
// can roll back.
func RevisionSecrets(u *unstructured.Unstructured) []Ref {
	newest := newestRevision(u)
	var refs []Ref
	for revision := newest - 1; revision > max(newest-maxRevisions, 0); revision-- {
		refs = append(refs, revisionSecret(u, revision))
	}

	return refs
}

// NamesReleaseNamespace reports whether the spec of a Release names the namespace of its release.
// The default is the namespace of the Release.
func NamesReleaseNamespace(u *unstructured.Unstructured) bool {
	return isRelease(u) && releaseNamespace(u) != ""
}

func isRelease(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Release" && GroupFamily(u.GroupVersionKind().Group) == "helm.crossplane.io"
}

func releaseNamespace(u *unstructured.Unstructured) string {
	return Get[string](u.Object, "spec", "forProvider", "namespace")
}

func newestRevision(u *unstructured.Unstructured) int64 {
	return Get[int64](u.Object, "status", "atProvider", "revision")
}

func revisionSecret(u *unstructured.Unstructured, revision int64) Ref {
	name := cmp.Or(Annotation(u, AnnotationExternalName), u.GetName())

	return RefToSecret(cmp.Or(releaseNamespace(u), u.GetNamespace()), fmt.Sprintf("%s%s.v%d", prefixRelease, name, revision))
}

// These find the block of Terraform's backend, with blocks in it, and its settings, of which one can
// be on the line of the backend, and none is in a comment.
var (
	backendBlock  = regexp.MustCompile(`(?m)^[^#/\n]*\bbackend\s+"kubernetes"\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)`)
	backendSuffix = regexp.MustCompile(`(?m)^\s*secret_suffix\s*=\s*"([^"]*)"`)
	backendPlace  = regexp.MustCompile(`(?m)^\s*namespace\s*=\s*"([^"]*)"`)
)

// IsWorkspace reports whether u is a Workspace of provider-terraform.
func IsWorkspace(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Workspace" && GroupFamily(u.GroupVersionKind().Group) == "tf.upbound.io"
}

// WorkspaceSecret returns the Secret in which Terraform keeps the state of a Workspace with the
// ProviderConfig config, nil if it has none. It returns false if u is no Workspace or may not
// create, and if its state is not in a Secret. If Terraform's backend has the kubeconfig of another
// cluster, there is no such Secret in this one.
//
// provider-terraform writes the module, the configuration and the file for the backend side by side,
// and takes the external-name for the name of Terraform's workspace (provider-terraform
// internal/controller/*/workspace, Connect). Settings in that file override those in the code.
func WorkspaceSecret(u, config *unstructured.Unstructured) (r Ref, ok bool) {
	if !IsWorkspace(u) || !MayCreate(u) {
		return Ref{}, false
	}
	if config == nil {
		config = &unstructured.Unstructured{}
	}
	file := Get[string](config.Object, "spec", "backendFile")
	for _, code := range []string{Get[string](u.Object, "spec", "forProvider", "module"), Get[string](config.Object, "spec", "configuration")} {
		block := backendBlock.FindStringSubmatch(code)
		if block == nil {
			continue
		}
		suffix := cmp.Or(attribute(backendSuffix, file), attribute(backendSuffix, block[1]))
		r = RefToSecret(cmp.Or(attribute(backendPlace, file), attribute(backendPlace, block[1]), "default"), prefixOfState(u)+suffix)

		return r, suffix != "" && IsValidName(r.Namespace, r.Name)
	}

	return Ref{}, false
}

// notedStates returns the Secrets with a Workspace's state that a backup has noted. A note counts
// only for names that such a Secret of the Workspace can have.
func notedStates(u *unstructured.Unstructured) []Ref {
	if !IsWorkspace(u) || !MayCreate(u) {
		return nil
	}
	var refs []Ref
	for r := range Inputs(u) {
		if strings.HasPrefix(r.Name, prefixOfState(u)) && r.Namespace != "" && IsValidName(r.Namespace, r.Name) {
			refs = append(refs, r)
		}
	}

	return refs
}

func prefixOfState(u *unstructured.Unstructured) string {
	return prefixTerraform + cmp.Or(Annotation(u, AnnotationExternalName), u.GetName()) + "-"
}

// attribute returns the value of a setting, "" if there is none.
func attribute(of *regexp.Regexp, text string) string {
	if m := of.FindStringSubmatch(text); m != nil {
		return m[1]
	}

	return ""
}

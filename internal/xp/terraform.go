package xp

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// prefixTerraform is the prefix of the Secrets in which Terraform's backend kubernetes keeps states
// (terraform internal/backend/remote-state/kubernetes, createSecretName).
const prefixTerraform = "tfstate-"

// groupsWorkspace are the API groups of provider-terraform: of cluster-scoped kinds, and of
// namespaced kinds since Crossplane v2.
var groupsWorkspace = []string{"tf.upbound.io", "tf.m.upbound.io"} //nolint:gochecknoglobals // It is constant.

// These find Terraform's backend and its settings, of which one can be on the line of the backend,
// and none is in a comment.
var (
	backendStart  = regexp.MustCompile(`(?m)^[^#/\n]*\bbackend\s+"kubernetes"\s*\{`)
	backendSuffix = regexp.MustCompile(`(?m)^\s*secret_suffix\s*=\s*"([^"]*)"`)
	backendPlace  = regexp.MustCompile(`(?m)^\s*namespace\s*=\s*"([^"]*)"`)
)

// IsWorkspace reports whether u is a Workspace of provider-terraform.
func IsWorkspace(u *unstructured.Unstructured) bool {
	gvk := u.GroupVersionKind()

	return gvk.Kind == "Workspace" && slices.Contains(groupsWorkspace, gvk.Group)
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
	code := []string{specString(u, "forProvider", "module")}
	file := ""
	if config != nil {
		code, file = append(code, specString(config, "configuration")), specString(config, "backendFile")
	}
	for _, text := range code {
		block, found := backendIn(text)
		if !found {
			continue
		}
		suffix := cmp.Or(attribute(backendSuffix, file), attribute(backendSuffix, block))
		r = Ref{
			APIVersion: "v1", Kind: "Secret", Name: prefixOfState(u) + suffix,
			Namespace: cmp.Or(attribute(backendPlace, file), attribute(backendPlace, block), "default"),
		}

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
	for _, in := range inputs(u) {
		if strings.HasPrefix(in.Name, prefixOfState(u)) && in.Namespace != "" && IsValidName(in.Namespace, in.Name) {
			refs = append(refs, in.Ref)
		}
	}

	return refs
}

func prefixOfState(u *unstructured.Unstructured) string {
	return prefixTerraform + cmp.Or(Annotation(u, AnnotationExternalName), u.GetName()) + "-"
}

// backendIn returns the settings of the backend kubernetes in Terraform code, one a line.
func backendIn(code string) (block string, ok bool) {
	at := backendStart.FindStringIndex(code)
	if at == nil {
		return "", false
	}
	block = code[at[1]:]
	if end := closing(block); end >= 0 {
		block = block[:end]
	}

	return block, true
}

// closing returns the index of the brace that closes a block, -1 if there is none.
func closing(text string) int {
	depth := 1
	for i, c := range text {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return i
		}
	}

	return -1
}

// attribute returns the value of a setting, "" if there is none.
func attribute(of *regexp.Regexp, text string) string {
	if m := of.FindStringSubmatch(text); m != nil {
		return m[1]
	}

	return ""
}

func specString(u *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, path...)...)

	return value
}

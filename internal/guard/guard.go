package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Name is the name of each object of the guard.
const Name = xp.Program + "-guard"

// Group and kinds of the objects.
const (
	Group = "admissionregistration.k8s.io"

	KindValidating        = "ValidatingAdmissionPolicy"
	KindValidatingBinding = "ValidatingAdmissionPolicyBinding"
	KindMutating          = "MutatingAdmissionPolicy"
	KindMutatingBinding   = "MutatingAdmissionPolicyBinding"
)

const (
	// Annotation has the Guard as JSON.
	Annotation = "velero.crossplane.x-k8s.io/guard"
	// AnnotationPaused marks an object that the guard has admitted paused.
	AnnotationPaused = xp.AnnotationPausedByGuard

	labelManager = "app.kubernetes.io/managed-by"
	// labelExclude keeps an object out of Velero's backups: a restore must not bring back a guard.
	labelExclude = "velero.io/exclude-from-backup"
)

// A Guard is what a user requests.
type Guard struct {
	// Kinds are resources of claims and XRs, as PLURAL.GROUP; *.GROUP is all of the group.
	Kinds []string `json:"kinds"`
	// Namespaces are the guarded namespaces; none means all. Cluster-scoped kinds are always
	// guarded.
	Namespaces []string `json:"namespaces,omitempty"`
	// Users are the user names that may create claims and XRs.
	Users []string `json:"users"`
	// Paused is set if others may create claims and XRs too, which Crossplane then does not
	// reconcile.
	Paused bool `json:"paused,omitempty"`
	// CreatedBy is the user who has put it up, "" if not known, and Since is when.
	CreatedBy string `json:"by,omitempty"`
	Since     string `json:"since"`
}

// Merge returns the guard after other is requested while g is up: it guards what both guard, and
// admits the users of both.
func (g Guard) Merge(other Guard) Guard {
	merged := other
	merged.Kinds, merged.Users = union(g.Kinds, other.Kinds), union(g.Users, other.Users)
	merged.Namespaces = union(g.Namespaces, other.Namespaces)
	if g.Since == "" { // g is not up.
		return merged
	}
	merged.CreatedBy, merged.Since = g.CreatedBy, g.Since
	if len(g.Namespaces) == 0 || len(other.Namespaces) == 0 {
		merged.Namespaces = nil
	}

	return merged
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)

	return slices.Compact(all)
}

// Validate returns an error if the API server would reject the guard, or if it would guard anything
// but claims and XRs.
func (g Guard) Validate() error {
	for _, kind := range g.Kinds {
		if _, err := ParseKind(kind); err != nil {
			return err
		}
	}
	for _, namespace := range g.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("cannot guard the namespace %q: the name is not valid", namespace)
		}
	}
	for _, user := range g.Users {
		if user == "" || !isPrintable(user) {
			return fmt.Errorf("cannot allow the user %q: the name is empty, or has characters that do not print", user)
		}
	}

	return nil
}

// isPrintable reports whether a string is one line of text.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ParseKind parses PLURAL.GROUP. It rejects the groups of Kubernetes, Velero and Crossplane itself:
// to guard one of them could make a cluster unusable.
func ParseKind(kind string) (schema.GroupResource, error) {
	r := schema.ParseGroupResource(kind)
	switch {
	case r.Resource != "*" && len(validation.IsDNS1035Label(r.Resource)) > 0, len(validation.IsDNS1123Subdomain(r.Group)) > 0:
		return r, fmt.Errorf("cannot read %q as a kind: give it as PLURAL.GROUP, such as orders.example.org, or as *.example.org for all kinds of a group", kind)
	case !xp.IsCustomGroup(r.Group), xp.IsCrossplaneGroup(r.Group), strings.HasSuffix("."+r.Group, ".kubernetes.io"), r.Group == "velero.io":
		return r, reason.NotGuardable.Errorf("cannot guard %q: this group has no claims or XRs, and a restore needs its kinds; name kinds of claims and XRs", kind)
	default:
		return r, nil
	}
}

// Covers reports whether a kind is guarded.
func (g Guard) Covers(r schema.GroupResource) bool {
	return slices.Contains(g.Kinds, r.String()) || slices.Contains(g.Kinds, schema.GroupResource{Group: r.Group, Resource: "*"}.String())
}

// A Kind is a kind of claims or XRs.
type Kind struct {
	schema.GroupResource

	Namespaced bool
}

// KindsOf returns the kinds that an XRD defines, whether they are served or not.
func KindsOf(xrd *unstructured.Unstructured) []Kind {
	var kinds []Kind
	for i, r := range xp.DefinitionResources(xrd) {
		if _, err := ParseKind(r.String()); err != nil || r.Resource == "*" {
			continue // The API server does not serve such a kind.
		}
		// The first resource is that of the XRs.
		kinds = append(kinds, Kind{GroupResource: r, Namespaced: i > 0 || xp.ScopeOf(xrd) == "Namespaced"})
	}

	return kinds
}

// ErrForeign is returned if an object that is not the guard's has its name.
var ErrForeign = reason.GuardNameTaken.Errorf("it has the name of the guard and is not part of it")

// From returns the Guard in the annotation of its policy.
func From(policy *unstructured.Unstructured) (Guard, error) {
	var g Guard
	if !IsOwn(policy) {
		return g, fmt.Errorf("cannot use %s %q: %w", policy.GetKind(), policy.GetName(), ErrForeign)
	}
	if err := json.Unmarshal([]byte(policy.GetAnnotations()[Annotation]), &g); err != nil {
		return Guard{}, fmt.Errorf("cannot read the annotation %s of %s %q: %w", Annotation, policy.GetKind(), policy.GetName(), err)
	}

	return g, nil
}

// IsOwn reports whether an object is part of the guard.
func IsOwn(u *unstructured.Unstructured) bool {
	return u.GetName() == Name && u.GetLabels()[labelManager] == xp.Program
}

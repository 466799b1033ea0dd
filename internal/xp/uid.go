package xp

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// A Composition can patch the UID of an XR into what the XR composes. A restored XR has another
// UID, so Crossplane writes another value when it reconciles the XR. Only whole UIDs are found: a
// part of one proves nothing.

// A UIDField is a field of an object that has the UID of another object in its value.
type UIDField struct {
	Path string
	UID  types.UID

	place uidPlace
}

// A uidPlace is what a field is for.
type uidPlace int

const (
	// uidOther is a field of which nothing is known.
	uidOther uidPlace = iota
	// uidCarried is a name inside the cluster: a label, an annotation, or a selector of labels by which
	// an MR finds others, or a field in the spec of an XR, from which its Composition makes names.
	uidCarried
	// uidSecret is the name in a reference to a Secret, and is carried too.
	uidSecret
	uidExternalName
	// uidProvider is a field of what the provider of an MR creates.
	uidProvider
	// uidName is the object's own name.
	uidName
)

// isIdentity reports whether a field in this place may be an identity, or names a Secret.
func (p uidPlace) isIdentity() bool { return p >= uidSecret }

const (
	// maxUIDFields is how many fields UIDFields returns, of the first mostUIDFields that it finds: of
	// those that may be an identity, and of the others.
	maxUIDFields  = 5
	mostUIDFields = 64
)

// UIDFields returns the first fields of u that have one of the UIDs in them: those that may be an
// identity, and then others, each by their paths. It ignores what Kubernetes and Crossplane write
// themselves: owner references, resourceRefs, the status.
func UIDFields(u *unstructured.Unstructured, uids ...types.UID) []UIDField {
	if !HasUID(u) {
		return nil
	}
	var found []UIDField
	counts := map[bool]int{}
	w := uidWalk{paths: true, visit: func(path, text string, place uidPlace) string {
		for _, uid := range uids {
			if isUID(string(uid)) && strings.Contains(text, string(uid)) && counts[place.isIdentity()] < mostUIDFields {
				counts[place.isIdentity()]++
				found = append(found, UIDField{Path: path, UID: uid, place: place})
			}
		}

		return text
	}}
	w.object(u)
	slices.SortFunc(found, func(a, b UIDField) int {
		switch identity := a.place.isIdentity(); {
		case identity == b.place.isIdentity():
			return strings.Compare(a.Path, b.Path)
		case identity:
			return -1
		default:
			return 1
		}
	})

	return found[:min(len(found), maxUIDFields)]
}

// HasUID reports whether a field that UIDFields looks at has any UID in it.
func HasUID(u *unstructured.Unstructured) bool {
	found := false
	w := uidWalk{visit: func(_, text string, _ uidPlace) string {
		found = found || containsUID(text)

		return text
	}}
	w.object(u)

	return found
}

// ReplaceUIDs replaces UIDs in names inside the cluster: in references to Secrets, in labels and
// selectors of labels, and in the spec of an XR. Crossplane writes the same when it reconciles the
// XR above.
func ReplaceUIDs(u *unstructured.Unstructured, uids map[types.UID]types.UID) {
	w := uidWalk{visit: func(_, text string, place uidPlace) string {
		if place == uidCarried || place == uidSecret {
			return ReplaceUID(text, uids)
		}

		return text
	}}
	w.object(u)
}

// ReplaceUID returns a name with UIDs replaced as by ReplaceUIDs.
func ReplaceUID(name string, uids map[types.UID]types.UID) string {
	for old, uid := range uids {
		if isUID(string(old)) {
			name = strings.ReplaceAll(name, string(old), string(uid))
		}
	}

	return name
}

// IsRenamed reports whether two names are equal but for a UID, which in the current one is the
// given UID.
func IsRenamed(current, former string, uid types.UID) bool {
	before, after, ok := strings.Cut(current, string(uid))
	if !ok || uid == "" || len(former) != len(current) || !strings.HasPrefix(former, before) || !strings.HasSuffix(former, after) {
		return false
	}
	was := former[len(before) : len(former)-len(after)]

	return isUID(was) && was != string(uid)
}

const uidLength = 36

// uidPattern finds the UIDs that Kubernetes makes (RFC 9562).
var uidPattern = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// containsUID reports whether a part of a text looks like a UID.
func containsUID(text string) bool { return len(text) >= uidLength && uidPattern.MatchString(text) }

// isUID reports whether a text looks like a UID.
func isUID(text string) bool { return len(text) == uidLength && uidPattern.MatchString(text) }

// NamesSecret reports whether the field is the name in a reference to a Secret.
func (f UIDField) NamesSecret() bool { return f.place == uidSecret }

// IsIdentity reports whether the field of u identifies an external resource or a composed object,
// or may do so, and Crossplane writes it. The name of a composed object stays as it is, unless
// Crossplane v1 composes it without a pipeline (crossplane v1.20 composite/composition_pt.go;
// composition_functions.go takes the name of the existing object).
func (f UIDField) IsIdentity(u *unstructured.Unstructured) bool {
	switch f.place { //nolint:exhaustive // The others are none.
	case uidExternalName:
		return IsManaged(u) && isComposedField(u, "f:metadata", "f:annotations", "f:"+AnnotationExternalName)
	case uidProvider:
		in, rest, _ := strings.Cut(strings.TrimPrefix(f.Path, "spec."), ".")
		name := strings.FieldsFunc(rest, func(c rune) bool { return c == '.' || c == '[' })

		return IsManaged(u) && (len(name) == 0 || isComposedField(u, "f:spec", "f:"+in, "f:"+name[0]))
	case uidName:
		return composedEntry(u) == nil
	default:
		return false
	}
}

// IsImmutable reports whether the API server refuses to change the field of a Kubernetes object.
func (f UIDField) IsImmutable(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(immutable[u.GroupVersionKind().GroupKind()], func(path string) bool {
		return f.Path == path || strings.HasPrefix(f.Path, path+".") || strings.HasPrefix(f.Path, path+"[")
	})
}

// immutable are fields of Kubernetes objects that can't be changed (kubernetes pkg/apis/…/validation,
// the update validations), of kinds that users compose.
var immutable = map[schema.GroupKind][]string{ //nolint:gochecknoglobals // It is constant.
	{Group: "apps", Kind: "Deployment"}:                              {"spec.selector"},
	{Group: "apps", Kind: "ReplicaSet"}:                              {"spec.selector"},
	{Group: "apps", Kind: "DaemonSet"}:                               {"spec.selector"},
	{Group: "apps", Kind: "StatefulSet"}:                             {"spec.selector", "spec.serviceName", "spec.volumeClaimTemplates"},
	{Group: "batch", Kind: "Job"}:                                    {"spec.selector", "spec.template"},
	{Kind: "PersistentVolumeClaim"}:                                  {"spec"},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {"roleRef"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {"roleRef"},
}

// isComposedField reports whether Crossplane writes a field of u. A provider can have copied a name
// into it. Without a pipeline nothing shows who writes it.
func isComposedField(u *unstructured.Unstructured, path ...string) bool {
	e := composedEntry(u)

	return e == nil || Has(Get[map[string]any](e, "fieldsV1"), path...)
}

// composedManager begins the name of the manager of what a pipeline composes (crossplane
// internal/controller/apiextensions/composite, ComposedFieldOwnerName).
const composedManager = "apiextensions.crossplane.io/composed"

// composedEntry returns the entry of the managedFields of u with what a pipeline composes, nil if
// there is none.
func composedEntry(u *unstructured.Unstructured) map[string]any {
	for _, entry := range Get[[]any](u.Object, "metadata", "managedFields") {
		if strings.HasPrefix(Get[string](entry, "manager"), composedManager) {
			return Get[map[string]any](entry)
		}
	}

	return nil
}

package xp

import (
	"slices"
	"strconv"
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
	// uidSecret is the name in a reference to a Secret.
	uidSecret
	// uidLabel is a label, an annotation, or a selector of labels by which an MR finds others.
	uidLabel
	uidExternalName
	// uidProvider is a field of what the provider of an MR creates.
	uidProvider
	// uidName is the object's own name.
	uidName
)

const (
	// maxUIDFields is how many fields UIDFields returns, of the first mostUIDFields that it finds.
	maxUIDFields  = 5
	mostUIDFields = 64
)

// UIDFields returns the first fields of u, by their paths, that have one of the UIDs in them. It
// ignores what Kubernetes and Crossplane write themselves: owner references, resourceRefs, the
// status.
func UIDFields(u *unstructured.Unstructured, uids ...types.UID) []UIDField {
	w := uidWalk{uids: slices.DeleteFunc(slices.Clone(uids), func(uid types.UID) bool { return !isUID(string(uid)) })}
	w.object(u)
	slices.SortFunc(w.found, func(a, b UIDField) int { return strings.Compare(a.Path, b.Path) })

	return w.found[:min(len(w.found), maxUIDFields)]
}

// HasUID reports whether a field that UIDFields looks at has any UID in it.
func HasUID(u *unstructured.Unstructured) bool {
	w := uidWalk{anyUID: true}
	w.object(u)

	return len(w.found) > 0
}

// ReplaceUIDs replaces UIDs in names inside the cluster: in references to Secrets, in labels and
// selectors of labels, and in the spec of an XR, from which its Composition makes such names.
// Crossplane writes the same when it reconciles the XR above.
func ReplaceUIDs(u *unstructured.Unstructured, uids map[types.UID]types.UID) {
	w := uidWalk{replace: uids}
	for old := range uids {
		if isUID(string(old)) {
			w.uids = append(w.uids, old)
		}
	}
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

// containsUID reports whether a part of a text looks like a UID.
func containsUID(text string) bool {
	const first, length = 8, 36
	for n := first; n+length-first <= len(text); n++ {
		if text[n] == '-' && isUID(text[n-first:n-first+length]) {
			return true
		}
	}

	return false
}

// isUID reports whether a text looks like a UID that Kubernetes makes.
func isUID(text string) bool {
	const length = 36
	if len(text) != length {
		return false
	}
	for n := range length {
		c := text[n]
		switch n {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}

	return true
}

// IsCarried reports whether ReplaceUIDs replaces the UID in this field of u.
func (f UIDField) IsCarried(u *unstructured.Unstructured) bool {
	w := uidWalk{custom: IsCustomGroup(u.GroupVersionKind().Group), inXR: IsComposite(u) && strings.HasPrefix(f.Path, "spec")}

	return w.replaces(f.place)
}

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
	if e == nil {
		return true
	}
	_, ok, _ := unstructured.NestedFieldNoCopy(e, append([]string{"fieldsV1"}, path...)...)

	return ok
}

// composedManager begins the name of the manager of what a pipeline composes (crossplane
// internal/controller/apiextensions/composite, ComposedFieldOwnerName).
const composedManager = "apiextensions.crossplane.io/composed"

// composedEntry returns the entry of the managedFields of u with what a pipeline composes, nil if
// there is none.
func composedEntry(u *unstructured.Unstructured) map[string]any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
	entries, _ := v.([]any)
	for _, entry := range entries {
		e, _ := entry.(map[string]any)
		if manager, _ := e["manager"].(string); strings.HasPrefix(manager, composedManager) {
			return e
		}
	}

	return nil
}

// A uidWalk looks once at each text of an object. It allocates nothing unless it finds a UID. With
// replace it replaces them, else it collects the fields.
type uidWalk struct {
	uids    []types.UID
	replace map[types.UID]types.UID
	found   []UIDField
	// anyUID means that any text that looks like a UID is found.
	anyUID bool
	// custom means that the object is a custom resource, inXR that the field is in an XR's spec.
	custom, inXR bool
}

func (w *uidWalk) replaces(p uidPlace) bool {
	return p == uidSecret || p == uidLabel && w.custom || p == uidOther && w.inXR
}

func (w *uidWalk) object(u *unstructured.Unstructured) {
	if len(w.uids) == 0 && !w.anyUID {
		return
	}
	w.custom = IsCustomGroup(u.GroupVersionKind().Group)
	for name, v := range u.Object {
		from := len(w.found)
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := v.(map[string]any)
			w.metadata(metadata)
		case "spec":
			spec, _ := v.(map[string]any)
			w.inXR = IsComposite(u)
			w.spec(spec)
			w.inXR = false
		default:
			w.value(v, uidOther)
		}
		w.below(name, from)
	}
}

func (w *uidWalk) metadata(metadata map[string]any) {
	from := len(w.found)
	w.value(metadata["name"], uidName)
	w.below("name", from)
	for _, field := range []string{"labels", "annotations"} {
		from, all := len(w.found), metadata[field]
		entries, _ := all.(map[string]any)
		for name, v := range entries {
			switch from := len(w.found); {
			case name == AnnotationExternalName:
				w.set(entries, name, v, uidExternalName)
				w.at(name, from)
			case isOfCrossplane(name), isOfVelero(name), name == AnnotationLastApplied:
			default:
				w.set(entries, name, v, uidLabel)
				w.at(name, from)
			}
		}
		w.below(field, from)
	}
}

func isOfVelero(name string) bool {
	in, _, _ := strings.Cut(name, "/")

	return in == "velero.io" || strings.HasSuffix(in, ".velero.io") || in == "velero.crossplane.x-k8s.io"
}

// spec looks at a spec without the fields of an XR that Crossplane writes.
func (w *uidWalk) spec(spec map[string]any) {
	for name, v := range spec {
		place, from := uidOther, len(w.found)
		switch name {
		case "forProvider", "initProvider":
			if w.custom {
				place = uidProvider
			}
		case "resourceRefs", "claimRef", "resourceRef", "crossplane", fieldComposition, fieldRevision:
			if w.inXR {
				continue
			}
		}
		w.field(spec, name, v, place)
		w.below(name, from)
	}
}

// field looks at a field by its name.
func (w *uidWalk) field(of map[string]any, name string, v any, place uidPlace) {
	nested, isMap := v.(map[string]any)
	switch {
	case name == "manifest" && place == uidProvider:
		w.manifest(v) // What provider-kubernetes applies is the external resource, whatever its fields are called.
	case isSecretReference(name), name == "writeConnectionSecretToRef":
		w.secrets(of, name, v, place)
	case w.custom && strings.HasSuffix(name, "Selector") && isMap:
		for name, v := range nested {
			from := len(w.found)
			if name == "matchLabels" {
				w.value(v, uidLabel)
			} else {
				w.field(nested, name, v, place)
			}
			w.below(name, from)
		}
	default:
		w.set(of, name, v, place)
	}
}

// secrets looks at one or more references to Secrets.
func (w *uidWalk) secrets(of map[string]any, name string, v any, place uidPlace) {
	switch v := v.(type) {
	case []any:
		for n, entry := range v {
			from := len(w.found)
			if ref, ok := entry.(map[string]any); ok {
				w.secret(ref, place)
			} else if changed, ok := w.value(entry, place); ok {
				v[n] = changed
			}
			w.at(strconv.Itoa(n), from)
		}
	case map[string]any:
		w.secret(v, place)
	default:
		w.set(of, name, v, place)
	}
}

func (w *uidWalk) secret(ref map[string]any, place uidPlace) {
	for name, v := range ref {
		from := len(w.found)
		if name == "name" {
			w.set(ref, name, v, uidSecret)
		} else {
			w.field(ref, name, v, place)
		}
		w.below(name, from)
	}
}

func (w *uidWalk) manifest(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, v := range v {
			from := len(w.found)
			w.text(name, uidProvider)
			w.manifest(v)
			w.below(name, from)
		}
	case []any:
		for n, entry := range v {
			from := len(w.found)
			w.manifest(entry)
			w.at(strconv.Itoa(n), from)
		}
	default:
		w.value(v, uidProvider)
	}
}

// set looks at the value of a field, and replaces it if it is a text that changes.
func (w *uidWalk) set(of map[string]any, name string, v any, place uidPlace) {
	if changed, ok := w.value(v, place); ok {
		of[name] = changed
	}
}

// value looks at a value. It returns true if that is a text in which UIDs were replaced.
func (w *uidWalk) value(v any, place uidPlace) (changed string, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			from := len(w.found)
			w.text(name, place)
			w.field(v, name, field, place)
			w.below(name, from)
		}
	case []any:
		for n, entry := range v {
			from := len(w.found)
			if changed, ok := w.value(entry, place); ok {
				v[n] = changed
			}
			w.at(strconv.Itoa(n), from)
		}
	case string:
		return w.text(v, place)
	}

	return "", false
}

func (w *uidWalk) text(text string, place uidPlace) (changed string, ok bool) {
	if w.anyUID && len(w.found) == 0 && containsUID(text) {
		w.found = append(w.found, UIDField{place: place})
	}
	for _, uid := range w.uids {
		switch {
		case len(text) < len(uid) || !strings.Contains(text, string(uid)):
		case w.replace == nil:
			if len(w.found) < mostUIDFields {
				w.found = append(w.found, UIDField{UID: uid, place: place})
			}
		case w.replaces(place):
			text, ok = strings.ReplaceAll(text, string(uid), string(w.replace[uid])), true
		}
	}

	return text, ok
}

// below adds the name of a field to the paths of what was found in it.
func (w *uidWalk) below(name string, from int) {
	for n := from; n < len(w.found); n++ {
		path := w.found[n].Path
		if path != "" && path[0] != '[' {
			path = "." + path
		}
		w.found[n].Path = shorten(shorten(name) + path)
	}
}

// shorten cuts a path, or a name in it. A tenant can write keys of any length, and nest them deeply.
func shorten(path string) string {
	const longest = 200
	if len(path) <= longest {
		return path
	}

	return strings.ToValidUTF8(path[:longest], "") + "…"
}

// at adds the key of an entry to the paths of what was found in it.
func (w *uidWalk) at(key string, from int) {
	if len(w.found) > from {
		w.below("["+key+"]", from)
	}
}

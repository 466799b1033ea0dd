package xp

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

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
			if w.count(place.isIdentity()) < mostUIDFields {
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

// count returns how many of the found fields may be an identity, or how many may not.
func (w *uidWalk) count(identity bool) int {
	n := 0
	for _, f := range w.found {
		if f.place.isIdentity() == identity {
			n++
		}
	}

	return n
}

package xp

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A uidWalk looks once at each text of an object that can have a UID in it.
type uidWalk struct {
	// visit returns what replaces a text. Of the name of a field that counts nothing.
	visit func(path, text string, place uidPlace) string
	// paths means that visit needs the path. Without it a walk allocates nothing.
	paths bool
	// custom means that the object is a custom resource.
	custom bool
}

// A uidContext is what a value is for, and the field that it is in if that gives fields below it a
// meaning.
type uidContext struct {
	place uidPlace
	in    uidParent
}

type uidParent int

const (
	inAny uidParent = iota
	inManifest
	inSecretReference
	inSelector
)

func (w *uidWalk) object(u *unstructured.Unstructured) {
	w.custom = IsCustomGroup(u.GroupVersionKind().Group)
	for name, v := range u.Object {
		switch name {
		case "apiVersion", "kind", "status":
		case "metadata":
			w.metadata(Get[map[string]any](v))
		case "spec":
			w.spec(Get[map[string]any](v), IsComposite(u))
		default:
			w.value(name, v, uidContext{})
		}
	}
}

// metadata looks at the name, and at labels and annotations of others than Crossplane and Velero.
func (w *uidWalk) metadata(metadata map[string]any) {
	w.value("metadata.name", metadata["name"], uidContext{place: uidName})
	for _, field := range []string{"labels", "annotations"} {
		entries := Get[map[string]any](metadata, field)
		for name := range entries {
			place := uidOther
			switch {
			case name == AnnotationExternalName:
				place = uidExternalName
			case isOf(name, domain, "velero.io", "velero.crossplane.x-k8s.io"), name == AnnotationLastApplied:
				continue
			case w.custom:
				place = uidCarried
			}
			w.field(entries, name, w.entry(w.below("metadata", field), name), uidContext{place: place})
		}
	}
}

// spec looks at a spec without the fields of an XR that Crossplane writes.
func (w *uidWalk) spec(spec map[string]any, isXR bool) {
	for name := range spec {
		c := w.enter(uidContext{}, name)
		if isXR {
			c.place = uidCarried
		}
		switch name {
		case "forProvider", "initProvider":
			if w.custom {
				c.place = uidProvider
			}
		case "resourceRefs", "claimRef", "resourceRef", "crossplane", fieldComposition, fieldRevision:
			if isXR {
				continue
			}
		}
		w.field(spec, name, w.below("spec", name), c)
	}
}

// field looks at a field, and replaces it if it is a text that changes.
func (w *uidWalk) field(of map[string]any, name, path string, c uidContext) {
	if changed, ok := w.value(path, of[name], c); ok {
		of[name] = changed
	}
}

// value looks at a value. It returns true if that is a text that changes.
func (w *uidWalk) value(path string, v any, c uidContext) (changed string, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			at := w.below(path, name)
			w.visit(at, name, c.place)
			w.field(v, name, at, w.enter(c, name))
		}
	case []any:
		for n, entry := range v {
			if changed, ok := w.value(w.entry(path, strconv.Itoa(n)), entry, c); ok {
				v[n] = changed
			}
		}
	case string:
		changed = w.visit(path, v, c.place)

		return changed, changed != v
	}

	return "", false
}

// enter returns the context of a field. What provider-kubernetes applies is the external resource,
// whatever its fields are called.
func (w *uidWalk) enter(c uidContext, field string) uidContext {
	switch {
	case c.in == inManifest:
		return c
	case field == "manifest" && c.place == uidProvider:
		return uidContext{place: c.place, in: inManifest}
	case c.in == inSecretReference && field == "name":
		return uidContext{place: uidSecret}
	case c.in == inSelector && field == "matchLabels":
		return uidContext{place: uidCarried}
	case isSecretReference(field), field == "writeConnectionSecretToRef":
		return uidContext{place: c.place, in: inSecretReference}
	case w.custom && strings.HasSuffix(field, "Selector"):
		return uidContext{place: c.place, in: inSelector}
	default:
		return uidContext{place: c.place}
	}
}

// below adds the name of a field to a path.
func (w *uidWalk) below(path, name string) string {
	if !w.paths {
		return ""
	}

	return shorten(path + "." + shorten(name))
}

// entry adds the key of an entry to a path.
func (w *uidWalk) entry(path, key string) string {
	if !w.paths {
		return ""
	}

	return shorten(path + "[" + shorten(key) + "]")
}

// shorten cuts a path, or a name in it. A tenant can write keys of any length, and nest them deeply.
func shorten(path string) string {
	const longest = 200
	if len(path) <= longest {
		return path
	}

	return strings.ToValidUTF8(path[:longest], "") + "…"
}

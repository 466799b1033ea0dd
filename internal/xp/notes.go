package xp

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// A note is a field of metadata that only the backup's copy of an object has. The API server drops
// fields of metadata that it does not know (k8s.io/apiextensions-apiserver
// pkg/apiserver/schema/objectmeta, GetObjectMeta). So no live object has them, no tenant can write
// them, and a restore without this plugin leaves nothing of them.
const (
	// FieldFormat is the format of the notes, a number. The default is the first format
	// (docs/dev/architecture.md).
	FieldFormat = "velero.crossplane.io/format"
	// FieldRestoreFirst is the ordered list of what a restore must restore before the object, as
	// "resource.group/namespace/name" (see Item).
	FieldRestoreFirst = "velero.crossplane.io/restore-first"
	// FieldUnresolvedRefs lists the resourceRefs of an XR that were not live at the backup, or that
	// another owner controlled. A restore does not wait for them.
	FieldUnresolvedRefs = "velero.crossplane.io/unresolved-refs"
	// FieldConditions has the conditions of each composed resource of an XR that were True at the
	// backup. A restore waits until they are True again.
	FieldConditions = "velero.crossplane.io/composed-conditions"
	// FieldPublished is true if the backup has the connection secret of the object, in any
	// namespace. A restore waits for it.
	FieldPublished = "velero.crossplane.io/published"
	// FieldUnnamed is true for an MR that has no external-name and never gets one.
	FieldUnnamed = "velero.crossplane.io/unnamed"
	// FieldDoubted is true if other MRs of the kind contradict the rule that derives the
	// external-name from the id.
	FieldDoubted = "velero.crossplane.io/doubted"
	// FieldInputs lists the Secrets that the provider of an MR reads, and for each whether it was
	// live and whether the backup has it. A restore waits for those that were live.
	FieldInputs = "velero.crossplane.io/inputs"
	// FieldUIDs lists the objects whose UIDs a composed object has in its fields. They have other
	// UIDs after a restore.
	FieldUIDs = "velero.crossplane.io/uids"
)

// noteFields are the fields of all notes.
//
//nolint:gochecknoglobals // It is a constant list.
var noteFields = []string{
	FieldFormat, FieldRestoreFirst, FieldUnresolvedRefs, FieldConditions, FieldPublished, FieldInputs, FieldUnnamed, FieldDoubted,
	FieldUIDs,
}

// Annotations that make Velero include the additional items of an action despite the filters of the
// backup or restore. Any writer of an object can set them. Velero 1.18.3 removes the second before it
// creates the object; 1.18.1 does not know it.
const (
	AnnotationMustInclude = "backup.velero.io/must-include-additional-items"
	AnnotationMustRestore = "restore.velero.io/must-include-additional-items"
)

// StripBackupMetadata removes from u what only the backup's copy has.
func StripBackupMetadata(u *unstructured.Unstructured) {
	for _, name := range noteFields {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	for _, name := range []string{AnnotationMustInclude, AnnotationMustRestore} {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
	}
}

// HasBackupMetadata reports whether u has anything that StripBackupMetadata removes.
func HasBackupMetadata(u *unstructured.Unstructured) bool {
	for _, name := range noteFields {
		if Has(u.Object, "metadata", name) {
			return true
		}
	}

	return HasAnnotation(u, AnnotationMustInclude) || HasAnnotation(u, AnnotationMustRestore)
}

// Format is the newest format of the notes that this version reads, and the one it writes. The
// first format is written without a number (docs/dev/architecture.md).
const Format = 1

// CheckFormat returns an error if a newer version of this plugin has written the notes on the
// backup's copy of u.
func CheckFormat(u *unstructured.Unstructured) error {
	format := Get[any](u.Object, "metadata", FieldFormat)
	if !Has(u.Object, "metadata", FieldFormat) || format == int64(Format) || format == float64(Format) {
		return nil
	}
	switch format.(type) {
	case int64, float64:
	default:
		format = fmt.Sprintf("that is a %T", format)
	}

	return reason.NewerFormat.Errorf("a newer version of this plugin backed it up, in format %v; this version reads up to %d", format, Format)
}

// SetFlag notes on the backup's copy of u that FieldPublished, FieldUnnamed or FieldDoubted is so, or
// not.
func SetFlag(u *unstructured.Unstructured, name string, is bool) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	delete(metadata, name)
	if is && ok { // Every object that Velero backs up has metadata.
		metadata[name] = true
	}
}

// HasFlag reads the note of SetFlag.
func HasFlag(u *unstructured.Unstructured, name string) bool {
	return Get[bool](u.Object, "metadata", name)
}

// setNote notes a list on the backup's copy of u. It replaces an older note.
func setNote[T any](u *unstructured.Unstructured, name string, entries []T, encode func(T) any) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	delete(metadata, name)
	if len(entries) == 0 || !ok { // Every object that Velero backs up has metadata.
		return
	}
	list := make([]any, len(entries))
	for i, entry := range entries {
		list[i] = encode(entry)
	}
	metadata[name] = list
}

// note reads the note of setNote. It returns false if there is none.
func note[T any](u *unstructured.Unstructured, name string, decode func(any) (T, error)) (entries []T, ok bool, err error) {
	if !Has(u.Object, "metadata", name) {
		return nil, false, nil
	}
	v := Get[any](u.Object, "metadata", name)
	list, ok := v.([]any)
	if !ok {
		return nil, false, fmt.Errorf("cannot read metadata[%s] of %s: it is a %T, not a list", name, String(u), v)
	}
	if len(list) > MostRefs {
		return nil, false, fmt.Errorf("cannot read metadata[%s] of %s: it has %d entries, and %d are supported", name, String(u), len(list), MostRefs)
	}
	for _, v := range list {
		entry, err := decode(v)
		if err != nil {
			return nil, false, fmt.Errorf("cannot read metadata[%s] of %s: %w", name, String(u), err)
		}
		entries = append(entries, entry)
	}

	return entries, true, nil
}

// An Item is an object as Velero identifies it.
type Item struct {
	schema.GroupResource
	// Namespace is "" for a cluster-scoped object.
	Namespace string
	Name      string
}

func (i Item) String() string {
	return i.GroupResource.String() + "/" + i.Namespace + "/" + i.Name
}

func parseItem(v any) (Item, error) {
	s, _ := v.(string)
	of, path, _ := strings.Cut(s, "/")
	namespace, name, _ := strings.Cut(path, "/")
	resource := schema.ParseGroupResource(of)
	if resource.Resource == "" || name == "" || strings.Contains(name, "/") {
		return Item{}, fmt.Errorf(`cannot read %q as "resource.group/namespace/name"`, s)
	}

	return Item{GroupResource: resource, Namespace: namespace, Name: name}, nil
}

// SetRestoreFirst notes what a restore must restore before u.
func SetRestoreFirst(u *unstructured.Unstructured, items []Item) {
	setNote(u, FieldRestoreFirst, items, func(i Item) any { return i.String() })
}

// RestoreFirst reads the note of SetRestoreFirst. It returns false if there is none.
func RestoreFirst(u *unstructured.Unstructured) (items []Item, ok bool, err error) {
	return note(u, FieldRestoreFirst, parseItem)
}

// SavedEnvironments returns the names of the EnvironmentConfigs that must come back before an XR,
// from the backup's copy of it: those that its pipeline names and that were live at the backup.
func SavedEnvironments(xr *unstructured.Unstructured) []string {
	items, _, _ := RestoreFirst(xr) // A malformed list has no entries.
	var names []string
	for _, i := range items {
		if i.GroupResource == ResourceEnvironment {
			names = append(names, i.Name)
		}
	}

	return names
}

// SetUnresolvedRefs notes the refs of an XR that a restore must not wait for.
func SetUnresolvedRefs(u *unstructured.Unstructured, refs []Ref) {
	setNote(u, FieldUnresolvedRefs, refs, func(r Ref) any { return r.content() })
}

// UnresolvedRefs reads the note of SetUnresolvedRefs. It returns nil if there is none.
func UnresolvedRefs(u *unstructured.Unstructured) ([]Ref, error) {
	refs, _, err := note(u, FieldUnresolvedRefs, refFrom)

	return refs, err
}

// SetSavedConditions notes the conditions of each composed resource of an XR.
func SetSavedConditions(u *unstructured.Unstructured, composed []*unstructured.Unstructured) {
	setNote(u, FieldConditions, composed, func(c *unstructured.Unstructured) any {
		m := RefTo(c).content()
		m["conditions"] = string(TrueConditionsOf(c))

		return m
	})
}

// SavedConditions returns the noted conditions of each ref, in the order of refs. It returns nil if
// there is no readable note.
func SavedConditions(u *unstructured.Unstructured, refs []Ref) []TrueConditions {
	type composed struct {
		Ref

		conditions TrueConditions
	}
	list, ok, err := note(u, FieldConditions, func(v any) (composed, error) {
		r, err := refFrom(v)

		return composed{Ref: r, conditions: TrueConditions(Get[string](v, "conditions"))}, err
	})
	if err != nil || !ok {
		return nil
	}
	saved := map[ID]TrueConditions{}
	for _, c := range list {
		c.Namespace = cmp.Or(u.GetNamespace(), c.Namespace) // A namespaced XR composes in the namespace that it is restored to.
		saved[c.ID()] = c.conditions
	}
	found := make([]TrueConditions, len(refs))
	for i, r := range refs {
		if found[i], ok = saved[r.ID()]; !ok {
			found[i] = UnknownConditions
		}
	}

	return found
}

// An Input is a Secret that the provider of an MR reads, as a backup knows it.
type Input struct {
	Ref

	// Exists is true if the Secret was live, Stored if the backup has it.
	Exists, Stored bool
}

// SetInputs notes the inputs of an MR.
func SetInputs(u *unstructured.Unstructured, inputs []Input) {
	setNote(u, FieldInputs, inputs, func(in Input) any {
		return map[string]any{"namespace": in.Namespace, "name": in.Name, "exists": in.Exists, "stored": in.Stored}
	})
}

// Inputs reads the note of SetInputs.
func Inputs(mr *unstructured.Unstructured) map[Ref]Input {
	list, _, _ := note(mr, FieldInputs, func(v any) (Input, error) { // A malformed list has no entries.
		r := RefToSecret(Get[string](v, "namespace"), Get[string](v, "name"))

		return Input{Ref: r, Exists: Get[bool](v, "exists"), Stored: Get[bool](v, "stored")}, nil
	})
	inputs := map[Ref]Input{}
	for _, in := range list {
		inputs[in.Ref] = in
	}

	return inputs
}

// A UIDOwner is an object whose UID another object has in its fields.
type UIDOwner struct {
	Ref

	UID types.UID
}

// SetUIDOwners notes whose UIDs a composed object has in its fields.
func SetUIDOwners(u *unstructured.Unstructured, owners []UIDOwner) {
	setNote(u, FieldUIDs, owners, func(o UIDOwner) any {
		return map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind, "name": o.Name, "uid": string(o.UID)}
	})
}

// UIDOwners reads the note of SetUIDOwners, of maxUIDOwners objects at most. They have no namespace:
// an XR above is in the namespace of the object or in none.
func UIDOwners(u *unstructured.Unstructured) []UIDOwner {
	owners, _, _ := note(u, FieldUIDs, func(v any) (UIDOwner, error) { // A malformed list has no entries.
		r, err := refFrom(v)

		return UIDOwner{Ref: r, UID: types.UID(Get[string](v, "uid"))}, err
	})

	return owners[:min(len(owners), maxUIDOwners)]
}

// maxUIDOwners is how many objects above a composed one are looked at.
const maxUIDOwners = 16

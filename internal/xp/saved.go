package xp

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// An Item is an object as Velero identifies it.
type Item struct {
	schema.GroupResource
	// Namespace is "" for a cluster-scoped object.
	Namespace string
	Name      string
}

// Resources of Crossplane's own kinds that every XR needs.
var (
	ResourceXRD         = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositeresourcedefinitions"}
	ResourceComposition = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositions"}
	ResourceRevision    = schema.GroupResource{Group: GroupAPIExtensions, Resource: "compositionrevisions"}
)

func (i Item) String() string {
	return i.GroupResource.String() + "/" + i.Namespace + "/" + i.Name
}

func parseItem(s string) (Item, error) {
	of, path, _ := strings.Cut(s, "/")
	namespace, name, _ := strings.Cut(path, "/")
	resource := schema.ParseGroupResource(of)
	if resource.Resource == "" || name == "" || strings.Contains(name, "/") {
		return Item{}, fmt.Errorf(`cannot read %q as "resource.group/namespace/name"`, s)
	}

	return Item{GroupResource: resource, Namespace: namespace, Name: name}, nil
}

// SetRestoreFirst notes on the backup's copy of u what a restore must restore before u. It replaces
// an older note.
func SetRestoreFirst(u *unstructured.Unstructured, items []Item) {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item.String()
	}
	setField(u, FieldRestoreFirst, list)
}

// RestoreFirst reads the note of SetRestoreFirst. It returns false if there is none.
func RestoreFirst(u *unstructured.Unstructured) (items []Item, ok bool, err error) {
	list, ok, err := field(u, FieldRestoreFirst)
	if err != nil || !ok {
		return nil, false, err
	}
	if len(list) > MostRefs {
		return nil, false, fmt.Errorf("cannot read metadata[%s] of %s: it has %d entries, and %d are supported", FieldRestoreFirst, String(u), len(list), MostRefs)
	}
	items = slices.Grow(items, len(list))
	for _, entry := range list {
		s, _ := entry.(string)
		item, err := parseItem(s)
		if err != nil {
			return nil, false, fmt.Errorf("cannot read metadata[%s] of %s: %w", FieldRestoreFirst, String(u), err)
		}
		items = append(items, item)
	}

	return items, true, nil
}

// SetUnresolvedRefs notes on the backup's copy of an XR the refs that a restore must not wait for.
func SetUnresolvedRefs(u *unstructured.Unstructured, refs []Ref) {
	list := make([]any, len(refs))
	for i, r := range refs {
		m := map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "name": r.Name}
		if r.Namespace != "" {
			m["namespace"] = r.Namespace
		}
		list[i] = m
	}
	setField(u, FieldUnresolvedRefs, list)
}

// UnresolvedRefs reads the note of SetUnresolvedRefs. It returns nil if there is none.
func UnresolvedRefs(u *unstructured.Unstructured) ([]Ref, error) {
	list, ok, err := field(u, FieldUnresolvedRefs)
	if err != nil || !ok {
		return nil, err
	}
	var refs []Ref
	for _, entry := range list {
		r, err := refFrom(entry)
		if err != nil {
			return nil, fmt.Errorf("cannot read metadata[%s] of %s: %w", FieldUnresolvedRefs, String(u), err)
		}
		refs = append(refs, r)
	}

	return refs, nil
}

// SetPublished notes on the backup's copy of an object whether the backup has its connection
// secret.
func SetPublished(u *unstructured.Unstructured, published bool) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	switch {
	case !ok: // Every object that Velero backs up has metadata.
	case published:
		metadata[FieldPublished] = true
	default:
		delete(metadata, FieldPublished)
	}
}

// Published reads the note of SetPublished.
func Published(u *unstructured.Unstructured) bool {
	published, _, _ := unstructured.NestedBool(u.Object, "metadata", FieldPublished)

	return published
}

// Format is the newest format of the notes that this version reads, and the one it writes. The
// first format is written without a number (docs/dev/architecture.md).
const Format = 1

// CheckFormat returns an error if a newer version of this plugin has written the notes on the
// backup's copy of u.
func CheckFormat(u *unstructured.Unstructured) error {
	metadata, _ := u.Object["metadata"].(map[string]any)
	format, ok := metadata[FieldFormat]
	switch n := format.(type) {
	case int64, float64:
		if n == int64(Format) || n == float64(Format) {
			return nil
		}
	default:
		if !ok {
			return nil
		}
		format = fmt.Sprintf("that is a %T", format)
	}

	return reason.NewerFormat.Errorf("a newer version of this plugin backed it up, in format %v; this version reads up to %d", format, Format)
}

// SetMustInclude makes Velero back up all additional items of u despite the backup's filters.
func SetMustInclude(u *unstructured.Unstructured) {
	Annotate(u, AnnotationMustInclude, "true")
}

// backupMetadata are the fields of metadata that only the backup's copy of an object has.
//
//nolint:gochecknoglobals // It is a constant list.
var backupMetadata = []string{
	FieldFormat, FieldRestoreFirst, FieldUnresolvedRefs, FieldConditions, FieldPublished, FieldInputs, FieldUnnamed, FieldDoubted,
	FieldUIDs,
}

// SetMustRestore makes Velero restore all additional items of u despite the restore's filters.
// Velero 1.18.3 removes the annotation before it creates u. 1.18.1 does not know it.
func SetMustRestore(u *unstructured.Unstructured) {
	Annotate(u, AnnotationMustRestore, "true")
}

// StripBackupMetadata removes from u what only the backup's copy has.
func StripBackupMetadata(u *unstructured.Unstructured) {
	for _, name := range backupMetadata {
		unstructured.RemoveNestedField(u.Object, "metadata", name)
	}
	for _, name := range []string{AnnotationMustInclude, AnnotationMustRestore} {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
	}
}

// HasBackupMetadata reports whether u has anything that StripBackupMetadata removes.
func HasBackupMetadata(u *unstructured.Unstructured) bool {
	for _, name := range backupMetadata {
		if _, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", name); ok {
			return true
		}
	}

	return HasAnnotation(u, AnnotationMustInclude) || HasAnnotation(u, AnnotationMustRestore)
}

// field reads a list from the metadata of the backup's copy of an object. It returns false if there
// is none.
func field(u *unstructured.Unstructured, name string) (list []any, ok bool, err error) {
	v, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", name)
	if !ok {
		return nil, false, nil
	}
	if list, ok = v.([]any); !ok {
		return nil, false, fmt.Errorf("cannot read metadata[%s] of %s: it is a %T, not a list", name, String(u), v)
	}

	return list, true, nil
}

func setField(u *unstructured.Unstructured, name string, list []any) {
	if len(list) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", name)

		return
	}
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return // Every object that Velero backs up has metadata.
	}
	metadata[name] = list
}

package archive

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Backup is the content of a tarball.
type Backup struct {
	// Format is the version of the layout that the backup states; "" if none.
	Format string
	// Items are the readable ones, sorted by resource, namespace and name.
	Items []Item
	// Flaws are the files that could not be read, or that Velero ignores.
	Flaws []Flaw
	// Versions are the source cluster's preferred versions by resource, as far as the backup states
	// them.
	Versions map[schema.GroupResource]string
}

// An Item is an object of a backup. Secrets have no data. An object has only metadata if it is no
// custom resource and does not mention Crossplane.
type Item struct {
	xp.Item

	object pack.Object
}

// Object returns a copy of the object, which the caller may change. Each call unpacks it again: a
// backup can have more objects than fit in memory.
func (i Item) Object() *unstructured.Unstructured { return i.Part(nil) }

// Part returns a copy of the part of the object that a shape describes; the whole object for nil.
func (i Item) Part(shape *pack.Shape) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: i.object.Unpack(shape)}
}

// Text returns a string field of the object; "" if it does not exist.
func (i Item) Text(path ...string) string {
	s, _ := i.object.Field(path...).(string)

	return s
}

// Ref returns the object's reference.
func (i Item) Ref() xp.Ref {
	return xp.Ref{APIVersion: i.Text("apiVersion"), Kind: i.Text("kind"), Namespace: i.Namespace, Name: i.Name}
}

// A Flaw is an unusable file in a backup.
type Flaw struct {
	// Path is the path in the tarball.
	Path string
	// Item is the item that the path names; without a name if the path is not that of an item.
	Item xp.Item
	// Why is what is wrong with the file.
	Why string
	// Ignored is set if Velero ignores the file too.
	Ignored bool
}

// Index returns the position of an item in Items; -1 if it is not there.
func (b *Backup) Index(name xp.Item) int {
	n, ok := slices.BinarySearchFunc(b.Items, name, func(i Item, name xp.Item) int { return compare(i.Item, name) })
	if !ok {
		return -1
	}

	return n
}

// Get returns a copy of an item's object; nil if it is not there.
func (b *Backup) Get(name xp.Item) *unstructured.Unstructured {
	n := b.Index(name)
	if n < 0 {
		return nil
	}

	return b.Items[n].Object()
}

func compare(a, b xp.Item) int {
	if a.GroupResource != b.GroupResource {
		return cmp.Compare(a.GroupResource.String(), b.GroupResource.String())
	}

	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

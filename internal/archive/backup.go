package archive

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Backup is what is in a tarball.
type Backup struct {
	// Format is the version of the layout, as the backup says.
	Format string
	// Items are those that could be read, by resource, namespace and name.
	Items []Item
	// Flaws are the files that could not be read, or that Velero does not read.
	Flaws []Flaw
	// Versions are those that the source cluster preferred of each resource, as far as the backup
	// says.
	Versions map[schema.GroupResource]string
}

// An Item is one object of a backup. Secrets have no data, and what is no custom resource and has
// nothing to do with Crossplane has no more than its metadata.
type Item struct {
	xp.Item

	object pack.Object
}

// Object returns the object, which is the caller's: each call makes another, since a backup can
// have more of them than there is memory for.
func (i Item) Object() *unstructured.Unstructured { return i.Part(nil) }

// Part returns what of the object has a shape.
func (i Item) Part(shape *pack.Shape) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: i.object.Unpack(shape)}
}

// Text returns a string in the object; "" if it is not there.
func (i Item) Text(path ...string) string {
	s, _ := i.object.Field(path...).(string)

	return s
}

// Ref names the object.
func (i Item) Ref() xp.Ref {
	return xp.Ref{APIVersion: i.Text("apiVersion"), Kind: i.Text("kind"), Namespace: i.Namespace, Name: i.Name}
}

// A Flaw is a file in a backup that is of no use.
type Flaw struct {
	// Path in the tarball.
	Path string
	// Item is what the path names; it has no name if that is not the path of an item.
	Item xp.Item
	// Why it is of no use.
	Why string
	// Ignored says that Velero leaves it alone too.
	Ignored bool
}

// Index returns where among the Items one is, as Velero names it; -1 if it is not there.
func (b *Backup) Index(name xp.Item) int {
	n, ok := slices.BinarySearchFunc(b.Items, name, func(i Item, name xp.Item) int { return compare(i.Item, name) })
	if !ok {
		return -1
	}

	return n
}

// Get returns the object of an item as Velero names it, which is the caller's; nil if it is not
// there.
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

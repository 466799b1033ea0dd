package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A fact is what planning asks of an object again and again, and what takes long to find out.
type fact struct {
	// version and mark are those of the object when it was found out, and key is what the annotation is called that has the mark.
	version, mark, key string
	// composite says that it is an XR, marked that it is an MR with a mark, and publishes that it is one that publishes connection details.
	composite, marked, publishes bool
	// hold and err are what HoldOf says.
	hold *Hold
	err  error
}

// factOf returns what is known of an object as it is now. Nobody may change the hold in it.
func (w *World) factOf(u *unstructured.Unstructured) *fact {
	f, known := w.facts[u]
	if known && f.version == u.GetResourceVersion() && f.mark == xp.Annotation(u, f.key) {
		return f
	}
	f = &fact{version: u.GetResourceVersion(), key: key(u), composite: xp.IsComposite(u), marked: IsMarked(u), publishes: xp.Publishes(u)}
	f.mark = xp.Annotation(u, f.key)
	f.hold, f.err = HoldOf(u)
	if w.packer == nil || w.objects[xp.RefTo(u).ID()] == u {
		w.facts[u] = f
	}

	return f
}

// holdOf is HoldOf for what was observed, without reading the same mark again.
func (w *World) holdOf(u *unstructured.Unstructured) (*Hold, error) {
	f := w.factOf(u)

	return f.hold, f.err
}

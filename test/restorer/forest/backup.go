package forest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/backupitem"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An Archive is the content of a backup.
type Archive struct {
	Of     *velerov1.Backup
	Record *Record
	// Order is the order in which the items were stored.
	Order []xp.Item
	Items map[xp.Item]*unstructured.Unstructured
	// Failed are the items for which an action has failed.
	Failed map[xp.Item]error
}

// A backup is a backup in progress.
type backup struct {
	*Archive

	forest *Forest
	source *Cluster
	tree   *backupitem.Tree
	block  *backupitem.ItemBlock
	rules  rules
	tried  map[xp.Item]bool
	defect Defect
}

// BackUp takes a backup as Velero does (velero pkg/backup, item_collector.go and
// item_backupper.go), with the items in random order.
func BackUp(f *Forest, of *velerov1.Backup, random *rand.Rand, defect Defect) *Archive {
	a := &Archive{Of: of, Record: &Record{drop: defect.DropLine}, Items: map[xp.Item]*unstructured.Unstructured{}, Failed: map[xp.Item]error{}}
	source := f.source()
	links := backupitem.NewResolver(source)
	b := &backup{
		Archive: a, forest: f, source: source, tried: map[xp.Item]bool{}, defect: defect,
		tree: backupitem.NewTree(links, a.Record.Log()), block: backupitem.NewItemBlock(links, a.Record.Log()),
	}
	selector, _ := b.tree.AppliesTo() // It has no error.
	b.rules = rulesOf(selector)
	objects := slices.Clone(f.Objects)
	random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	for _, o := range objects {
		if isSelected(of, o) {
			b.store(o.Unstructured, false)
		}
	}
	for _, ns := range f.Namespaces {
		if of.Spec.LabelSelector == nil && included(of.Spec.IncludedNamespaces, of.Spec.ExcludedNamespaces, ns) {
			i := xp.Item{GroupResource: namespace.Resource(), Name: ns}
			u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": ns, "uid": "namespace-" + ns}}}
			u.SetGroupVersionKind(namespace.GroupVersionKind)
			b.Order, b.Items[i] = append(b.Order, i), u
		}
	}

	return a
}

// Objects returns what is stored, in a stable order.
func (a *Archive) Objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, i := range a.Order {
		all = append(all, a.Items[i])
	}

	return all
}

// ItemAt returns the item that is restored to the place of an object. It returns false if there is
// none.
func (a *Archive) ItemAt(u *unstructured.Unstructured, mapping map[string]string) (xp.Item, bool) {
	for i := range a.Items {
		there := i
		if to, ok := mapping[i.Namespace]; ok && i.Namespace != "" {
			there.Namespace = to
		}
		if there == itemOf(u) {
			return i, true
		}
	}

	return xp.Item{}, false
}

// isSelected reports whether the backup's filters select an object.
func isSelected(of *velerov1.Backup, o *Object) bool {
	if o.GetLabels()[velerov1.ExcludeFromBackupLabel] == "true" {
		return false
	}
	if s := of.Spec.LabelSelector; s != nil && !selects(s, o.Unstructured) {
		return false
	}
	if o.GetNamespace() != "" {
		return included(of.Spec.IncludedNamespaces, of.Spec.ExcludedNamespaces, o.GetNamespace())
	}
	whole := len(of.Spec.IncludedNamespaces) == 0 && len(of.Spec.ExcludedNamespaces) == 0

	return isTrue(of.Spec.IncludeClusterResources) || of.Spec.IncludeClusterResources == nil && whole
}

func (b *backup) store(live *unstructured.Unstructured, mustInclude bool) {
	i := itemOf(live)
	outside := i.Namespace != "" && !included(b.Of.Spec.IncludedNamespaces, b.Of.Spec.ExcludedNamespaces, i.Namespace) ||
		i.Namespace == "" && isFalse(b.Of.Spec.IncludeClusterResources)
	if !mustInclude && (outside || live.GetLabels()[velerov1.ExcludeFromBackupLabel] == "true") || live.GetDeletionTimestamp() != nil || b.tried[i] {
		return
	}
	b.tried[i] = true
	u := live.DeepCopy()
	if b.rules.apply(i, u) {
		if _, err := b.block.GetRelatedItems(live.DeepCopy(), b.Of); err != nil {
			b.Failed[i] = err

			return
		}
		updated, more, _, _, err := b.tree.Execute(u, b.Of)
		if err != nil {
			b.Failed[i] = err

			return
		}
		u = &unstructured.Unstructured{Object: updated.UnstructuredContent()}
		must := u.GetAnnotations()[xp.AnnotationMustInclude] == "true"
		if b.defect.Additional != nil {
			more = b.defect.Additional(b.forest, i, more)
		}
		for _, id := range more {
			b.additional(live, id, must)
		}
	}
	b.Order, b.Items[i] = append(b.Order, i), u
}

// additional stores an additional item of an action.
func (b *backup) additional(live *unstructured.Unstructured, id velero.ResourceIdentifier, must bool) {
	if o := b.forest.byItem[xp.Item{GroupResource: id.GroupResource, Namespace: id.Namespace, Name: id.Name}]; o != nil {
		b.store(o.Unstructured, must)

		return
	}
	b.Record.add(fmt.Sprintf("warning: %s asks for %v, which Velero does not find", xp.String(live), id))
}

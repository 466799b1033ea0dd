package forest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// A Restored is an object that a restore has created.
type Restored struct {
	Item xp.Item
	// Object is the object as it was created, with its new UID.
	Object *unstructured.Unstructured
	// Early is true if it was restored in the turn of a kind that Velero restores before custom
	// resources.
	Early bool
}

// A Run is the result of one restore.
type Run struct {
	Of     *velerov1.Restore
	Record *Record
	// Created are in the order of their creation.
	Created []Restored
	// Failed are the items that an action has refused, with its error.
	Failed map[xp.Item]error
	// Tried are the items that Velero came to and that pass the filters.
	Tried map[xp.Item]bool
	// Before and After are the objects of the cluster.
	Before, After map[xp.ID]*unstructured.Unstructured
}

// A restore is a restore in progress.
type restore struct {
	*Run

	archive *Archive
	cluster *Cluster
	actions []action
	defect  Defect
	count   int
	early   bool
	forest  *Forest
}

type action struct {
	riav2.RestoreItemAction
	rules
}

// Restore restores a backup as Velero does (velero pkg/restore/restore.go, restoreItem), with the
// items in random order. before is a copy of the cluster; nil makes one.
func Restore(
	f *Forest, a *Archive, cluster *Cluster, of *velerov1.Restore, before map[xp.ID]*unstructured.Unstructured, random *rand.Rand, defect Defect,
) *Run {
	if before == nil {
		before = cluster.copies()
	}
	r := &restore{
		Run: &Run{
			Of: of, Record: &Record{drop: defect.DropLine}, Failed: map[xp.Item]error{}, Tried: map[xp.Item]bool{}, Before: before,
		},
		archive: a, cluster: cluster, defect: defect, forest: f,
	}
	r.prepare()
	items := slices.Clone(a.Order)
	random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	sorted := random.IntN(2) == 0
	if sorted { // Velero's order without other priorities.
		slices.SortStableFunc(items, func(a, b xp.Item) int { return priority(a) - priority(b) })
	}
	for _, i := range items {
		if r.early = sorted && priority(i) < 3; r.selects(i) {
			r.item(i)
		}
	}
	r.After = cluster.copies()

	return r.Run
}

// priority returns the place of a resource in Velero's order.
func priority(i xp.Item) int {
	switch name := i.GroupResource.String(); name {
	case "namespaces":
		return 0
	case "secrets":
		return 1
	case "configmaps":
		return 2
	default:
		return 3 + slices.IndexFunc(alphabet, func(s string) bool { return s == name })
	}
}

var alphabet = func() []string {
	var all []string
	for _, k := range Kinds() {
		all = append(all, k.Resource().String())
	}
	slices.Sort(all)

	return all
}()

func (r *restore) prepare() {
	log, known := r.Record.Log(), r.cluster.view()
	shared := restoreitem.Shared{Requested: &restoreitem.RequestedItems{}, XRDs: restoreitem.NewXRDCheck(known)}
	for _, o := range restoreitem.Orders() {
		order := restoreitem.NewOrder(o.Selector, known, log, shared)
		r.actions = append(r.actions, action{order, rulesOf(o.Selector)})
	}
	for _, a := range restoreitem.Adopts() {
		adopt := restoreitem.NewAdopt(a.Selector, known, nil, log, shared)
		r.actions = append(r.actions, action{adopt, rulesOf(a.Selector)})
	}
}

// selects reports whether the restore selects an item that nothing asks for.
func (r *restore) selects(i xp.Item) bool {
	if s := r.Of.Spec.LabelSelector; s != nil && !selects(s, r.archive.Items[i]) {
		return false
	}
	some := len(r.Of.Spec.IncludedNamespaces) > 0 || len(r.Of.Spec.ExcludedNamespaces) > 0

	return r.passes(i) &&
		(i.Namespace != "" || i.GroupResource == namespace.Resource() || !some || isTrue(r.Of.Spec.IncludeClusterResources) || r.defect.BringBack)
}

// passes reports whether the restore's filters admit an additional item.
func (r *restore) passes(i xp.Item) bool {
	s := r.Of.Spec
	if !included(s.IncludedResources, s.ExcludedResources, i.GroupResource.String()) {
		return false
	}
	if i.Namespace == "" {
		return !isFalse(s.IncludeClusterResources) || i.GroupResource == namespace.Resource()
	}

	return included(s.IncludedNamespaces, s.ExcludedNamespaces, i.Namespace)
}

func (r *restore) item(i xp.Item) {
	original := r.archive.Items[i]
	if original == nil {
		r.Record.add("warning: unable to restore additional item " + i.String())

		return
	}
	if !r.passes(i) || r.Tried[i] {
		return
	}
	r.Tried[i] = true
	u := reset(original)
	for _, a := range r.actions {
		if !a.apply(i, u) {
			continue
		}
		out, err := a.Execute(&velero.RestoreItemActionExecuteInput{Item: u.DeepCopy(), ItemFromBackup: original.DeepCopy(), Restore: r.Of})
		if err != nil {
			r.Failed[i] = err

			return
		}
		if out.SkipRestore {
			return
		}
		if out.UpdatedItem != nil {
			u = &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
		}
		more := out.AdditionalItems
		if r.defect.First != nil {
			more = r.defect.First(more)
		}
		for _, id := range more {
			r.item(xp.Item{GroupResource: id.GroupResource, Namespace: id.Namespace, Name: id.Name})
		}
		if out.WaitForAdditionalItems {
			_, _ = a.AreAdditionalItemsReady(nil, r.Of) // Nothing becomes ready later.
		}
	}
	r.create(i, original, u)
}

// create does what Velero and the API server do.
func (r *restore) create(i xp.Item, original, u *unstructured.Unstructured) {
	if to, ok := r.Of.Spec.NamespaceMapping[i.Namespace]; ok && i.Namespace != "" {
		u.SetNamespace(to)
	}
	if r.defect.Created != nil {
		r.defect.Created(original, u)
	}
	id := xp.RefTo(u).ID()
	if live := r.cluster.objects[id]; live != nil {
		if r.defect.Again != nil {
			r.defect.Again(live)
		}
		// The API server refuses an update of this field.
		if r.Of.Spec.ExistingResourcePolicy == velerov1.PolicyTypeUpdate && u.GetDeletionGracePeriodSeconds() == nil {
			r.overwrite(live, u)
		}

		return
	}
	if _, _, err := r.cluster.Resource(u.GroupVersionKind()); err != nil {
		r.Failed[i] = err

		return
	}
	if u.GetAnnotations()[xp.AnnotationRestoreStatus] == "true" {
		if status, ok := original.Object["status"]; ok {
			u.Object["status"] = status
		}
	}
	l := u.GetLabels()
	if l == nil {
		l = map[string]string{}
	}
	l[velerov1.RestoreNameLabel], l[velerov1.BackupNameLabel] = r.Of.Name, "backup"
	u.SetLabels(l)
	r.count++
	u.SetUID(types.UID(fmt.Sprintf("new-%s-%d", r.Of.Name, r.count)))
	u.SetDeletionGracePeriodSeconds(nil)
	u = u.DeepCopy()
	r.cluster.objects[id] = u
	r.Created = append(r.Created, Restored{Item: i, Object: u.DeepCopy(), Early: r.early})
}

// overwrite implements --existing-resource-policy=update.
func (*restore) overwrite(live, u *unstructured.Unstructured) {
	for key, value := range u.Object {
		if key != "metadata" && key != "status" {
			live.Object[key] = value
		}
	}
	if refs := u.GetOwnerReferences(); len(refs) > 0 {
		live.SetOwnerReferences(refs)
	}
	live.SetAnnotations(u.GetAnnotations())
}

// reset returns the item as Velero gives it to the first action: without what the API server
// writes.
func reset(original *unstructured.Unstructured) *unstructured.Unstructured {
	u := original.DeepCopy()
	for _, field := range []string{
		"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences",
	} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(u.Object, "status")

	return u
}

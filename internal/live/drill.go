package live

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// statusInterval is the time between two looks at an answer of Velero's server.
const statusInterval = 100 * time.Millisecond

// HasPlugin reports whether Velero's server runs a plugin with an action of the name. It waits for
// the server's answer until the context ends.
func (c *Cluster) HasPlugin(ctx context.Context, velero, name string) (bool, error) {
	const what = "cannot ask Velero's server for its plugins"
	gvk := velerov1.SchemeGroupVersion.WithKind("ServerStatusRequest")
	gvr, _, err := c.Resource(gvk)
	if err != nil {
		return false, fmt.Errorf(what+": %w", err)
	}
	requests := c.client.Resource(gvr).Namespace(velero)
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetGenerateName(FieldManager + "-")
	if u, err = requests.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return false, fmt.Errorf(what+": %w", err)
	}
	answer := &velerov1.ServerStatusRequest{}
	for answer.Status.Phase != velerov1.ServerStatusRequestPhaseProcessed {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf(what+": it does not answer: %w", ctx.Err())
		case <-time.After(statusInterval):
		}
		if u, err = requests.Get(ctx, u.GetName(), metav1.GetOptions{}); err != nil {
			return false, fmt.Errorf(what+": %w", err)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, answer); err != nil {
			return false, fmt.Errorf(what+": %w", err)
		}
	}

	return slices.ContainsFunc(answer.Status.Plugins, func(p velerov1.PluginInfo) bool { return p.Name == name }), nil
}

// NewestBackup returns the newest Completed Backup of a schedule; nil if there is none.
func (c *Cluster) NewestBackup(ctx context.Context, velero, schedule string) (*unstructured.Unstructured, error) {
	name := label.GetValidName(schedule)
	var backups []*unstructured.Unstructured
	options := metav1.ListOptions{LabelSelector: velerov1.ScheduleNameLabel + "=" + name}
	err := c.Each(ctx, KindBackup, velero, options, func(u *unstructured.Unstructured) { backups = append(backups, u) })
	if err != nil {
		return nil, fmt.Errorf("cannot find the backups of the schedule %s: %w", schedule, err)
	}
	newest, _ := adoption.NewestBackup(backups, name)

	return newest, nil
}

// Drills returns the Restores of the drills of a schedule.
func (c *Cluster) Drills(ctx context.Context, velero, schedule string) ([]*unstructured.Unstructured, error) {
	var drills []*unstructured.Unstructured
	selector := adoption.LabelDrill + "=" + label.GetValidName(schedule)
	err := c.Each(ctx, KindRestore, velero, metav1.ListOptions{LabelSelector: selector}, func(u *unstructured.Unstructured) { drills = append(drills, u) })
	if err != nil {
		return nil, fmt.Errorf("cannot find the drills of the schedule %s: %w", schedule, err)
	}

	return drills, nil
}

// CreateRestore creates a Restore.
func (c *Cluster) CreateRestore(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvr, _, err := c.Resource(KindRestore)
	if err == nil {
		u, err = c.client.Resource(gvr).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create the Restore: %w", err)
	}

	return u, nil
}

// LabelDrillResult writes the result of a drill on its Restore.
func (c *Cluster) LabelDrillResult(ctx context.Context, restore *unstructured.Unstructured, result string) error {
	_, err := c.applyChange(ctx, adoption.Change{Target: restore, Patch: map[string]any{
		"metadata": map[string]any{"labels": map[string]any{adoption.LabelDrillResult: result}},
	}})
	if err != nil {
		return fmt.Errorf("cannot record the result of the drill on the Restore %s: %w", restore.GetName(), err)
	}

	return nil
}

// BackedUpTrees returns the claims, XRs and MRs that a Restore should bring back of its backup, in
// their namespaces here. It includes objects of kinds that this cluster does not serve. ok is false
// if the Restore selects by label, since the list of what is in a backup has no labels.
func (c *Cluster) BackedUpTrees(ctx context.Context, restore, backup *unstructured.Unstructured) (refs []xp.Ref, ok bool, err error) {
	typed := &velerov1.Restore{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(restore.Object, typed); err != nil {
		return nil, false, fmt.Errorf("cannot read the Restore %s: %w", restore.GetName(), err)
	}
	spec := typed.Spec
	if spec.LabelSelector != nil || len(spec.OrLabelSelectors) > 0 {
		return nil, false, nil
	}
	items, err := c.backedUp(ctx, backup)
	if err != nil {
		return nil, false, err
	}
	kinds, broken, err := c.Kinds(ctx, xp.CategoryManaged, xp.CategoryComposite, xp.CategoryClaim)
	if err != nil {
		return nil, false, err
	}
	isTree := map[schema.GroupKind]bool{}
	for _, gvk := range kinds {
		isTree[gvk.GroupKind()] = true
	}
	for id, r := range items {
		gk := schema.GroupKind{Group: id.Group, Kind: id.Kind}
		if why, isBroken := broken[r.APIVersion]; isBroken && xp.IsCustomGroup(gk.Group) {
			return nil, false, fmt.Errorf("cannot find out what %s is: %s", r, why)
		}
		_, isServed, err := c.Served(gk)
		if err != nil {
			return nil, false, err
		}
		if !isServed { // It can be anything but what Kubernetes or Crossplane has.
			isTree[gk] = xp.IsCustomGroup(gk.Group) && !xp.IsCrossplaneGroup(gk.Group)
		}
		if isTree[gk] && c.isSelected(spec, r) {
			r.Namespace = cmp.Or(spec.NamespaceMapping[r.Namespace], r.Namespace)
			refs = append(refs, r)
		}
	}
	slices.SortFunc(refs, xp.Ref.Compare)

	return refs, true, nil
}

// isSelected reports whether a Restore selects an item by its namespace and resource. It selects an
// item of a kind that is not served, since its resource is unknown. Velero restores cluster-scoped
// items of a part of the namespaces only if a plugin asks for them (velero pkg/restore/restore.go,
// restoreItem).
func (c *Cluster) isSelected(spec velerov1.RestoreSpec, r xp.Ref) bool {
	in, out := spec.IncludedNamespaces, spec.ExcludedNamespaces
	isEverything := (len(in) == 0 || slices.Contains(in, "*")) && len(out) == 0
	if r.Namespace == "" && !ptr.Deref(spec.IncludeClusterResources, isEverything) || r.Namespace != "" && !xp.IncludesNamespace(in, out, r.Namespace) {
		return false
	}
	gvr, _, err := c.Resource(r.GroupVersionKind())

	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return s == "*" || s == gvr.Resource || s == gvr.GroupResource().String() })
	}

	return err != nil || (len(spec.IncludedResources) == 0 || has(spec.IncludedResources)) && !has(spec.ExcludedResources)
}

// AwaitRestore reads a Restore until it is over, and returns it. At the end of the context it
// returns that error with the last state. If the Restore is gone, apierrors.IsNotFound matches the
// error.
func (c *Cluster) AwaitRestore(ctx context.Context, u *unstructured.Unstructured, interval time.Duration) (*unstructured.Unstructured, error) {
	for {
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); !diagnosis.IsUnderWay(phase) {
			return u, nil
		}
		select {
		case <-ctx.Done():
			return u, ctx.Err()
		case <-time.After(interval):
		}
		next, err := c.Restore(ctx, u.GetNamespace(), u.GetName())
		switch {
		case err != nil && ctx.Err() != nil:
			return u, ctx.Err()
		case err != nil:
			return u, err
		}
		u = next
	}
}

// StorageLocation reads a BackupStorageLocation.
func (c *Cluster) StorageLocation(ctx context.Context, velero, name string) (*velerov1.BackupStorageLocation, error) {
	gvk := velerov1.SchemeGroupVersion.WithKind("BackupStorageLocation")
	u, err := c.Get(ctx, xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: velero, Name: name})
	if err != nil {
		return nil, fmt.Errorf("cannot read where the reports are: %w", err)
	}
	l := &velerov1.BackupStorageLocation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, l); err != nil {
		return nil, fmt.Errorf("cannot read the BackupStorageLocation %s/%s: %w", velero, name, err)
	}

	return l, nil
}

// Retire removes a held object from this cluster without its controllers: it takes the finalizers
// off and deletes it, if nobody has changed it since it was read. An XR leaves behind what it
// composed that is not deleted itself.
func (c *Cluster) Retire(ctx context.Context, u *unstructured.Unstructured) error {
	version := u.GetResourceVersion()
	if len(u.GetFinalizers()) > 0 {
		after, err := c.applyChange(ctx, adoption.Change{Target: u, Patch: map[string]any{
			"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "finalizers": nil},
		}})
		if isUnserved(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot take the finalizers of %s off: %w", xp.String(u), err)
		}
		version = after.GetResourceVersion()
	}

	return c.remove(ctx, u, version) // The finalizer can be all that shows an XR.
}

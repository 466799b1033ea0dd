package adoption

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// KindBackup is Velero's kind Backup.
var KindBackup = schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}

// LabelReceipt and AnnotationReceipt are on a Backup without items that is a receipt. Velero writes
// both to the bucket, and its sync brings them to each cluster that shares the bucket (velero
// pkg/controller/backup_sync_controller.go), so the plugin needs no access to the bucket.
const (
	LabelReceipt      = "velero.crossplane.x-k8s.io/receipt"
	AnnotationReceipt = "velero.crossplane.x-k8s.io/receipt"
	// labelSchedule is Velero's, on the Backups of a Schedule.
	labelSchedule = "velero.io/schedule-name"
)

// A Receipt says that a cluster has begun to adopt what is in a backup of another one; or that a
// cluster has aborted its handovers.
type Receipt struct {
	// Name is the name of the Backup that is the receipt.
	Name string `json:"-"`
	// Source and Cluster are the UIDs of kube-system in the cluster of the backup, and in the one
	// that restores it. If Aborted is true, they are equal.
	Source  string `json:"source"`
	Cluster string `json:"cluster"`
	// Backup and Restore are their names, and Schedule is that of the backup; "" for none.
	Backup   string `json:"backup"`
	Restore  string `json:"restore"`
	Schedule string `json:"schedule,omitempty"`
	// Started is when the backup began. If Aborted is true, it is when that was recorded, by the clock
	// that also times backups.
	Started time.Time `json:"started"`
	// Namespaces are the backed-up ones, with Velero's globs; empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
	// ClusterScoped is true if the Restore brings cluster-scoped objects of other namespaces' claims,
	// too.
	ClusterScoped bool `json:"clusterScoped,omitempty"`
	// Handover is true if the source was held for a handover.
	Handover bool `json:"handover,omitempty"`
	// Aborted is true if the source goes on with what earlier backups of a handover have.
	Aborted bool `json:"aborted,omitempty"`
}

// ScheduleOf returns the schedule of a Backup; "" for none.
func ScheduleOf(backup *unstructured.Unstructured) string { return xp.Label(backup, labelSchedule) }

// BackedUpNamespaces returns, for each namespace that a Restore maps to, the one in the backup.
func BackedUpNamespaces(restore *unstructured.Unstructured) map[string]string {
	mapping, _, _ := unstructured.NestedStringMap(restore.Object, "spec", "namespaceMapping")
	from := map[string]string{}
	for backedUp, now := range mapping {
		from[now] = backedUp
	}

	return from
}

// ReceiptOf returns the receipt of the cluster with the UID own for what a Restore brings of a
// Backup.
func ReceiptOf(backup, restore *unstructured.Unstructured, source, own string, handover bool) Receipt {
	namespaces, clusterScoped := namespacesOf(restore), takesClusterScoped(restore)
	if len(namespaces) == 0 {
		namespaces, clusterScoped = namespacesOf(backup), clusterScoped || takesClusterScoped(backup)
	}

	return Receipt{
		Source: source, Cluster: own, Backup: backup.GetName(), Restore: restore.GetName(), Schedule: ScheduleOf(backup),
		Started: startOf(backup), Namespaces: namespaces, ClusterScoped: clusterScoped, Handover: handover,
	}
}

// ReceiptIn reads the receipt in a Backup. ok is false if it is none, or can't be read.
func ReceiptIn(backup *unstructured.Unstructured) (r Receipt, ok bool) {
	if xp.Label(backup, LabelReceipt) == "" {
		return r, false
	}

	ok = json.Unmarshal([]byte(xp.Annotation(backup, AnnotationReceipt)), &r) == nil && r.Cluster != ""
	r.Name = backup.GetName()
	if r.Aborted {
		r.Started = startOf(backup)
	}

	return r, ok
}

// IsAbortOf reports whether the cluster with the UID source has aborted a handover since it began a
// Backup.
func (r Receipt) IsAbortOf(source string, backup *unstructured.Unstructured) bool {
	return r.Aborted && r.Source == source && !r.Started.Before(startOf(backup))
}

// Covers reports whether the receipt is about objects in a namespace that existed at a time. The
// namespace "" stands for cluster-scoped objects.
func (r Receipt) Covers(namespace string, created time.Time) bool {
	return !created.After(r.Started) && (len(r.Namespaces) == 0 || namespace == "" && r.ClusterScoped || xp.MatchesNamespace(r.Namespaces, namespace))
}

// CoversObject reports whether the receipt can be about an object. A cluster-scoped object without a
// claim can be in any backup.
func (r Receipt) CoversObject(u *unstructured.Unstructured) bool {
	scope, created := ScopeOf(u), u.GetCreationTimestamp().Time

	return scope == "" || r.Covers(scope, created) || r.Covers(u.GetNamespace(), created)
}

// ScopeOf returns the namespace of an object, or of its claim if it is cluster-scoped; "" if it has
// none.
func ScopeOf(u *unstructured.Unstructured) string {
	return cmp.Or(u.GetNamespace(), xp.Label(u, xp.LabelClaimNamespace))
}

// CanHave reports whether a Backup can have objects of one of the namespaces, in which "" stands for
// cluster-scoped objects. No namespaces stand for all.
func CanHave(backup *unstructured.Unstructured, namespaces []string) bool {
	return slices.Contains(namespaces, "") || takesClusterScoped(backup) || haveCommon(namespacesOf(backup), namespaces)
}

// takesClusterScoped reports whether a Backup or Restore of some namespaces takes the cluster-scoped
// objects that belong to others, too.
func takesClusterScoped(u *unstructured.Unstructured) bool {
	all, _, _ := unstructured.NestedBool(u.Object, "spec", "includeClusterResources")
	kinds, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "includedClusterScopedResources")

	return all || len(kinds) > 0
}

// namespacesOf returns the included namespaces of a Backup or Restore, with Velero's globs; nil for
// all.
func namespacesOf(u *unstructured.Unstructured) []string {
	names, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "includedNamespaces")
	if slices.Contains(names, "*") {
		return nil
	}

	return names
}

func startOf(u *unstructured.Unstructured) time.Time {
	at, _, _ := unstructured.NestedString(u.Object, "status", "startTimestamp")

	return parseTime(at)
}

// Collisions returns the signs that another cluster manages what a Restore of the cluster with the
// UID own brings back: a receipt for its backup or for another one of its schedule, and backups
// that were taken elsewhere since the Restore began, of the same schedule or namespaces. A cluster
// that hands over can go on with its backups: it is held. backups are those in Velero's namespace.
func Collisions(own string, restore *unstructured.Unstructured, backups []*unstructured.Unstructured) []reason.Message {
	name, _, _ := unstructured.NestedString(restore.Object, "spec", "backupName")
	n := slices.IndexFunc(backups, func(b *unstructured.Unstructured) bool { return b.GetName() == name })
	if n < 0 {
		return nil // It was deleted during the restore.
	}
	of, began := backups[n], startOf(restore)
	var receipts, newer []reason.Message
	handover, source := false, ""
	backups = inLocation(backups, location(of))
	for _, b := range backups {
		r, isReceipt := ReceiptIn(b)
		switch at := startOf(b); {
		case isReceipt && r.Cluster == own:
			if r.Handover && r.Backup == name {
				handover, source = true, r.Source
			}
		case isReceipt && r.isOf(of):
			receipts = append(receipts, reason.AdoptedElsewhere.Messagef("the cluster %s has begun to adopt the backup %s too, with its Restore %s",
				r.Cluster, r.Backup, r.Restore))
		case isReceipt:
		case isForeign(b) && !began.IsZero() && at.After(began) && isOfSameSource(of, b):
			newer = append(newer, reason.SourceAlive.Messagef("another cluster has taken the backup %s at %s, after this restore began: if that is the cluster of the "+
				"backup %s, it is running and manages the same external resources", b.GetName(), at.UTC().Format(time.RFC3339), name))
		}
	}
	if handover {
		return append(receipts, abortsOf(source, of, backups)...)
	}

	return append(receipts, newer...)
}

// abortsOf returns a message for each abort of the source of a Backup since it began that.
func abortsOf(source string, of *unstructured.Unstructured, backups []*unstructured.Unstructured) []reason.Message {
	var all []reason.Message
	for _, b := range backups {
		if r, ok := ReceiptIn(b); ok && r.IsAbortOf(source, of) && haveCommon(r.Namespaces, namespacesOf(of)) {
			all = append(all, reason.HandoverAborted.Messagef("the source cluster has aborted the handover at %s, and manages the same external resources",
				r.Started.UTC().Format(time.RFC3339)))
		}
	}

	return all
}

func inLocation(backups []*unstructured.Unstructured, name string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(backups), func(b *unstructured.Unstructured) bool { return location(b) != name })
}

// isOf reports whether the receipt is for a Backup, or for another one of its schedule.
func (r Receipt) isOf(backup *unstructured.Unstructured) bool {
	return r.Backup == backup.GetName() || r.Schedule != "" && r.Schedule == ScheduleOf(backup)
}

// isForeign reports whether Velero has brought a Backup from the bucket. It creates such an object
// with its status, and changes its own Backups while it takes them; a Backup has no subresource
// for its status, so each change counts as a generation.
func isForeign(backup *unstructured.Unstructured) bool {
	return backup.GetGeneration() <= 1
}

// isOfSameSource reports whether two Backups are of the same schedule, or, if one has none, of
// common namespaces.
func isOfSameSource(a, b *unstructured.Unstructured) bool {
	if one, other := ScheduleOf(a), ScheduleOf(b); one != "" && other != "" {
		return one == other
	}

	return haveCommon(namespacesOf(a), namespacesOf(b))
}

// haveCommon reports whether two lists of namespaces, in which none means all, have one in common.
func haveCommon(a, b []string) bool {
	return len(a) == 0 || len(b) == 0 || xp.CanShareNamespace(a, b)
}

func location(backup *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(backup.Object, "spec", "storageLocation")

	return name
}

package restoreitem

import (
	"io"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var (
	resourceNamespaces = schema.GroupResource{Resource: "namespaces"}
	resourceCRDs       = schema.GroupResource{Group: archive.GroupCRD, Resource: "customresourcedefinitions"}
)

// high and low are the resources that Velero restores before and after all others, which are
// restored in the order of the alphabet (velero pkg/cmd/server/config/config.go,
// defaultRestorePriorities). People can have others, with the server's
// --restore-resource-priorities.
var (
	high = []string{ //nolint:gochecknoglobals // It is a constant list.
		"customresourcedefinitions.apiextensions.k8s.io", "namespaces", "storageclasses.storage.k8s.io", "volumesnapshotclass.snapshot.storage.k8s.io",
		"volumesnapshotcontents.snapshot.storage.k8s.io", "volumesnapshots.snapshot.storage.k8s.io", "datauploads.velero.io", "persistentvolumes",
		"persistentvolumeclaims", "clusterroles.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io", "serviceaccounts",
		"clusterrolebindings.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "secrets", "configmaps", "limitranges",
		"priorityclasses.scheduling.k8s.io", "pods", "replicasets.apps", "clusterclasses.cluster.x-k8s.io", "endpoints", "services",
	}
	low = []string{ //nolint:gochecknoglobals // It is a constant list.
		"clusterbootstraps.run.tanzu.vmware.com", "clusters.cluster.x-k8s.io", "clusterresourcesets.addons.cluster.x-k8s.io", "apps.kappctrl.k14s.io",
		"packageinstalls.packaging.carvel.dev",
	}
	// never are restored, whatever a restore asks for (velero pkg/controller/restore_controller.go,
	// nonRestorableResources).
	never = []string{ //nolint:gochecknoglobals // It is a constant list.
		"nodes", "events", "events.events.k8s.io", "backups.velero.io", "restores.velero.io", "resticrepositories.velero.io", "csinodes.storage.k8s.io",
		"volumeattachments.storage.k8s.io", "backuprepositories.velero.io",
	}
)

// turn is when Velero comes to a resource. Those of one turn are sorted by name already.
func turn(i xp.Item) int {
	name := i.GroupResource.String()
	if n := slices.Index(high, name); n >= 0 {
		return n
	}
	if n := slices.Index(low, name); n >= 0 {
		return len(high) + 1 + n
	}

	return len(high)
}

// unrestorable returns why Velero restores an item under no circumstances, "" if it does.
func unrestorable(i archive.Item) string {
	phase, completed := i.Text("status", "phase"), i.Text("status", "completionTime")
	switch name := i.GroupResource.String(); {
	case slices.Contains(never, name):
		return report.NeverRestored
	case name == "pods" && (phase == "Failed" || phase == "Succeeded"), name == "jobs.batch" && completed != "":
		return "it had completed when it was backed up, and Velero restores none that has"
	default:
		return ""
	}
}

// newItemShape is what of an item Velero gives to the first action: all but what the API server
// writes.
var newItemShape = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
	Without: []string{"status"},
	Fields: map[string]*pack.Shape{"metadata": {Without: []string{
		"generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences",
	}}},
}

// A record is what the actions log.
type record struct {
	entries []*logrus.Entry
}

// log returns a log of which nothing remains but the record.
func (r *record) log() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.SetFormatter(r)
	log.AddHook(r)

	return log
}

// Levels and Fire make it a hook of logrus.
func (*record) Levels() []logrus.Level { return logrus.AllLevels }

// Fire remembers an entry.
func (r *record) Fire(e *logrus.Entry) error {
	r.entries = append(r.entries, e)

	return nil
}

// Format makes it a formatter of logrus, so that nothing is formatted that nobody reads.
func (*record) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

// leftOutOutcome is the outcome for an item that an action leaves out: what it warns of is not as
// one expects.
func leftOutOutcome(said []*logrus.Entry) report.Outcome {
	if why := warnings(said); why != "" {
		return report.Outcome{Action: report.Refuse, Reason: why}
	}
	why := ""
	for _, e := range said {
		why = entryText(e)
	}

	return report.Outcome{Action: report.Skip, Reason: why}
}

// warnings are what was warned of.
func warnings(said []*logrus.Entry) string {
	var all []string
	for _, e := range said {
		if e.Level <= logrus.WarnLevel {
			all = append(all, entryText(e))
		}
	}

	return strings.Join(all, "; ")
}

// entryText is what an entry says to a person.
func entryText(e *logrus.Entry) string {
	s := e.Message
	for _, prefix := range []string{"Not restored: ", "Not restored, like others of its kind: ", "Restored on hold: "} {
		s = strings.TrimPrefix(s, prefix)
	}
	for _, field := range []string{"owner", "reason", "next", "command"} {
		if more, ok := e.Data[field].(string); ok && more != "" && !strings.Contains(s, more) {
			s += ": " + more
		}
	}

	return s
}

// whyHeld says why an item is held; "" for an XR or a claim that waits for no person, since all of
// these are.
func whyHeld(u *unstructured.Unstructured, h *adoption.Hold) string {
	if _, kept := h.AwaitsConsent(); (xp.IsComposite(u) || xp.IsClaim(u)) && !kept {
		return ""
	}
	why := strings.TrimPrefix(h.Reason, "restored from a backup; ")

	return strings.TrimSuffix(why, ". The restore's operation lifts the hold")
}

// isCopy reports whether an item was said to be a copy of something alive.
func isCopy(said []*logrus.Entry) bool {
	return slices.ContainsFunc(said, func(e *logrus.Entry) bool { return e.Data[fieldOriginal] != nil })
}

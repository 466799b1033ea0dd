package backupitem

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// discoveryPeriod is the time between two discoveries of Velero's. Velero discovers kinds when its
// server starts, and then every five minutes (velero pkg/cmd/server/server.go,
// initDiscoveryHelper). The duration of a discovery is added to each period.
const discoveryPeriod = 5*time.Minute + 15*time.Second

// Discovery is the BackupItemAction that warns of what Velero misses although the backup is
// Completed: claims and XRs of a kind that is too new for Velero, and cluster-scoped objects in a
// backup of all namespaces. It runs for each Namespace, since no other object is sure to be in a
// backup.
type Discovery struct {
	uncalled

	reader Reader
	log    logrus.FieldLogger
	// started returns when the server was started.
	started func() (time.Time, error)
	// serverTime returns what the API server's clock showed when this machine's showed own.
	serverTime func(own time.Time) time.Time

	scopeWarning sync.Once
	mu           sync.Mutex
	known        bool
	recent       []xp.DefinedKind
}

var _ biav2.BackupItemAction = &Discovery{}

// NewDiscovery returns the action. It serves one backup.
func NewDiscovery(reader Reader, serverTime func(own time.Time) time.Time, log logrus.FieldLogger) *Discovery {
	return &Discovery{reader: reader, serverTime: serverTime, log: log, started: serverStarted}
}

// serverStarted returns when the parent process, which is Velero's server, was started.
func serverStarted() (time.Time, error) {
	p, err := procfs.NewProc(os.Getppid())
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot find the parent process: %w", err)
	}
	stat, err := p.Stat()
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the state of the parent process: %w", err)
	}
	seconds, err := stat.StartTime()
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot tell when the parent process started: %w", err)
	}

	return time.Unix(int64(seconds), 0), nil
}

// AppliesTo selects Namespaces.
func (d *Discovery) AppliesTo() (velero.ResourceSelector, error) {
	return velero.ResourceSelector{IncludedResources: []string{"namespaces"}}, nil
}

// Execute returns the Namespace unchanged.
func (d *Discovery) Execute(item runtime.Unstructured, backup *velerov1.Backup) (
	runtime.Unstructured, []velero.ResourceIdentifier, string, []velero.ResourceIdentifier, error,
) {
	if lacksClusterScoped(backup) {
		d.scopeWarning.Do(func() {
			warn(d.log, nil, reason.ClusterScopeOmitted.Messagef(
				"This backup of all namespaces lacks XRs without a claim, MRs that nothing composes, EnvironmentConfigs and packages: Velero excludes "+
					"VolumeSnapshotContents, and then adds no cluster-scoped objects. Back up with --include-cluster-resources=true"))
		})
	}
	namespace := (&unstructured.Unstructured{Object: item.UnstructuredContent()}).GetName()
	if err := d.check(context.Background(), namespace, backup); err != nil {
		// A backup that lacks this warning is better than one that lacks the Namespace.
		warn(d.log.WithError(err), logrus.Fields{"namespace": namespace}, reason.RelatedNotRead.Messagef(
			"The kinds of XRs and claims can't be read, so this backup has no warning of kinds that are too new for Velero"))
	}

	return item, nil, "", nil, nil
}

// lacksClusterScoped reports whether a backup of all namespaces has only the cluster-scoped objects
// that an item requests (velero pkg/util/collections/includes_excludes.go,
// ScopeIncludesExcludes.ShouldInclude).
func lacksClusterScoped(backup *velerov1.Backup) bool {
	s := backup.Spec
	byScope := s.IncludeClusterResources == nil && len(s.IncludedResources) == 0 && len(s.ExcludedResources) == 0
	chosen := len(s.IncludedClusterScopedResources) > 0 || slices.Contains(s.ExcludedClusterScopedResources, "*")

	return includesAll(backup) && byScope && !chosen && len(s.ExcludedClusterScopedResources) > 0
}

func (d *Discovery) check(ctx context.Context, namespace string, backup *velerov1.Backup) error {
	recent, err := d.recentKinds(ctx, backup)
	if err != nil {
		return err
	}
	for _, k := range recent {
		objects := 0
		err := d.reader.Each(ctx, k.GroupVersionKind, namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			if u.GetNamespace() != "" {
				objects++
			}
		})
		if err != nil {
			return err
		}
		if objects == 0 {
			continue
		}
		fields := logrus.Fields{"namespace": namespace, "kind": k.GroupKind().String(), "since": k.Since.UTC().Format(time.RFC3339), "objects": objects}
		warn(d.log, fields, reason.KindTooNew.Messagef("%d of kind %s in namespace %s can be missing in this backup: the XRD %s is from %s, and Velero looks "+
			"for new kinds every 5 minutes. Back up again after %s, or restart the Velero server first", objects, k.GroupKind(), namespace, k.XRD,
			k.Since.UTC().Format(time.TimeOnly), k.Since.Add(discoveryPeriod).UTC().Format(time.TimeOnly)))
	}

	return nil
}

// recentKinds returns the kinds that may be newer than Velero's last discovery. It reads them once.
func (d *Discovery) recentKinds(ctx context.Context, backup *velerov1.Backup) ([]xp.DefinedKind, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.recent, nil
	}
	discovered := time.Now()
	if backup.Status.StartTimestamp != nil {
		discovered = backup.Status.StartTimestamp.Time
	}
	discovered = discovered.Add(-discoveryPeriod)
	if started, err := d.started(); err == nil && started.After(discovered) {
		discovered = started
	}
	var kinds []xp.DefinedKind
	err := d.reader.Each(ctx, xp.KindDefinition, "", metav1.ListOptions{}, func(xrd *unstructured.Unstructured) { kinds = append(kinds, xp.DefinedKinds(xrd)...) })
	if err != nil && !isAbsent(err) {
		return nil, err
	}
	discovered = d.serverTime(discovered) // It is known after an answer of the API server.
	d.recent, d.known = slices.DeleteFunc(kinds, func(k xp.DefinedKind) bool { return !k.Since.After(discovered) }), true

	return d.recent, nil
}

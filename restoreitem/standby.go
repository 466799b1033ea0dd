package restoreitem

import (
	"context"
	"slices"
	"strings"
	"sync"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A StandbyCluster is a cluster in which each newer backup refreshes what earlier ones brought into
// quarantine.
type StandbyCluster interface {
	// Standby returns the live object that r names as one to refresh; nil if it is none.
	Standby(ctx context.Context, key adoption.Key, r xp.Ref) (*adoption.Standby, error)
	// Refresh gives it what a newer backup brings. It returns false if it left the quarantine.
	Refresh(ctx context.Context, key adoption.Key, s adoption.Standby, of adoption.Refresh) (bool, error)
	// EndHandover removes the record of the handover that u belongs to.
	EndHandover(ctx context.Context, velero string, u *unstructured.Unstructured) error
	// Schedule returns the schedule of the backup that a Restore brings back; "" for none.
	Schedule(ctx context.Context, velero, restore string) (string, error)
	// RemoveStandbys removes what earlier restores brought from the same schedule and the backup
	// does not have, without external resources. It returns what it removed, and why it left others.
	RemoveStandbys(ctx context.Context, key adoption.Key, velero, restore string) (removed []xp.Ref, left []reason.Message, err error)
}

// standbys refreshes a standby cluster. It serves one restore.
type standbys struct {
	cluster StandbyCluster

	mu sync.Mutex
	// schedule is that of the backup, once known is true.
	schedule string
	known    bool
	// ended are the namespaces of which no handover is recorded any more.
	ended map[string]bool
	// removal is what was removed, and why others were left, once removed is true.
	removal []reason.Message
	removed bool
}

// WithStandby makes Adopt refresh what is in quarantine, if the Restore asks for it.
func WithStandby(c StandbyCluster) Option {
	return func(s *shared) { s.standbys = &standbys{cluster: c} }
}

// isStandby reports whether the Restore refreshes what is in quarantine.
func (a *Adopt) isStandby(i *item) bool { return a.standbys != nil && i.settings.Standby }

// findStandby finds the live object in quarantine that the item is to refresh. It finds none with
// resource modifiers, which Velero applies only to what it creates.
func (a *Adopt) findStandby(i *item) error {
	if !a.isStandby(i) || !i.isHeld() && !i.isManaged() {
		return nil
	}
	key, err := a.key(i)
	if err != nil {
		return err
	}
	found, err := a.standbys.cluster.Standby(context.Background(), key, i.self())
	if err != nil && !isAbsent(err) {
		return apiErrorf("cannot find out whether %s is in quarantine: %w", xp.String(i.original), err)
	}
	if name, _, err := a.modifiers(i.restore); found != nil && (name != "" || err != nil) {
		return reason.StandbyNotRefreshed.Errorf("cannot refresh %s: Velero applies resource modifiers only to what it creates. Restore without them, or release or "+
			"retire it first", xp.String(i.original))
	}
	i.standby = found

	return nil
}

// noteContent records in a hold what the backup brings for the item, and from which schedule.
func (a *Adopt) noteContent(i *item, h *adoption.Hold) error {
	if !a.isStandby(i) {
		return nil
	}
	s := a.standbys
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		schedule, err := s.cluster.Schedule(context.Background(), i.restore.Namespace, i.restore.Name)
		if err != nil {
			return apiErrorf("cannot hold %s: %w", xp.String(i.original), err)
		}
		s.schedule, s.known = schedule, true
	}
	content, err := adoption.Digest(i.Object, i.original.Object)
	h.Schedule, h.Content = s.schedule, content

	return err
}

// refresh gives the live object what Velero would create. It returns the output for Velero.
func (a *Adopt) refresh(i *item, out *velero.RestoreItemActionExecuteOutput) (*velero.RestoreItemActionExecuteOutput, error) {
	if i.standby == nil || out.UpdatedItem == nil {
		return out, nil
	}
	u := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
	u.SetNamespace(i.namespace)
	h, err := adoption.HoldOf(u)
	if err != nil || h == nil {
		return out, err
	}
	key, err := a.key(i)
	if err != nil {
		return nil, err
	}
	if by := i.standby.ChangedBy; by != "" {
		i.warn(reason.StandbyChanged.Messagef("%s: %s has changed it in this standby cluster, and the newer backup replaces that. Change it in the cluster that is "+
			"backed up", xp.String(u), by))
	}
	done, err := a.standbys.cluster.Refresh(context.Background(), key, *i.standby, adoption.Refresh{
		Object: u, Labels: labelsOf(i.restore), Status: i.returnedStatus(h.Status), Content: h.Content,
	})
	if err != nil {
		return nil, apiErrorf("%w", err)
	}
	if i.standby.Handover && done {
		if err := a.endHandover(i, u); err != nil {
			return nil, err
		}
	}
	if !done {
		i.warn(reason.StandbyNotRefreshed.Messagef("%s: it left the quarantine during the restore, so it stays as it is", xp.String(u)))
	}
	refreshed := (&velero.RestoreItemActionExecuteOutput{AdditionalItems: out.AdditionalItems, OperationID: out.OperationID}).WithoutRestore()

	return refreshed, nil
}

// endHandover ends the handover that u belonged to: from now on the Restore holds it, and this
// cluster is a standby.
func (a *Adopt) endHandover(i *item, u *unstructured.Unstructured) error {
	s := a.standbys
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended[i.namespace] {
		return nil
	}
	if err := s.cluster.EndHandover(context.Background(), i.restore.Namespace, u); err != nil {
		return apiErrorf("cannot end the handover of %s: %w", xp.String(u), err)
	}
	if s.ended == nil {
		s.ended = map[string]bool{}
	}
	s.ended[i.namespace] = true

	return nil
}

// removeStandbys removes once what the backup does not have, when all items are restored. An error
// of the API server is worth a retry.
func (a *Adopt) removeStandbys(restore *velerov1.Restore) error {
	settings, err := a.settings(restore)
	if a.standbys == nil || err != nil || !settings.Standby {
		return nil
	}
	s := a.standbys
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil
	}
	key, err := a.cluster.MarkKey(context.Background(), restore.Namespace)
	if err != nil {
		return err
	}
	removed, left, err := s.cluster.RemoveStandbys(context.Background(), key, restore.Namespace, restore.Name)
	for _, r := range removed {
		a.log.WithField("object", r.String()).Info("Removed from the standby cluster, without its external resource: the backup does not have it")
	}
	for _, m := range left {
		withCode(a.log, m).Warn(m)
	}
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		s.removal = append(s.removal, reason.StandbyRemoved.Messagef("removed, since the backup does not have them: %s", namesOf(removed)))
	}
	s.removal, s.removed = append(s.removal, left...), true

	return nil
}

// takeRemoval returns once what was removed and left, for the description of an operation.
func (a *Adopt) takeRemoval() []reason.Message {
	if a.standbys == nil {
		return nil
	}
	a.standbys.mu.Lock()
	defer a.standbys.mu.Unlock()
	removal := a.standbys.removal
	a.standbys.removal = nil

	return removal
}

func namesOf(refs []xp.Ref) string {
	names := make([]string, len(refs))
	for n, r := range refs {
		names[n] = r.String()
	}
	slices.Sort(names)

	return strings.Join(names, ", ")
}

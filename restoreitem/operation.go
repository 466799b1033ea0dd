package restoreitem

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An Adopter takes the XR ref of the given Restore, and all objects of its kinds that the selector
// selects, as far towards adoption as is possible now. It returns a plan for each. Marks count if
// the key signed them. An error of the API server is worth a retry.
type Adopter interface {
	Adopt(ctx context.Context, key hold.Key, by adoption.Requester, selector string, ref xp.Ref) (map[xp.ID]adoption.Plan, error)
	// GiveUp leaves the hold on ref, with the reason and the next step in its mark and an Event.
	GiveUp(ctx context.Context, key hold.Key, ref xp.Ref, why string) error
}

// resultsTTL is how long results last after their last use. Velero polls all operations of a
// restore one after the other in one process, so one observation serves them all.
const resultsTTL = 5 * time.Second

// results are the plans of the last adoption, for the operations that are polled next.
type results struct {
	mu    sync.Mutex
	plans map[xp.ID]adoption.Plan
	// used is when they were last used.
	used time.Time
}

// operationID returns the ID of the operation of an object: Kind.version.group/namespace/name.
func operationID(r xp.Ref) string {
	gvk := r.GroupVersionKind()

	return fmt.Sprintf("%s.%s.%s/%s/%s", gvk.Kind, gvk.Version, gvk.Group, r.Namespace, r.Name)
}

func parseOperationID(id string) (xp.Ref, error) {
	parts := strings.Split(id, "/")
	if len(parts) != 3 || parts[2] == "" {
		return xp.Ref{}, fmt.Errorf(`cannot read the operation ID %q as "Kind.version.group/namespace/name"`, id)
	}
	gvk, _ := schema.ParseKindArg(parts[0])
	if gvk == nil {
		return xp.Ref{}, fmt.Errorf("cannot read the kind of the operation ID %q", id)
	}

	return xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: parts[1], Name: parts[2]}, nil
}

func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
}

// Progress continues the adoption and returns its progress. A Go error would fail the operation for
// good, so a temporary one is in the description.
func (a *Adopt) Progress(id string, restore *velerov1.Restore) (progress velero.OperationProgress, err error) {
	progress = velero.OperationProgress{OperationUnits: "composed resources", Updated: a.now()}
	if restore.Status.StartTimestamp != nil {
		progress.Started = restore.Status.StartTimestamp.Time
	}
	defer func() { // It has names that tenants have written, and Velero prints it as it is.
		progress.Description, progress.Err = reason.Clean(progress.Description), reason.Clean(progress.Err)
	}()
	if noteText(id, &progress) {
		return progress, nil
	}
	id, note, _ := strings.Cut(id, noteAfter)
	ref, err := parseOperationID(id)
	if err != nil {
		return progress, err
	}
	defer func() { addNote(note, &progress) }()
	plan, err := a.plan(ref, restore)
	if err != nil {
		a.log.WithField("operation", id).WithError(err).Warn("Trying again at the next poll")
		progress.Description = "trying again: " + reason.ErrorMessage(err).String()

		return progress, nil
	}
	progress.NCompleted, progress.NTotal = int64(plan.Adopted), int64(plan.Total)
	progress.Completed, progress.Err, progress.Description = plan.Done, plan.Failed.String(), describe(plan)
	// A restore does not wait for the end of a quarantine, nor for a user to release what is ready.
	if !plan.Failed.IsZero() || plan.Ready || !plan.Quarantine.IsZero() && !plan.Moving && plan.Patch == nil {
		progress.Completed = true
	}
	if !progress.Completed {
		a.checkTimeout(ref, restore, plan, &progress)
	}

	return progress, nil
}

// plan takes the next steps for ref and what the Restore brought with it, unless that was just done.
func (a *Adopt) plan(ref xp.Ref, restore *velerov1.Restore) (plan adoption.Plan, err error) {
	a.results.mu.Lock()
	defer a.results.mu.Unlock()
	defer func() {
		if cause := recover(); cause != nil { // Velero would end the operation.
			err = reason.PluginDefect.Errorf("cannot read %s, because of a defect of this plugin (%v); report this", ref, cause)
		}
	}()
	if a.now().Sub(a.results.used) >= resultsTTL {
		a.results.plans = nil
	}
	if plan, ok := a.results.plans[ref.ID()]; ok && !plan.Unproven {
		a.results.used = a.now()

		return plan, nil
	}
	selector := labels.Set{velerov1.RestoreNameLabel: label.GetValidName(restore.Name)}.String()
	key, err := a.cluster.MarkKey(context.Background(), restore.Namespace)
	if err != nil {
		return adoption.Plan{}, err
	}
	by := adoption.Requester{Restore: restore.Namespace + "/" + restore.Name, Started: a.startOf(restore), Held: a.Requested.held.get}
	plans, err := a.adopter.Adopt(context.Background(), key, by, selector, ref)
	if err != nil {
		return adoption.Plan{}, err
	}
	// Kinds without a link between them are observed one after the other.
	if a.results.plans == nil {
		a.results.plans = map[xp.ID]adoption.Plan{}
	}
	for id, plan := range plans {
		if known, ok := a.results.plans[id]; !ok || known.Unproven || !plan.Unproven {
			a.results.plans[id] = plan
		}
	}
	a.results.used = a.now()

	return plans[ref.ID()], nil
}

// describe returns the state of an XR in one line, with the first few reasons. The log has all.
func describe(p adoption.Plan) string {
	waits := !p.Done && len(p.Waiting) > 0
	state := "adopted"
	if p.Held {
		state = "ready to be adopted"
	}
	var parts []string
	switch {
	case !p.Quarantine.IsZero() && len(p.Waiting) == 0:
		parts = append(parts, p.Quarantine.String())
	case p.Done && p.Total == 0 && len(p.Remarks) == 0:
		return "not held"
	case p.Total > 0 || !waits:
		parts = append(parts, fmt.Sprintf("%d of %d composed resources %s", p.Adopted, p.Total, state))
	}
	if waits {
		parts = append(parts, "waiting for "+adoption.FirstReasons(p.Waiting))
	}

	return strings.Join(append(parts, reason.Strings(p.Remarks)...), "; ")
}

// Cancel is called when the operation times out. The hold stays: a release now is what it prevents.
func (a *Adopt) Cancel(id string, restore *velerov1.Restore) error {
	if noteText(id, &velero.OperationProgress{}) {
		return nil
	}
	id, _, _ = strings.Cut(id, noteAfter)
	ref, err := parseOperationID(id)
	if err != nil {
		return err
	}
	// It uses known results only: another observation would also take steps.
	a.results.mu.Lock()
	plan, ok := a.results.plans[ref.ID()]
	a.results.mu.Unlock()
	why := "the API server did not answer"
	if ok {
		why = describe(plan)
	}

	key, err := a.cluster.MarkKey(context.Background(), restore.Namespace)
	if err != nil {
		return err
	}

	return a.adopter.GiveUp(context.Background(), key, ref, fmt.Sprintf("the Restore %s/%s stopped waiting: %s", restore.Namespace, restore.Name, why))
}

// checkTimeout fails an operation that has waited longer than the setting allows. The hold stays.
// The description reports an error, and the next poll tries again.
func (a *Adopt) checkTimeout(ref xp.Ref, restore *velerov1.Restore, plan adoption.Plan, progress *velero.OperationProgress) {
	settings, err := a.settings(restore)
	if err != nil {
		a.log.WithError(err).Warn("Not looking at the setting " + setting.NameTimeout)
		progress.Description += "; cannot find out whether the time of the setting " + setting.NameTimeout + " is over: " + reason.ErrorMessage(err).String()

		return
	}
	// Velero polls only after the restore's last object, which can be from an earlier restore.
	limit, began := settings.AdoptionTimeout, plan.RestoredAt
	if start := a.startOf(restore); start.After(began) {
		began = start
	}
	if limit == 0 || began.IsZero() || a.now().Sub(began) < limit {
		return
	}
	why := fmt.Sprintf("not adopted within %s, the setting %s of the Restore %s/%s: %s", limit, setting.NameTimeout, restore.Namespace, restore.Name,
		describe(plan))
	key, err := a.cluster.MarkKey(context.Background(), restore.Namespace)
	if err == nil {
		err = a.adopter.GiveUp(context.Background(), key, ref, why)
	}
	if err != nil {
		a.log.WithField("operation", operationID(ref)).WithError(err).Warn("Trying again at the next poll to write that the time is over")
		progress.Description += "; trying again to write that the time is over: " + reason.ErrorMessage(err).String()

		return
	}
	progress.Completed = true
	progress.Err = reason.RestoreStopped.Messagef("%s is %s. Its hold stays on, so nothing is lost. Correct that, then run: %s", ref, why,
		xp.ReleaseCommand(ref)).String()
}

// startOf returns when a restore began, by the API server's clock; zero if not known. Velero notes
// it by the clock of its Pod, which this process shares.
func (a *Adopt) startOf(restore *velerov1.Restore) time.Time {
	if restore.Status.StartTimestamp == nil {
		return time.Time{}
	}

	return a.cluster.ServerTime(restore.Status.StartTimestamp.Time)
}

package adoption

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkStatus waits until the status is restored that u is held for: a function that finds less than
// it wrote can leave out composed resources, and Crossplane deletes these. Nobody writes the status
// of what a user has paused.
func (t *tree) checkStatus(u *unstructured.Unstructured, h *hold.Hold) {
	if missing := xp.MissingStatus(u, h.Status); len(missing) > 0 {
		t.wait(false, reason.StatusMissing.Messagef("%s: %s", xp.String(u), whyStatus(u, missing)))
	}
}

func whyStatus(u *unstructured.Unstructured, missing []string) string {
	return fmt.Sprintf("%s did not come back. Write it with kubectl edit --subresource=status, or, if nothing reads it, release this: "+
		"%s", xp.StatusNames(missing), releaseByForce(u))
}

// backedUpConditions returns the conditions that a composed resource had in the backup.
func (t *tree) backedUpConditions(r xp.Ref) xp.TrueConditions {
	if t.savedConditions == nil {
		t.savedConditions = map[xp.ID]xp.TrueConditions{}
		for i, w := range t.hold.ComposedConditions[:min(len(t.hold.ComposedConditions), len(t.hold.Refs))] {
			t.savedConditions[t.hold.Refs[i].ID()] = w
		}
	}
	if w, ok := t.savedConditions[r.ID()]; ok {
		return w
	}

	return xp.UnknownConditions
}

// checkConditions reports whether a composed resource has the conditions of the backup: a function
// that finds fewer can leave out other resources. It ignores Usages, which compose nothing and do
// not affect what is composed.
func (t *tree) checkConditions(r xp.Ref, u *unstructured.Unstructured) bool {
	lacks := t.backedUpConditions(r).Missing(u)
	if !xp.IsManaged(u) && !xp.IsComposite(u) {
		lacks = slices.DeleteFunc(lacks, func(condition string) bool { return condition != xp.ConditionReady })
	}
	if len(lacks) == 0 || xp.IsUsage(u) {
		return true
	}
	if slices.Contains(lacks, xp.ConditionSynced) && xp.IsManaged(u) {
		return t.checkSynced(r, u)
	}
	c, _ := xp.ConditionOf(u, lacks[0])
	message := ""
	if c.Message != "" {
		message = ": " + c.Message
	}
	t.waitFor(r, true, reason.AwaitingConditions.Messagef("%s: it was %s in the backup, and is not yet%s", r, lacks[0], message))

	return false
}

// checkSynced reports whether an MR was reconciled since the restore.
func (t *tree) checkSynced(r xp.Ref, u *unstructured.Unstructured) bool {
	switch c, ok := xp.ConditionOf(u, xp.ConditionSynced); {
	case !ok, c.Reason == xp.ReasonReconcilePaused:
		if why := t.snapshot.whyNotReconciled(u); !why.IsZero() {
			t.waitFor(r, false, why.About(r.String()))
		} else {
			t.waitFor(r, true, reason.AwaitingProvider.Messagef("%s: %s", r, waitObserved))
		}

		return false
	case c.Status != "True":
		t.waitFor(r, false, reason.ProviderFailing.Messagef("%s: its provider can't reconcile it: %s", r, c.Message))

		return false
	default:
		return true
	}
}

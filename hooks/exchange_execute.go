package hooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/exchange"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func (e *exchangeRun) list(p exchange.Plan) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(what string, of xp.Ref, external, why string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", what, reason.Clean(of.String()), reason.Clean(cmp.Or(external, "-")), reason.Clean(why))
	}
	fmt.Fprintln(t, "WHAT\tOBJECT\tEXTERNAL-NAME\tBECOMES")
	for _, i := range p.Items {
		switch {
		case !i.Managed:
			row("goes", i.Ref, "", "deleted")
		case i.Stays != "":
			row("goes", i.Ref, i.External, "deleted; its external resource stays: "+i.Stays)
		case i.External == "":
			row("goes", i.Ref, "", "deleted; it has no external resource")
		default:
			row("goes", i.Ref, i.External, "DELETED WITH ITS EXTERNAL RESOURCE")
		}
	}
	for _, r := range p.Foreign {
		row("listed", r, "", "left as it is: it belongs to another object")
	}
	for _, r := range p.Returns {
		becomes := "restored"
		if r.Back {
			becomes = "there already"
		}
		row("comes", r.Ref, r.External, becomes)
	}
	_ = t.Flush() // A buffer never fails.
	fmt.Fprintln(e.Out, "Of "+p.Root.String()+":")
	if len(p.Items)+len(p.Returns)+len(p.Foreign) > 0 {
		_, _ = rawWriter(e.Out).Write(b.Bytes()) // The question that follows repeats the numbers.
	}
	for _, why := range p.Refused {
		fmt.Fprintln(e.Out, "REFUSED:", why)
	}
	if p.OnlyRestoreLeft && len(p.Refused) == 0 {
		e.printDone(p.Root)
	}
}

func (e *exchangeRun) printDone(root xp.Ref) {
	fmt.Fprintf(e.Out, "%s is paused and composes nothing until a restore adopts it. Restore now: velero restore create --from-backup BACKUP --wait. "+
		"Or let it compose again: %s\n", root, diagnosis.AbandonCommand(root))
}

func (e *exchangeRun) execute(ctx context.Context, root, saved *unstructured.Unstructured, confirmed exchange.Plan) error {
	begun := exchange.IsMarked(root)
	if err := e.pauseAll(ctx, root); err != nil {
		return e.rollBack(ctx, root, begun, err)
	}
	// The XRs are paused now, so no reconcile changes the plan any more.
	root, err := e.cluster.Find(ctx, confirmed.Root)
	if err != nil || root == nil {
		return e.rollBack(ctx, root, begun, cmp.Or(err, reason.ChangedSinceConfirmed.Errorf("cannot continue: %s does not exist any more", confirmed.Root)))
	}
	now, err := e.plan(ctx, root, saved)
	if err != nil {
		return e.rollBack(ctx, root, begun, err)
	}
	if beyond := append(now.Unconfirmed(confirmed), reason.Strings(now.Refused)...); len(beyond) > 0 {
		return e.rollBack(ctx, root, begun, &exit{
			code: ExitFailed, list: beyond,
			err: reason.ChangedSinceConfirmed.Errorf("cannot continue with %s: it has changed since you confirmed it, and nothing was deleted; run it again",
				confirmed.Root),
		})
	}
	if err := e.removeAll(ctx, root, now.Items); err != nil {
		fmt.Fprintf(e.Err, "%s stays paused. Run it again to continue, or leave it as it is: %s\n", confirmed.Root, diagnosis.AbandonCommand(confirmed.Root))

		return err
	}
	e.printDone(confirmed.Root)

	return nil
}

// pauseAll pauses an XR or claim and all XRs below it. It waits until Crossplane reports each
// pause: a reconcile can run until then.
func (e *exchangeRun) pauseAll(ctx context.Context, root *unstructured.Unstructured) error {
	deadline := time.Now().Add(e.await)
	for reported := false; ; reported = true {
		now, err := e.cluster.Find(ctx, xp.RefTo(root))
		if err != nil {
			return err
		}
		if now == nil || now.GetUID() != root.GetUID() {
			return reason.ChangedSinceConfirmed.Errorf("cannot continue: another object replaced %s", xp.String(root))
		}
		tree, err := e.cluster.Tree(ctx, now)
		if err != nil {
			return err
		}
		unseen, err := e.pauseEach(ctx, tree.XRs())
		if err != nil {
			return err
		}
		if len(unseen) == 0 {
			return nil
		}
		if !reported {
			fmt.Fprintln(e.Err, "waiting for Crossplane to report the pause of "+strings.Join(unseen, ", "))
		}
		if time.Now().After(deadline) {
			return &exit{
				code: ExitFailed, list: unseen, err: reason.PauseNotSeen.Errorf("cannot continue: Crossplane has not reported the pause for %s; is it running?", e.await),
			}
		}
		if err := e.sleep(ctx); err != nil {
			return err
		}
	}
}

// pauseEach pauses the XRs that are not paused yet. It returns those whose pause Crossplane has not
// reported.
func (e *exchangeRun) pauseEach(ctx context.Context, xrs []*unstructured.Unstructured) ([]string, error) {
	var unseen []string
	for _, u := range xrs {
		marked := exchange.IsMarked(u)
		if u.GetDeletionTimestamp() != nil || marked && adoption.IsSeenPaused(u) {
			continue
		}
		unseen = append(unseen, xp.String(u))
		if marked {
			continue
		}
		if err := e.cluster.SetExchanged(ctx, u, true); err != nil {
			return nil, err
		}
	}

	return unseen, nil
}

func (e *exchangeRun) sleep(ctx context.Context) error {
	if err := sleep(ctx, e.pause); err != nil {
		return reason.Interrupted.Errorf("cannot continue: %w; run it again, or end it with --abandon", err)
	}

	return nil
}

// rollBack takes the pauses off again after an error, and returns the error. Nothing was deleted by
// then. It keeps the pauses if an earlier run had begun.
func (e *exchangeRun) rollBack(ctx context.Context, root *unstructured.Unstructured, begun bool, why error) error {
	if begun || root == nil {
		return why
	}
	if err := e.unpauseAll(context.WithoutCancel(ctx), root); err != nil {
		fmt.Fprintf(e.Err, "It stays paused: %v. Run it again, or end it with --abandon.\n", err)
	}

	return why
}

// unpauseAll takes the pauses of an exchange off an XR or claim and all XRs below it.
func (e *exchangeRun) unpauseAll(ctx context.Context, root *unstructured.Unstructured) error {
	root, err := e.cluster.Find(ctx, xp.RefTo(root))
	if err != nil || root == nil {
		return err
	}
	tree, err := e.cluster.Tree(ctx, root)
	if err != nil {
		return err
	}
	for _, u := range exchange.ManagedOf(tree) {
		if live.IsKept(u) && u.GetDeletionTimestamp() == nil {
			fmt.Fprintf(e.Err, "%s only observes its external resource, which had to stay. Restore its policies: %s\n", xp.String(u),
				xp.Kubectl("edit", xp.RefTo(u)))
		}
	}
	left := 0
	// An XR is unpaused before its parent.
	for _, u := range slices.Backward(tree.XRs()) {
		if !xp.HasAnnotation(u, xp.AnnotationExchange) {
			continue
		}
		if err := e.cluster.SetExchanged(ctx, u, false); err != nil {
			return err
		}
		left++
		fmt.Fprintf(e.Out, "%s is not paused any more.\n", xp.String(u))
	}
	if left == 0 {
		fmt.Fprintf(e.Out, "%s has no exchange.\n", xp.String(root))
	}

	return nil
}

// removeAll deletes the confirmed items. When all are gone it removes them from the XR's or claim's
// references.
func (e *exchangeRun) removeAll(ctx context.Context, root *unstructured.Unstructured, items []exchange.Item) error {
	deadline := time.Now().Add(e.timeout)
	reported := map[string]bool{}
	for {
		now, err := e.cluster.Find(ctx, xp.RefTo(root))
		if err != nil {
			return err
		}
		if now == nil || now.GetUID() != root.GetUID() || !exchange.IsMarked(now) || !sameRefs(now, root) {
			return reason.PauseRemoved.Errorf("cannot continue with %s: another writer removed its pause or changed its references; "+
				"find it (kubectl get --show-managed-fields), stop it, and run this again", xp.String(root))
		}
		left, err := e.removeRound(ctx, items)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			if err = e.cluster.Empty(ctx, now); !apierrors.IsConflict(err) {
				return err
			}
		}
		for _, what := range left {
			if !reported[what] {
				reported[what] = true
				fmt.Fprintln(e.Err, "waiting for "+what)
			}
		}
		if time.Now().After(deadline) {
			return &exit{
				code: ExitTimeout, list: left,
				err: reason.NotDeleted.Errorf("cannot wait longer than %s, and these objects still exist; is their provider running? Run it again", e.timeout),
			}
		}
		if err := e.sleep(ctx); err != nil {
			return err
		}
	}
}

// sameRefs reports whether two versions of an XR or claim list the same objects.
func sameRefs(a, b *unstructured.Unstructured) bool {
	of, errA := exchange.Listed(a)
	other, errB := exchange.Listed(b)

	return errA == nil && errB == nil && slices.EqualFunc(of, other, func(r, o xp.Ref) bool { return r.ID() == o.ID() })
}

// removeRound deletes items that are not being deleted yet. It returns those that still exist. An
// XR is deleted when nothing below it is left.
func (e *exchangeRun) removeRound(ctx context.Context, items []exchange.Item) ([]string, error) {
	refs := make([]xp.Ref, 0, len(items))
	for _, i := range items {
		refs = append(refs, i.Ref)
	}
	found, err := e.cluster.FindAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, i := range slices.Backward(items) {
		u := found[i.Ref.ID()]
		if u == nil || u.GetUID() != i.UID {
			continue
		}
		what := i.Ref.String()
		if xp.IsComposite(u) && len(left) > 0 {
			left = append(left, what)

			continue
		}
		why, err := e.remove(ctx, u, i)
		if err != nil {
			return nil, err
		}
		if why != "" {
			what += ": " + why
		}
		left = append(left, what)
	}

	return left, nil
}

// remove takes the next step of deleting an object. It returns why the object may not go away; ""
// if that is not known.
func (e *exchangeRun) remove(ctx context.Context, u *unstructured.Unstructured, i exchange.Item) (string, error) {
	if i.Managed && i.Stays != "" && exchange.Deletes(u) {
		if err := e.cluster.KeepExternal(ctx, u); err != nil {
			return "", err
		}
	}
	if u.GetDeletionTimestamp() == nil {
		// A conflict: another writer has changed it. A denial: a Usage that is deleted too still
		// protects it.
		if err := e.cluster.Remove(ctx, u); apierrors.IsConflict(err) || isDenied(err) {
			return err.Error(), nil
		} else if err != nil {
			return "", err
		}
	}
	if exchange.IsMarked(u) {
		// Crossplane does not finalize a paused XR. An XR that is being deleted composes nothing,
		// so the pause is not needed.
		if err := e.cluster.SetExchanged(ctx, u, false); err != nil && !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	if c, _ := xp.ConditionOf(u, xp.ConditionSynced); u.GetDeletionTimestamp() != nil && c.Status == "False" && c.Reason != xp.ReasonReconcilePaused {
		return c.Message, nil
	}

	return "", nil
}

// isDenied reports whether an admission webhook denied a request; RBAC gives the same status code.
func isDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "denied the request")
}

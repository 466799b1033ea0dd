package hooks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// findings are what one look of a wait has found.
type findings struct {
	// adopted are claims and XRs, and paths those and the others that were found.
	adopted, paths []string
	pending        []pending
	// roots is how many of the pending are claims and XRs.
	roots int
	// left is what is left out, because it can't be read.
	left []viewLine
	// restore is the Restore; nil if it is not known. absent is set if there is none, and nothing
	// that it has created.
	restore *report.Restore
	absent  bool
}

// A pending object, or kind, is not adopted or could not be read.
type pending struct {
	what string
	why  reason.Message
	next string
	// stays is set if only the Restore, or a user, can change it.
	stays bool
}

func (p pending) String() string { return p.what + ": " + p.why.String() }

// find reads the Restore, and then the roots, which are not older.
func (w *wait) find(ctx context.Context) findings {
	var restore *report.Restore
	var unread error
	if w.restore != "" {
		restore, unread = w.readRestore(ctx)
	}
	roots, err := w.look(ctx)
	f := w.classify(roots, err)
	switch f.restore = restore; {
	case w.restore == "" || err != nil && restore == nil:
	case unread != nil:
		f.left = append(f.left, viewLine{about: "Restore", text: "whether the Restore is over is not known: " + messageOf(unread).String()})
	case restore == nil:
		f.absent = len(f.paths) == 0
	case diagnosis.IsUnderWay(restore.Phase):
		f.pending = append(f.pending, pending{
			what: "the Restore " + restore.Name, why: reason.RestoreRunning.Messagef("its phase is %s", cmp.Or(restore.Phase, "New")),
			next: "see what it does: " + xp.DescribeRestore(w.restore).String(),
		})
	}

	return f
}

// hasEnded reports whether the Restore has ended.
func (f *findings) hasEnded() bool { return f.restore != nil && !diagnosis.IsUnderWay(f.restore.Phase) }

// howEnded returns how the Restore has ended, with its errors and with what stays held; nil if it is
// Completed and everything is adopted.
func (w *wait) howEnded(f findings) error {
	r := f.restore
	if r.Phase == "Completed" && len(f.pending) == 0 {
		return nil
	}
	said := fmt.Sprintf("the Restore %s has ended as %s, with %d errors and %d warnings", r.Name, r.Phase, r.Errors, r.Warnings)
	if r.Failure != "" {
		said += " (" + r.Failure + ")"
	}
	said += "; see them with: " + xp.DescribeRestore(w.restore).String()
	if len(f.pending) > 0 {
		said += "; and these are not adopted:"
	}

	return &exit{code: ExitProblems, err: reason.RestoreEnded.Errorf("%s", said), list: nextSteps(f.pending)}
}

// classify returns the adopted objects and the pending ones.
func (w *wait) classify(roots cluster.Roots, err error) findings {
	if err != nil {
		return findings{pending: []pending{{what: "the cluster", why: messageOf(err), next: "check whether the API server answers"}}}
	}
	var f findings
	for _, u := range roots.Objects {
		if path := xp.RefTo(u).Path(); len(w.names) == 0 || slices.Contains(w.names, path) {
			f.paths = append(f.paths, path)
			f.add(u)
		}
	}
	for _, name := range w.names {
		if slices.Contains(f.paths, name) {
			continue
		}
		why := reason.NotFound.Messagef("there is no claim or XR of this name")
		if !strings.Contains(name, "/") {
			why = reason.NotFound.Messagef("there is no cluster-scoped claim or XR of this name. " + howToName)
		}
		f.pending = append(f.pending, pending{what: name, why: why, next: "check whether it was restored: velero restore describe --details", stays: true})
	}
	if len(w.names) == 0 && len(f.paths) == 0 {
		f.pending = append(f.pending, pending{
			what: "claims and XRs", why: reason.NotFound.Messagef("there are none here yet"),
			next: "check whether they were restored, and whether their XRD is Established", stays: true,
		})
	}
	f.addUnread(roots)

	return f
}

func (f *findings) add(u *unstructured.Unstructured) {
	r := xp.RefTo(u)
	why, next := adoption.WhyNotAdopted(u)
	if why.IsZero() {
		f.adopted = append(f.adopted, r.String())

		return
	}
	mark, err := hold.Of(u)
	f.roots++
	f.pending = append(f.pending, pending{what: r.String(), why: why, next: next, stays: mark != nil || err != nil || u.GetDeletionTimestamp() != nil})
}

// addUnread adds each kind that could not be read. A forbidden kind is left out if nothing else is
// pending.
func (f *findings) addUnread(roots cluster.Roots) {
	waiting := len(f.pending) > 0
	// An extension API server that is down for good must not block the wait.
	for _, gv := range slices.Sorted(maps.Keys(roots.Unasked)) {
		f.left = append(f.left, viewLine{about: gv, text: reason.NotRead.Messagef("claims and XRs of %s are left out, because it does not report its kinds: %s", gv,
			roots.Unasked[gv]).String()})
	}
	byName := func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }
	for _, gvk := range slices.SortedFunc(maps.Keys(roots.Unread), byName) {
		err := roots.Unread[gvk]
		p := pending{
			what: gvk.GroupKind().String(), why: messageOf(err),
			next: "docs/validate.md has the required rights; give -n if they are for one namespace",
		}
		if apierrors.IsForbidden(err) && roots.Kinds > 0 && !waiting {
			f.left = append(f.left, viewLine{about: p.what, text: p.what + " is left out, because you may not read it: " + p.why.String()})

			continue
		}
		f.pending = append(f.pending, p)
	}
}

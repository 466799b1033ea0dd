package hooks

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/vmware-tanzu/velero/pkg/label"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A held object and the result of its release.
type held struct {
	report.Release

	object *unstructured.Unstructured
	// hold is nil if it can't be read.
	hold *hold.Hold
	// parent is the nearest held object above it in its tree; nil if there is none.
	parent *held
	// quarantined is set for a quarantine or a manual release, which need the user's consent first.
	quarantined bool
	// schedule is set for CronOperations and WatchOperations, which have nothing to adopt.
	schedule bool
	// excluded is set if release leaves the object alone. asked is set if the user named it.
	excluded, asked bool
}

// holds are the selected held objects in release order: composed resources before their XR, claims
// last.
type holds struct {
	all  []*held
	byID map[xp.ID]*held
}

// find finds the held objects that the arguments select.
func (r *release) find() error {
	r.holds = &holds{byID: map[xp.ID]*held{}}
	for _, root := range r.survey.Trees() {
		r.visit(root, false)
	}
	found := sets.New[string]()
	for _, u := range r.survey.All() {
		ref := xp.RefTo(u)
		found.Insert(ref.Path())
		if r.holds.byID[ref.ID()] == nil && xp.IsSchedule(u) {
			r.add(u, slices.Contains(r.names, ref.Path()))
		}
	}
	for _, name := range r.names {
		if !found.Has(name) {
			return reason.NotFound.Errorf("cannot find %s: there is no claim, XR, managed resource, CronOperation or WatchOperation of this name. "+howToName, name)
		}
	}

	return nil
}

// checkScope fails if nothing is held, and the Restore or the namespace that was asked for does not
// exist. A Restore that is gone has existed if an object has its label.
func (r *release) checkScope(ctx context.Context) error {
	if len(r.holds.all) > 0 {
		return nil
	}
	namespace, name, _ := strings.Cut(r.restore, "/")
	brought := func(u *unstructured.Unstructured) bool {
		return xp.Label(u, xp.LabelRestore) == label.GetValidName(name)
	}
	if r.restore != "" && !slices.ContainsFunc(r.survey.All(), brought) {
		if restore, err := r.cluster.RestoreNamed(ctx, namespace, name); err == nil && restore == nil {
			return reason.NotFound.Errorf("there is no Restore %s, and nothing that it holds or has restored; velero restore get lists them", r.restore)
		}
	}
	if missing := r.noNamespace(ctx, r.cluster); len(missing) > 0 && missing[0].Severity == report.Error {
		return reason.NotFound.Errorf("cannot find a hold in %s: %s; %s", r.namespace, missing[0].Reason, missing[0].Next)
	}

	return nil
}

// visit adds the held objects of a tree. named is set if an object above is named. It returns the
// topmost held object of the tree, if there is a single one.
func (r *release) visit(n *report.Node, named bool) *held {
	u := r.survey.Get(n.Ref)
	if u == nil || n.State == report.Foreign || r.holds.byID[n.ID()] != nil {
		return nil
	}
	named = named || slices.Contains(r.names, n.Path())
	var children []*held
	for _, child := range n.Children {
		if h := r.visit(child, named); h != nil {
			children = append(children, h)
		}
	}
	// An XR's name selects its claim too.
	if n.Role == report.RoleClaim && len(n.Children) == 1 && slices.Contains(r.names, n.Children[0].Path()) {
		named = true
	}
	h := r.add(u, named)
	if h == nil && len(children) == 1 {
		return children[0]
	}
	for _, child := range children {
		child.parent = h
	}

	return h
}

// add adds an object if it is held and selected. A mark that cannot be read counts as a hold.
func (r *release) add(u *unstructured.Unstructured, named bool) *held {
	mark, err := hold.Of(u)
	switch {
	case err == nil && (mark == nil || r.restore != "" && mark.Restore != r.restore):
		return nil
	case !named && (len(r.names) > 0 || err != nil && r.restore != ""):
		return nil
	}
	h := &held{Release: report.Release{Object: xp.RefTo(u)}, object: u, hold: mark, schedule: xp.IsSchedule(u), asked: named}
	r.holds.all = append(r.holds.all, h)
	r.holds.byID[h.Object.ID()] = h
	if err != nil {
		h.Result, h.excluded, h.Next = report.StillHeld, true, howToRead(err)
		h.because(unreadable(err))

		return h
	}
	h.Restore, h.Settings = mark.Restore, hold.Settings(mark)
	_, h.quarantined = mark.AwaitsConsent()
	if since, err := time.Parse(time.RFC3339, mark.Since); err == nil {
		h.Since = &since
	}
	r.classify(h)

	return h
}

// classify decides whether release lifts a hold or leaves it alone.
func (r *release) classify(h *held) {
	mark := h.hold
	phase, known := r.survey.State.Restores[h.Restore]
	if h.Phase = phase; !known && h.Restore != "" {
		h.Phase = "Gone"
	}
	release := xp.ReleaseOf(mark.Restore[strings.Index(mark.Restore, "/")+1:]).String()
	switch {
	case r.isUnasked(h):
		h.excluded, h.Code, h.Reason, h.Next = true, codeOfHold(h), hold.Why(h.object, mark), hold.HowToRelease(h.object, mark)
	case r.restore != "", mark.ByCommand:
	case h.Phase == diagnosis.PhaseUnread:
		h.excluded = true
		h.because(reason.NotRead.Messagef("its Restore can't be read, so it can be running"))
		h.Next = "if it is not running, run: " + release
	case known && diagnosis.IsUnderWay(h.Phase):
		h.excluded = true
		h.because(reason.RestoreRunning.Messagef("its Restore is %s, and lifts the hold", cmp.Or(h.Phase, "New")))
		h.Next = "wait for it: " + Name + " wait; if nothing works on that Restore any more, run: " + release
	}
	if h.excluded {
		h.Result = report.LeftAlone
		if h.asked {
			h.Result = report.StillHeld
		}
	}
}

// isUnasked reports whether a hold is lifted only for who asks for it in a way that they did not.
func (r *release) isUnasked(h *held) bool {
	if h.hold.Clone != "" && (!h.asked || !r.force) {
		return true
	}
	named := h.asked || h.hold.ByCommand && (r.namespace != "" || r.all)

	return (h.schedule || h.quarantined && r.restore == "") && !named
}

// codeOfHold returns why release lifts a hold only on request.
func codeOfHold(h *held) reason.Code {
	switch {
	case h.hold.Clone != "":
		return reason.CopyOfAnother
	case h.hold.ByCommand:
		return reason.HeldByCommand
	case h.schedule:
		return reason.StartsOperations
	default:
		return reason.Quarantined
	}
}

// unreadable returns the message for a mark that can't be read or does not count.
func unreadable(err error) reason.Message {
	m := reason.ErrorMessage(err)
	m.Code = cmp.Or(m.Code, reason.Malformed)

	return m
}

// because records why a hold stays, or what was lost with it.
func (h *held) because(m reason.Message) { h.Code, h.Reason = m.Code, m.String() }

// These are the messages for an object that Velero created without writing back its managedFields
// from the backup: the first two before its hold is lifted, the other two after.
const (
	reasonManagersMissing = "Velero was stopped before it restored the managedFields, and release can't restore them"
	nextManagersMissing   = "restore the same backup again before the release, which restores them"
	reasonManagersLost    = "its managedFields of the backup are lost, because Velero was stopped before it restored them"
	nextManagersLost      = "if it is applied server-side, apply it once as it is before you remove a field from it; next time restore again before the release"
)

// addManagers adds to the result if a release loses, or has lost, the field managers.
func (h *held) addManagers() {
	why, next := reasonManagersLost, nextManagersLost
	switch h.Result { //nolint:exhaustive // The others are neither released nor going to be.
	case report.Released, report.Forced:
	case report.WouldRelease, report.WouldForce:
		why, next = reasonManagersMissing, nextManagersMissing
	default:
		return
	}
	if !hold.ForgetsManagers(h.object) {
		return
	}
	if h.Reason != "" {
		why = h.Reason + "; " + why
	}
	h.because(reason.ManagersNotRestored.Messagef("%s", why))
	h.Next = next
}

func (s *holds) due() []*held {
	return slices.DeleteFunc(slices.Clone(s.all), func(h *held) bool { return h.excluded })
}

// problems returns a problem for each hold that was to be lifted and was not, or is not proven.
func (s *holds) problems() []report.Problem {
	var problems []report.Problem
	for _, h := range s.all {
		if h.Result != report.StillHeld && h.Result != report.WouldWait && h.Result != report.Unproven {
			continue
		}
		code := reason.LeakedHold
		switch {
		case h.Result == report.Unproven:
			code = reason.Stuck
		case diagnosis.IsUnderWay(h.Phase) && h.Phase != "":
			code = reason.Held
		}
		problems = append(problems, report.Problem{Code: code, Severity: report.Error, Object: h.Object, Reason: h.Reason, Next: h.Next})
	}

	return problems
}

package backupitem

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// mostNamed is how many warnings of a sort name an object for one item. A tenant chooses how
	// many there are, which can be tens of thousands.
	mostNamed = 20
	// mostKinds is how many kinds of an XR's references are followed. Each takes at least one list,
	// and a cluster can have thousands.
	mostKinds = 256
	// longestCopy is how long an item's stored copy may become through annotations. A call of a
	// plugin takes 4 MiB, and in a restore the copy is in it twice, beside the Restore.
	longestCopy = 2<<20 - 64<<10
)

// found is what belongs to an item, and what is to be warned of.
type found struct {
	of *unstructured.Unstructured
	// shared are items that others need too, and items are its own, without those that these bring
	// themselves. Both are backed up with it.
	shared, items []xp.Item
	// before is what a restore must create before it, in order.
	before []xp.Item
	// published are the items that are connection secrets or credentials.
	published map[xp.Item]bool
	// inputs are the Secrets that its provider reads.
	inputs []xp.Input
	// dangling are an XR's resourceRefs to nothing, or to what another owner controls.
	dangling []xp.Ref
	// missed counts what was missing in lists.
	missed int
	// composed is what an XR composes.
	composed []*unstructured.Unstructured
	// skipped are links that are not followed, with the reason. listed are those of an XR's
	// resourceRefs.
	skipped, listed warnings
	// reads are inputs of functions that a backup of namespaces can lack.
	reads []warning
	// notes are all other warnings, but for lost, the kinds that could not be read.
	notes []warning
	lost  map[schema.GroupKind]*readFailure
	// followed are the kinds of an XR's references that were read, and beyond those above
	// mostKinds.
	followed, beyond map[schema.GroupKind]bool
}

func newFound(of *unstructured.Unstructured) *found {
	return &found{
		of: of, published: map[xp.Item]bool{},
		lost: map[schema.GroupKind]*readFailure{}, followed: map[schema.GroupKind]bool{}, beyond: map[schema.GroupKind]bool{},
	}
}

// separate returns a found for an object that is backed up with warnings of its own. Both share
// what could not be read.
func (f *found) separate() *found {
	other := newFound(f.of)
	other.published, other.lost = f.published, f.lost

	return other
}

// A warning is of a reference of an object, or of what is not known of it.
type warning struct {
	of  xp.Ref
	to  string
	why reason.Message
	// isLoss is true if the backup can lack something, or a restore of it can take a risk. Velero
	// counts errors, too, and a backup with one is PartiallyFailed.
	isLoss bool
	// once is true if thousands of items can have the same warning.
	once bool
}

func (w warning) log(log logrus.FieldLogger, m reason.Message) {
	level := logrus.WarnLevel
	if w.isLoss {
		level = logrus.ErrorLevel
	}
	write(log, level, logrus.Fields{"object": w.of.String(), "reference": w.to, "cause": w.why.Text}, m)
}

// A readFailure is why objects of a kind could not be read.
type readFailure struct {
	first  xp.Ref
	others map[xp.ID]bool
	err    error
}

// warnings are the first warnings of one sort for an item, and how many more there are.
type warnings struct {
	first []warning
	more  int
}

func (w *warnings) add(of *unstructured.Unstructured, to xp.Ref, why reason.Message) {
	if len(w.first) == mostNamed {
		w.more++

		return
	}
	w.first = append(w.first, warning{of: xp.RefTo(of), to: to.String(), why: why})
}

// skip warns that a reference of an object is not followed.
func (f *found) skip(of *unstructured.Unstructured, to xp.Ref, why reason.Message) {
	f.skipped.add(of, to, why)
}

// note warns of something about an object.
func (f *found) note(of *unstructured.Unstructured, to string, why reason.Message) {
	f.notes = append(f.notes, warning{of: xp.RefTo(of), to: to, why: why})
}

// addUnreadable records that r could not be read.
func (f *found) addUnreadable(r xp.Ref, err error) {
	gk := r.GroupVersionKind().GroupKind()
	switch l := f.lost[gk]; {
	case l == nil:
		f.lost[gk] = &readFailure{first: r, others: map[xp.ID]bool{}, err: err}
	case r.ID() != l.first.ID():
		l.others[r.ID()] = true
	}
}

// follows reports whether an XR's references of a kind are followed.
func (f *found) follows(gk schema.GroupKind) bool {
	if !f.followed[gk] && len(f.followed) == mostKinds {
		f.beyond[gk] = true

		return false
	}
	f.followed[gk] = true

	return true
}

// writeNotes writes what a restore needs onto the stored copy.
func (f *found) writeNotes(u *unstructured.Unstructured) {
	xp.SetRestoreFirst(u, f.before)
	xp.SetSavedConditions(u, f.composed)
	xp.SetFlag(u, xp.FieldPublished, f.takesSecret())
	f.noteInputs(u)
	xp.SetUnresolvedRefs(u, f.dangling)
	if len(f.dangling) <= mostNamed {
		return
	}
	kept := f.dangling
	for over := lengthOf(u.Object) - longestCopy; over > 0 && len(kept) > 0; kept = kept[:len(kept)-1] {
		over -= lengthOf(kept[len(kept)-1]) + 1
	}
	if lost := len(f.dangling) - len(kept); lost > 0 {
		xp.SetUnresolvedRefs(u, kept)
		f.note(u, "which of its references lead nowhere", reason.TooManyReferences.Messagef("%d of its references lead nowhere, which are too many for a call of a "+
			"plugin, so a restore waits for %d of them. Remove them from its resourceRefs, then back up again", len(f.dangling), lost))
	}
}

// warn logs all warnings. isFirst reports whether a warning is given for the first time.
func (f *found) warn(log logrus.FieldLogger, isFirst func(w any) bool) {
	for _, w := range []struct {
		warnings

		rest string
	}{{f.skipped, "what belongs to it"}, {f.listed, "all that it lists"}} {
		for _, one := range w.first {
			one.log(log, one.why.Code.Messagef("%s names %s, but the backup does not add it: %s", one.of, one.to, one.why.Text))
		}
		if w.more > 0 {
			see := "kubectl get " + f.of.GroupVersionKind().GroupKind().String() + " " + f.of.GetName()
			if f.of.GetNamespace() != "" {
				see += " -n " + f.of.GetNamespace()
			}
			warn(log, logrus.Fields{"object": xp.String(f.of), "reference": fmt.Sprint(w.more, " more"), "cause": w.rest}, reason.TooManyReferences.Messagef(
				"%s names %d more like the %d before, and the backup does not add them. To see %s, run: %s -o yaml", xp.String(f.of), w.more, mostNamed, w.rest, see))
		}
	}
	for _, w := range slices.Concat(f.notes, f.gaps()) {
		if !w.once || isFirst(w) {
			w.log(log, w.why.About(w.of.String()))
		}
	}
}

// isLoss reports whether the backup can lack something of a kind that can't be read. A tenant's XR
// can name any kind: one that can only be created, or one of an extension API server that is down
// for long. These have groups of this domain.
func (f *found) isLoss(gk schema.GroupKind) bool {
	return !strings.HasSuffix(gk.Group, ".k8s.io") && !apierrors.IsMethodNotSupported(f.lost[gk].err)
}

// gaps returns what could not be read and what was not followed.
func (f *found) gaps() []warning {
	var gaps []warning
	of := xp.RefTo(f.of)
	kinds := sorted(f.lost)
	for _, gk := range kinds[:min(len(kinds), mostNamed)] {
		l := f.lost[gk]
		what := l.first.String()
		if n := len(l.others); n > 0 {
			what += fmt.Sprintf(" and %d more of its kind", n)
		}
		gaps = append(gaps, warning{of: of, to: what, isLoss: f.isLoss(gk), why: unreadable(what, l.err, gk)})
	}
	if more := kinds[min(len(kinds), mostNamed):]; len(more) > 0 {
		why := reason.RelatedNotRead.Messagef("%d more kinds that it names can't be read. When the API server answers for them, back up again", len(more))
		gaps = append(gaps, warning{of: of, to: fmt.Sprintf("%d more kinds", len(more)), isLoss: slices.ContainsFunc(more, f.isLoss), why: why})
	}
	if beyond := sorted(f.beyond); len(beyond) > 0 {
		const few = 3
		var names []string
		for _, gk := range beyond[:min(len(beyond), few)] {
			names = append(names, gk.String())
		}
		gaps = append(gaps, warning{of: of, to: fmt.Sprintf("%d more kinds", len(beyond)), why: reason.TooManyReferences.Messagef(
			"it lists more than %d kinds, and the backup does not add the %d others, such as %s. Divide what it composes between several XRs, then back up again",
			mostKinds, len(beyond), strings.Join(names, ", "))})
	}

	return gaps
}

func unreadable(what string, err error, gk schema.GroupKind) reason.Message {
	return reason.RelatedNotRead.Messagef("%s can't be read: %v. The backup can lack what it names there. When the API server answers for %s, back up again",
		what, err, gk)
}

func sorted[V any](of map[schema.GroupKind]V) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(of), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

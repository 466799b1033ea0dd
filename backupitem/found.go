package backupitem

import (
	"encoding/json"
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
	// activating are the shared items that activate kinds of MRs.
	activating map[xp.Item]bool
	// inputs are the Secrets that its provider reads.
	inputs []xp.Input
	// dangling are an XR's resourceRefs to nothing, or to what another owner controls.
	dangling []xp.Ref
	// missed counts what was missing in lists.
	missed int
	// composed is what an XR composes.
	composed []*unstructured.Unstructured
	// warnings are links that are not followed, with the reason. listed are those of an XR's
	// resourceRefs.
	warnings, listed warnings
	// reads are inputs of functions that are not backed up with it.
	reads []reading
	// left are an XR's Usages that a restore would not bring back.
	left []warning
	// unknown is what could not be found out and does not stop the item's backup. lost are the
	// kinds that could not be read.
	unknown []gap
	lost    map[schema.GroupKind]*readFailure
	// followed are the kinds of an XR's references that were read, and beyond those above
	// mostKinds.
	followed, beyond map[schema.GroupKind]bool
}

func newFound(of *unstructured.Unstructured) *found {
	return &found{
		of: of, published: map[xp.Item]bool{}, activating: map[xp.Item]bool{},
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

// A gap is what is not known of an object.
type gap struct {
	of xp.Ref
	// what is the unknown part, for the log.
	what string
	why  reason.Message
	// isLoss is true if the backup can lack something, or a restore of it can take a risk.
	isLoss bool
}

// A readFailure is why objects of a kind could not be read.
type readFailure struct {
	first  xp.Ref
	others map[xp.ID]bool
	err    error
}

type warning struct {
	of, to xp.Ref
	why    reason.Message
}

// warnings are the first warnings of one sort for an item, and how many more there are.
type warnings struct {
	first []warning
	more  int
}

func (w *warnings) add(one warning) {
	if len(w.first) == mostNamed {
		w.more++

		return
	}
	w.first = append(w.first, one)
}

// skip warns that a reference of an object is not followed.
func (f *found) skip(of *unstructured.Unstructured, to xp.Ref, why reason.Message) {
	f.warnings.add(warning{of: xp.RefTo(of), to: to, why: why})
}

// skipListed is skip for an XR's resourceRefs.
func (f *found) skipListed(of *unstructured.Unstructured, to xp.Ref, why reason.Message) {
	f.listed.add(warning{of: xp.RefTo(of), to: to, why: why})
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

// note writes what a restore needs onto the stored copy.
func (f *found) note(u *unstructured.Unstructured) {
	xp.SetRestoreFirst(u, f.before)
	xp.SetSavedConditions(u, f.composed)
	xp.SetUnresolvedRefs(u, f.dangling)
	if len(f.dangling) <= mostNamed {
		return
	}
	over := lengthOf(u.Object) - longestCopy
	kept := len(f.dangling)
	for ; over > 0 && kept > 0; kept-- {
		over -= lengthOf(f.dangling[kept-1]) + 1
	}
	if kept == len(f.dangling) {
		return
	}
	xp.SetUnresolvedRefs(u, f.dangling[:kept])
	f.unknown = append(f.unknown, gap{
		of: xp.RefTo(u), what: "which of its references lead nowhere",
		why: reason.TooManyReferences.Messagef("%d of its references lead nowhere, which are too many for a call of a plugin, so a restore waits for %d of them. "+
			"Remove them from its resourceRefs, then back up again", len(f.dangling), len(f.dangling)-kept),
	})
}

// lengthOf returns how long a value is in a backup.
func lengthOf(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // What can't be encoded can't be stored.
	}

	return len(b)
}

// warn logs all warnings.
func (f *found) warn(log logrus.FieldLogger) {
	for _, w := range []struct {
		warnings

		rest string
	}{{f.warnings, "what belongs to it"}, {f.listed, "all that it lists"}} {
		for _, one := range w.first {
			one.warn(log, one.why.Code.Messagef("%s names %s, but the backup does not add it: %s", one.of, one.to, one.why.Text))
		}
		if w.more > 0 {
			see := "kubectl get " + f.of.GroupVersionKind().GroupKind().String() + " " + f.of.GetName() + inNamespace(f.of) + " -o yaml"
			warn(log, logrus.Fields{"object": xp.String(f.of), "reference": fmt.Sprint(w.more, " more"), "cause": w.rest}, reason.TooManyReferences.Messagef(
				"%s names %d more like the %d before, and the backup does not add them. To see %s, run: %s", xp.String(f.of), w.more, mostNamed, w.rest, see))
		}
	}
	for _, w := range f.left {
		w.warn(log, w.why.About(w.to.String()+" is left behind"))
	}
	for _, r := range f.reads {
		r.warn(log)
	}
	f.warnOfRuns(log)
	for _, g := range slices.Concat(f.unknown, f.gaps()) {
		g.log(log)
	}
}

// log logs the gap. Velero counts errors, too, and a backup with one is PartiallyFailed.
func (g gap) log(log logrus.FieldLogger) {
	level := logrus.WarnLevel
	if g.isLoss {
		level = logrus.ErrorLevel
	}
	m := g.why.About(g.of.String())
	write(log, level, logrus.Fields{"object": g.of.String(), "reference": g.what, "cause": g.why.Text}, m)
}

func (w warning) warn(log logrus.FieldLogger, m reason.Message) {
	warn(log, logrus.Fields{"object": w.of.String(), "reference": w.to.String(), "cause": w.why.Text}, m)
}

// isLoss reports whether the backup can lack something of a kind that can't be read. A tenant's XR
// can name any kind: one that can only be created, or one of an extension API server that is down
// for long. These have groups of this domain.
func (f *found) isLoss(gk schema.GroupKind) bool {
	return !strings.HasSuffix(gk.Group, ".k8s.io") && !apierrors.IsMethodNotSupported(f.lost[gk].err)
}

// gaps returns what could not be read and what was not followed.
func (f *found) gaps() []gap {
	var gaps []gap
	of := xp.RefTo(f.of)
	kinds := sorted(f.lost)
	for _, gk := range kinds[:min(len(kinds), mostNamed)] {
		l := f.lost[gk]
		what := l.first.String()
		if n := len(l.others); n > 0 {
			what += fmt.Sprintf(" and %d more of its kind", n)
		}
		gaps = append(gaps, gap{
			of: of, what: what, isLoss: f.isLoss(gk),
			why: reason.RelatedNotRead.Messagef("%s can't be read: %v. The backup can lack what it names there. When the API server answers for %s, back up again",
				what, l.err, gk),
		})
	}
	if more := kinds[min(len(kinds), mostNamed):]; len(more) > 0 {
		gaps = append(gaps, gap{
			of: of, what: fmt.Sprintf("%d more kinds", len(more)), isLoss: slices.ContainsFunc(more, f.isLoss),
			why: reason.RelatedNotRead.Messagef("%d more kinds that it names can't be read. When the API server answers for them, back up again", len(more)),
		})
	}
	if kinds := sorted(f.beyond); len(kinds) > 0 {
		const few = 3
		var names []string
		for _, gk := range kinds[:min(len(kinds), few)] {
			names = append(names, gk.String())
		}
		gaps = append(gaps, gap{
			of: of, what: fmt.Sprintf("%d more kinds", len(kinds)),
			why: reason.TooManyReferences.Messagef("it lists more than %d kinds, and the backup does not add the %d others, such as %s. Divide what it composes "+
				"between several XRs, then back up again", mostKinds, len(kinds), strings.Join(names, ", ")),
		})
	}

	return gaps
}

func sorted[V any](of map[schema.GroupKind]V) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(of), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
}

func inNamespace(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return ""
	}

	return " -n " + u.GetNamespace()
}

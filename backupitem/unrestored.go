package backupitem

import (
	"slices"

	"github.com/sirupsen/logrus"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// warnOfRuns warns of what an XR composes that Velero does not restore, and of Jobs that start
// again, each in one warning. Crossplane composes the former again.
func (f *found) warnOfRuns(log logrus.FieldLogger) {
	again := map[reason.Code][]xp.Ref{}
	for _, u := range f.composed {
		switch {
		case xp.Unrestored(u) != "":
			again[reason.MadeAgain] = append(again[reason.MadeAgain], xp.RefTo(u))
		case xp.RunsAgain(u):
			again[reason.RunsAgain] = append(again[reason.RunsAgain], xp.RefTo(u))
		}
	}
	for _, code := range []reason.Code{reason.MadeAgain, reason.RunsAgain} {
		refs := again[code]
		if len(refs) == 0 {
			continue
		}
		text := xp.MadeAgain
		if code == reason.RunsAgain {
			text = "had started and not completed, and starts again after a restore. If it must not, suspend it or delete it, then back up again"
		}
		slices.SortFunc(refs, xp.Ref.Compare)
		warn(log, logrus.Fields{"object": xp.String(f.of), "reference": xp.SomeOf(refs), "cause": text}, code.Messagef("%s composes %s, which %s", xp.String(f.of),
			xp.SomeOf(refs), text))
	}
}

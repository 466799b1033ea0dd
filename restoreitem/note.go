package restoreitem

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Velero counts what plugins warn of in the log of a backup, and not in that of a restore (velero
// pkg/controller/restore_controller.go, runValidatedRestore). What a person has to know of a
// restore is an operation, which its status counts and "velero restore describe --details"
// describes. The ID has all that is to be told, since the process that is asked about an operation
// is another than the one that has started it.
const (
	noteDone   = "note: "
	noteFailed = "failed: "
	// noteAfter comes between the ID of an operation that goes on with something, and such a note.
	noteAfter = "; "
)

// warn logs what a person has to know of the item, and has the restore tell it.
func (i *item) warn(fields logrus.Fields, message string) {
	i.log.WithFields(fields).Warn(message)
	i.notes = append(i.notes, withFields(fields, message))
}

// fail is warn for what the restore has failed to bring back.
func (i *item) fail(fields logrus.Fields, message string) {
	i.warn(fields, message)
	i.failed = true
}

// withFields is a message with its fields.
func withFields(fields logrus.Fields, message string) string {
	var more []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		more = append(more, fmt.Sprintf("%s: %v", name, fields[name]))
	}
	if len(more) > 0 {
		message += " (" + strings.Join(more, "; ") + ")"
	}

	return message
}

// note has an operation tell what a person has to know of the item.
func (i *item) note(out *velero.RestoreItemActionExecuteOutput) {
	if len(i.notes) == 0 {
		return
	}
	note := noteID(i.self(), strings.Join(i.notes, "; "), i.failed)
	if out.OperationID != "" {
		out.OperationID += noteAfter
	}
	out.OperationID += note
}

// noteID is the ID of an operation that only tells something of an object.
func noteID(r xp.Ref, text string, failed bool) string {
	prefix := noteDone
	if failed {
		prefix = noteFailed
	}

	return prefix + r.String() + ": " + text
}

// cutNote takes a note off the ID of an operation that goes on with something.
func cutNote(id string) (operation, note string) {
	operation, note, _ = strings.Cut(id, noteAfter)

	return operation, note
}

// addNote adds what a note tells to what is said of an operation. One that fails has it fail when
// it is over.
func addNote(note string, progress *velero.OperationProgress) {
	told := velero.OperationProgress{}
	if !noteText(note, &told) {
		return
	}
	progress.Description = strings.TrimPrefix(progress.Description+"; "+told.Description, "; ")
	if progress.Completed {
		progress.Err = strings.TrimPrefix(strings.TrimSuffix(progress.Err+"; "+told.Err, "; "), "; ")
	}
}

// noteText is the end of an operation that only tells something; ok is false if the ID is of
// another.
func noteText(id string, progress *velero.OperationProgress) (ok bool) {
	if text, failed := strings.CutPrefix(id, noteFailed); failed {
		progress.Completed, progress.Err, progress.Description = true, text, text

		return true
	}
	text, ok := strings.CutPrefix(id, noteDone)
	if ok {
		progress.Completed, progress.Description = true, text
	}

	return ok
}

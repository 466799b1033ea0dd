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

// Velero counts the warnings of plugins in a backup's log, and not in a restore's (velero
// pkg/controller/restore_controller.go, runValidatedRestore). So a message for the user is an
// operation, which the Restore's status counts and "velero restore describe --details" prints. Its
// ID has the message, since another process polls an operation than the one that starts it.
const (
	noteDone   = "note: "
	noteFailed = "failed: "
	// noteAfter separates the ID of another operation from the note after it.
	noteAfter = "; "
)

// warn logs a message for the user and adds it to the item's notes.
func (i *item) warn(fields logrus.Fields, message string) {
	i.log.WithFields(fields).Warn(message)
	i.notes = append(i.notes, withFields(fields, message))
}

// fail is warn for an item that the restore failed to bring back.
func (i *item) fail(fields logrus.Fields, message string) {
	i.warn(fields, message)
	i.failed = true
}

// withFields returns the message with its fields.
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

// note adds the item's notes to the operation ID.
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

// noteID returns the ID of an operation that only reports a message about r.
func noteID(r xp.Ref, text string, failed bool) string {
	prefix := noteDone
	if failed {
		prefix = noteFailed
	}

	return prefix + r.String() + ": " + text
}

// cutNote splits an ID into that of an operation and its note.
func cutNote(id string) (operation, note string) {
	operation, note, _ = strings.Cut(id, noteAfter)

	return operation, note
}

// addNote adds a note to the progress of an operation. A note of a failure fails the operation once
// that completes.
func addNote(note string, progress *velero.OperationProgress) {
	noted := velero.OperationProgress{}
	if !noteText(note, &noted) {
		return
	}
	progress.Description = strings.TrimPrefix(progress.Description+"; "+noted.Description, "; ")
	if progress.Completed {
		progress.Err = strings.TrimPrefix(strings.TrimSuffix(progress.Err+"; "+noted.Err, "; "), "; ")
	}
}

// noteText completes an operation that only reports a message; ok is false for other IDs.
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

package restoreitem

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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

// A remark is what an action reports about an item. A dry run takes its results from the remarks.
type remark struct {
	reason.Message

	// warns means that the user must know of it.
	warns bool
	// copied means that the item is a copy of a live object.
	copied bool
}

// withCode returns a logger that adds the code of a message, and clips the other fields.
func withCode(log logrus.FieldLogger, m reason.Message) *logrus.Entry {
	e := log.WithField("reason", string(m.Code))
	for name, value := range e.Data {
		if s, ok := value.(string); ok {
			e.Data[name] = reason.Clip(s, reason.LongestField)
		}
	}

	return e
}

// mostWarnings is how many warnings with the same code an item gets, in the log and in its note. The
// author of an item chooses how many there would be, which can be tens of thousands.
const mostWarnings = 20

// longestNote is how many bytes a note has at most. Velero keeps it as the ID of an operation.
const longestNote = 16 << 10

// logWarning logs a message if it is one of the first of its code about the item, and reports that.
func (i *item) logWarning(m reason.Message) bool {
	if i.warned == nil {
		i.warned = map[reason.Code]int{}
	}
	i.warned[m.Code]++
	if i.warned[m.Code] > mostWarnings {
		return false
	}
	withCode(i.log, m).Warn(m)
	i.remarks = append(i.remarks, remark{Message: m, warns: true})

	return true
}

// warn is logWarning with a note for the user.
func (i *item) warn(m reason.Message) bool {
	first := i.logWarning(m)
	if first {
		i.notes = append(i.notes, m)
	}

	return first
}

// logMore logs and returns how many more warnings of each code there are.
func (i *item) logMore() []reason.Message {
	var all []reason.Message
	for _, code := range slices.Sorted(maps.Keys(i.warned)) {
		if n := i.warned[code] - mostWarnings; n > 0 {
			m := code.Messagef("There are %d more warnings like the %d before", n, mostWarnings)
			withCode(i.log, m).Warn(m)
			all = append(all, m)
		}
	}

	return all
}

// apiErrorf returns an error like fmt.Errorf, for a failed request. Its code is that of the error
// that it wraps, if that has one.
func apiErrorf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if reason.CodeOf(err) != "" {
		return err
	}

	return reason.APIServerFailed.Errorf("%w", err)
}

// withErrorCode adds the code of an error to its text, which is all that Velero gets, and cleans it.
func withErrorCode(err error) error {
	if err == nil {
		return nil
	}

	return publicError{error: err, text: reason.ErrorMessage(err).String()}
}

// A publicError is an error as Velero gets it.
type publicError struct {
	error

	text string
}

func (e publicError) Error() string { return e.text }

func (e publicError) Unwrap() error { return e.error }

// fail is warn for an item that the restore failed to bring back.
func (i *item) fail(m reason.Message) {
	i.warn(m)
	i.failed = true
}

// note adds the item's notes to the operation ID.
func (i *item) note(out *velero.RestoreItemActionExecuteOutput) {
	if len(i.notes) == 0 {
		return
	}
	if out.OperationID != "" {
		out.OperationID += noteAfter
	}
	out.OperationID += noteID(i.self(), reason.Join(append(i.notes, i.logMore()...)), i.failed)
}

// noteID returns the ID of an operation that only reports a message about r.
func noteID(r xp.Ref, text string, failed bool) string {
	prefix := noteDone
	if failed {
		prefix = noteFailed
	}

	return reason.Clip(prefix+r.String()+": "+text, longestNote)
}

// addNote adds a note to the progress of an operation. That of a failure fails it when it completes.
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
	id = reason.Clean(id) // It has names that tenants have written, and Velero prints it as it is.
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

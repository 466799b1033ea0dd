package restoreitem

import (
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// fieldReason is the log field with the code of a message.
const fieldReason = "reason"

// A remark is what an action reports about an item. A dry run takes its results from the remarks.
type remark struct {
	reason.Message

	// warns means that the user must know of it.
	warns bool
	// copied means that the item is a copy of a live object.
	copied bool
}

// A remarkFn receives remarks, nil if nothing needs them.
type remarkFn func(remark)

func (r remarkFn) add(m remark) {
	if r != nil {
		r(m)
	}
}

// withCode returns a logger that adds the code of a message, and clips the other fields.
func withCode(log logrus.FieldLogger, m reason.Message) *logrus.Entry {
	e := log.WithField(fieldReason, string(m.Code))
	for name, value := range e.Data {
		if s, ok := value.(string); ok {
			e.Data[name] = reason.Clip(s, reason.LongestField)
		}
	}

	return e
}

// warn logs a message for the user, if it is one of the first of its code about the item.
func (s *Shared) warn(log logrus.FieldLogger, m reason.Message) {
	if !s.warned.add(m.Code) {
		return
	}
	withCode(log, m).Warn(m)
	s.remarks.add(remark{Message: m, warns: true})
}

// warnOfMore logs how many more warnings there are about the item.
func (s *Shared) warnOfMore(item *unstructured.Unstructured, log logrus.FieldLogger) {
	for _, m := range s.warned.more() {
		withCode(log.WithField("object", xp.String(item)), m).Warn(m)
	}
}

// warn logs a message for the user and adds it to the item's notes, if it is one of the first of
// its code.
func (i *item) warn(m reason.Message) {
	if !i.warned.add(m.Code) {
		return
	}
	withCode(i.log, m).Warn(m)
	i.remarks.add(remark{Message: m, warns: true})
	i.notes = append(i.notes, m)
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
	more := i.warned.more()
	for _, m := range more {
		withCode(i.log, m).Warn(m)
	}
	note := noteID(i.self(), reason.Join(append(i.notes, more...)), i.failed)
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

	return reason.Clip(prefix+r.String()+": "+text, longestNote)
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

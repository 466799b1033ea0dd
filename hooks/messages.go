package hooks

import (
	"io"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// messages writes each Write as one line and strips control characters. Text from objects and
// backups is untrusted: it must not move the cursor or start a line of its own.
type messages struct{ to io.Writer }

// Write writes one message.
func (m messages) Write(b []byte) (int, error) {
	text, ended := strings.CutSuffix(string(b), "\n")
	text = reason.Clean(text)
	if ended {
		text += "\n"
	}
	if _, err := m.to.Write([]byte(text)); err != nil {
		return 0, err //nolint:wrapcheck // The writer's own error.
	}

	return len(b), nil
}

// rawWriter returns the underlying stream, for text that is clean already and has colours or
// redraws lines.
func rawWriter(w io.Writer) io.Writer {
	if m, ok := w.(messages); ok {
		return m.to
	}

	return w
}

// newOptions returns options whose output streams are messages.
func newOptions(s Streams) *options {
	return &options{Streams: Streams{In: s.In, Out: messages{s.Out}, Err: messages{s.Err}}, typed: Name}
}

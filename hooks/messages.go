package hooks

import (
	"io"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
)

// messages is a stream on which a person is told something. What is written at once is one message
// and becomes one line in which nothing is obeyed: of what is in it, much is whatever somebody
// wrote into an object or a backup, who must neither move the cursor nor say anything in a line of
// their own.
type messages struct{ to io.Writer }

// Write writes a message.
func (m messages) Write(b []byte) (int, error) {
	text, ended := strings.CutSuffix(string(b), "\n")
	text = printer.Clean(text)
	if ended {
		text += "\n"
	}
	if _, err := m.to.Write([]byte(text)); err != nil {
		return 0, err //nolint:wrapcheck // It is a writer's.
	}

	return len(b), nil
}

// rawWriter returns the stream itself, for what has been cleaned before and may have colours, or is
// drawn anew in place.
func rawWriter(w io.Writer) io.Writer {
	if m, ok := w.(messages); ok {
		return m.to
	}

	return w
}

// newOptions returns options of which the streams take messages.
func newOptions(s Streams) *options {
	return &options{Streams: Streams{In: s.In, Out: messages{s.Out}, Err: messages{s.Err}}}
}

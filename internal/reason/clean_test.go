package reason

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tenants write names and conditions. A message is one printable line of bounded length, wherever
// it goes: a terminal ("velero restore describe --details"), an Event, a mark, a log.
func TestMessagesAreClean(t *testing.T) {
	long := strings.Repeat("é", longestPart)
	const hostile = "a\x1b[2J\x1b]0;owned\x07\r\n  b\u202e"
	const clean = "a\ufffd[2J\ufffd]0;owned\ufffd b\ufffd"
	wrapped := NotFound.Errorf("cannot read %s: %w", hostile, io.EOF)
	cases := map[string]struct {
		reason    string
		got, want string
	}{
		"Printable": {reason: "A printable text stays as it is.", got: NotFound.Messagef("Bucket %s", "a  b").String(), want: "Bucket a  b [NotFound]"},
		"Text":      {reason: "The text alone is clean, too.", got: NotFound.Messagef("Bucket %s", hostile).Text, want: "Bucket " + clean},
		"Literal":   {reason: "A message that is put together is clean.", got: Message{Code: NotFound, Text: hostile}.String(), want: clean + " [NotFound]"},
		"NoCode":    {reason: "A message without a code is clean.", got: Message{Text: hostile}.String(), want: clean},
		"About":     {reason: "The name before a message is clean.", got: NotFound.Messagef("x").About(hostile).String(), want: clean + ": x [NotFound]"},
		"Error":     {reason: "An error with a code is clean.", got: wrapped.Error(), want: "cannot read " + clean + ": EOF"},
		"OtherError": {
			reason: "The message of another error is clean.", got: ErrorMessage(errors.New(hostile)).String(), want: clean,
		},
		"Long": {
			reason: "A long part does not hide the next step.", got: NotFound.Messagef("%s is missing. Restore it", long).Text,
			want: strings.Repeat("é", longestPart/2) + fmt.Sprintf("… (%d bytes more) is missing. Restore it", longestPart),
		},
		"LongCode":   {reason: "Any kind of string is clipped.", got: NotFound.Messagef("%q", Code(long)).Text[longestPart:], want: fmt.Sprintf(`é… (%d bytes more)"`, longestPart)[1:]},
		"LongError":  {reason: "A long error is clipped.", got: NotFound.Messagef("%v.", errors.New(long)).Text[longestPart:], want: fmt.Sprintf("… (%d bytes more).", longestPart)},
		"NilPointer": {reason: "A nil pointer has no text.", got: NotFound.Messagef("%v", (*strings.Builder)(nil)).Text, want: "<nil>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if !errors.Is(wrapped, io.EOF) || CodeOf(fmt.Errorf("cannot: %w", wrapped)) != NotFound {
		t.Errorf("%v must wrap its cause, and have its code", wrapped)
	}
	if err := NotFound.Errorf("cannot: %w", fmt.Errorf("%s: %w", long, io.EOF)); !errors.Is(err, io.EOF) || len(err.Error()) > 2*longestPart {
		t.Errorf("a clipped error of %d bytes must wrap its cause", len(err.Error()))
	}
}

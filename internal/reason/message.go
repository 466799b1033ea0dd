package reason

import (
	"errors"
	"fmt"
	"strings"
)

// A Code names a reason of reasons.yaml. Programs may rely on it: it never changes.
type Code string

// A Message is a sentence for a person, with the code of its reason. The zero Message is none.
type Message struct {
	// Code is "" if Text ends with other messages, which have their codes.
	Code Code
	Text string
}

// Messagef returns a Message with the code. The format is as in fmt.Sprintf. Each argument is
// clipped, and the text is clean: they are names and texts that anyone can have written.
func (c Code) Messagef(format string, args ...any) Message {
	return Message{Code: c, Text: Clean(fmt.Sprintf(format, clipped(args)...))}
}

// String returns the clean text, with the code behind it in brackets.
func (m Message) String() string {
	if m.Code == "" {
		return Clean(m.Text)
	}

	return Clean(m.Text) + " [" + string(m.Code) + "]"
}

// About returns the message with the name of the object before it that it is about.
func (m Message) About(name string) Message {
	return Message{Code: m.Code, Text: Clip(name, longestPart) + ": " + m.Text}
}

// IsZero reports whether there is no message.
func (m Message) IsZero() bool { return m.Text == "" }

// Strings returns the messages as strings; nil for none.
func Strings(messages []Message) []string {
	var s []string
	for _, m := range messages {
		s = append(s, m.String())
	}

	return s
}

// Join returns the messages in one text.
func Join(messages []Message) string { return strings.Join(Strings(messages), "; ") }

// coded is an error with a code, which CodeOf finds.
type coded struct {
	error

	code Code
}

func (e coded) Error() string { return Clean(e.error.Error()) }

func (e coded) Unwrap() error { return e.error }

// Errorf returns an error with the code. The format is as in fmt.Errorf, and arguments are as in
// Messagef. The text of the error does not have the code: ErrorMessage adds it where the error is
// printed.
func (c Code) Errorf(format string, args ...any) error {
	return coded{error: fmt.Errorf(format, clipped(args)...), code: c}
}

// CodeOf returns the code of an error, the outermost of those that it wraps; "" if it has none.
func CodeOf(err error) Code {
	c, _ := errors.AsType[coded](err)

	return c.code
}

// ErrorMessage returns the Message of an error.
func ErrorMessage(err error) Message {
	return Message{Code: CodeOf(err), Text: Clean(Clip(err.Error(), longestPart))}
}

package xp

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Program is what the program of this plugin is called on a command line.
const Program = "velero-plugin-for-crossplane"

// A Command is a command line for a person to copy. What objects are called is in it as words of a
// POSIX shell and nothing else, whatever somebody has written there, and is never taken for an
// option.
type Command struct {
	words []word
	// refused says why there is no command to copy.
	refused string
}

// A word is quoted. An operand is what a program takes for an option if it begins with a dash,
// unless options have ended before.
type word struct {
	text            string
	operand, dashed bool
}

// placeholder stands for what can't be a word of a command.
const placeholder = "NAME"

const whyUnprintable = "NAME has characters that do not print, so there is no command to copy"

// NewCommand returns a command of words that no object has a say in: a program, subcommands and
// options.
func NewCommand(words ...string) Command { return Command{}.Word(words...) }

// Word adds more of such words.
func (c Command) Word(words ...string) Command {
	c.words = slices.Clone(c.words)
	for _, w := range words {
		c.words = append(c.words, word{text: w})
	}

	return c
}

// With adds an option and its value.
func (c Command) With(option, value string) Command {
	text, ok := ShellWord(value)
	if !ok {
		text, c.refused = placeholder, whyUnprintable
	}
	if strings.HasPrefix(value, "-") {
		return c.Word(option + "=" + text)
	}

	return c.Word(option, text)
}

// On adds operands, such as the names of objects.
func (c Command) On(operands ...string) Command {
	c.words = slices.Clone(c.words)
	for _, o := range operands {
		text, ok := ShellWord(o)
		if !ok {
			text, c.refused = placeholder, whyUnprintable
		}
		c.words = append(c.words, word{text: text, operand: true, dashed: strings.HasPrefix(o, "-")})
	}

	return c
}

// String returns the command line. If there is none to copy it shows what it would be, and says why
// there is none.
func (c Command) String() string { return Then(c) }

// Then returns the command lines of which each is carried out if the one before it was.
func Then(commands ...Command) string {
	lines, refused := make([]string, 0, len(commands)), ""
	for _, c := range commands {
		lines = append(lines, c.line())
		if c.refused != "" {
			refused = " (" + c.refused + ")"
		}
	}

	return strings.Join(lines, " && ") + refused
}

// line returns the words in their order. If an operand begins with a dash, the options come first,
// and what ends them.
func (c Command) line() string {
	words := c.words
	if slices.ContainsFunc(words, func(w word) bool { return w.dashed }) {
		isOperand, isOption := func(w word) bool { return w.operand }, func(w word) bool { return !w.operand }
		options, operands := slices.DeleteFunc(slices.Clone(words), isOperand), slices.DeleteFunc(slices.Clone(words), isOption)
		words = slices.Concat(options, []word{{text: "--"}}, operands)
	}
	texts := make([]string, 0, len(words))
	for _, w := range words {
		texts = append(texts, w.text)
	}

	return strings.Join(texts, " ")
}

// ShellWord returns a string as one word of a POSIX shell, quoted if it needs to be; ok is false if
// it has what does not print, which a terminal may obey, or which makes it look like another.
func ShellWord(s string) (word string, ok bool) {
	switch {
	case !IsPrintable(s):
		return "", false
	case s != "" && !strings.ContainsFunc(s, isSpecial):
		return s, true
	default:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", true
	}
}

// isSpecial reports whether a character may mean something to a shell.
func isSpecial(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("./-_:,@", r)
}

// IsPrintable reports whether a string has nothing but characters that print, and spaces.
func IsPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ReleaseCommand returns the command that lifts the hold on what r names.
func ReleaseCommand(r Ref) Command { return NewCommand(Program, "release").On(r.Path()) }

// ReleaseOf returns the command that lifts the holds of a Restore.
func ReleaseOf(restore string) Command {
	return NewCommand(Program, "release").With("--restore", restore)
}

// ValidateCommand returns the command that says how well what r names is.
func ValidateCommand(r Ref) Command { return NewCommand(Program, "validate").On(r.Path()) }

// ExchangeCommand returns the command that has what r names exchange what it has composed anew for
// what it composed in a backup.
func ExchangeCommand(r Ref) Command {
	return NewCommand(Program, "exchange").On(r.Path()).With("--backup", "FILE")
}

// DescribeRestore returns Velero's command that says what a Restore did.
func DescribeRestore(name string) Command {
	return NewCommand("velero", "restore", "describe", "--details").On(name)
}

// Kubectl returns a command of kubectl's about what r names. The labels or annotations that come
// after it no object has a say in.
func Kubectl(verb string, r Ref, pairs ...string) Command {
	kind := r.Kind
	gv := r.GroupVersionKind()
	if gv.Group != "" {
		kind += "." + gv.Version + "." + gv.Group
	}
	c := NewCommand("kubectl", verb)
	if gv.Version == "" || !isResource(kind) || !IsValidName(r.Namespace, r.Name) || isPair(r.Name) {
		c = c.On("KIND", placeholder).On(pairs...)
		c.refused = "kubectl does not take what is written there for the kind and name of one object, so there is no command to copy"

		return c
	}
	c = c.On(kind, r.Name)
	if r.Namespace != "" {
		c = c.With("-n", r.Namespace)
	}

	return c.On(pairs...)
}

// isResource reports whether kubectl takes a word for one resource: several are divided by commas,
// and one and its name by a slash.
func isResource(kind string) bool {
	return !strings.ContainsFunc(kind, func(r rune) bool { return isSpecial(r) || strings.ContainsRune("/_:,@", r) }) && !strings.HasPrefix(kind, "-")
}

// isPair reports whether kubectl takes a word for a label or annotation to be set or removed,
// rather than for a name.
func isPair(name string) bool { return strings.Contains(name, "=") || strings.HasSuffix(name, "-") }

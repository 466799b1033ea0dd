package xp

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Program is the name of this program on a command line.
const Program = "velero-plugin-for-crossplane"

// A Command is a command line for a user to copy. A tenant chooses the names of objects, so each is
// quoted as one word of a POSIX shell and can't become an option.
type Command struct {
	words []word
	// dashed means that an operand begins with a dash. A program takes it for an option unless "--"
	// precedes it.
	dashed bool
	// refused is why there is no command to copy, "" if there is one.
	refused string
}

// A word is one quoted word.
type word struct {
	text    string
	operand bool
}

// placeholder stands for a name that can't be a word of a command.
const placeholder = "NAME"

const unprintable = "NAME has characters that do not print, so there is no command to copy"

// NewCommand returns a command of trusted words: a program, subcommands and options. The words are
// not quoted.
func NewCommand(words ...string) Command { return Command{}.Word(words...) }

// Word adds trusted words. They are not quoted.
func (c Command) Word(words ...string) Command {
	c.words = slices.Clone(c.words)
	for _, w := range words {
		c.words = append(c.words, word{text: w})
	}

	return c
}

// With adds an option and its quoted value.
func (c Command) With(option, value string) Command {
	text, ok := ShellWord(value)
	if !ok {
		text, c.refused = placeholder, unprintable
	}
	if strings.HasPrefix(value, "-") {
		return c.Word(option + "=" + text)
	}

	return c.Word(option, text)
}

// On adds quoted operands, such as the names of objects.
func (c Command) On(operands ...string) Command {
	c.words = slices.Clone(c.words)
	for _, o := range operands {
		text, ok := ShellWord(o)
		if !ok {
			text, c.refused = placeholder, unprintable
		}
		c.words = append(c.words, word{text: text, operand: true})
		c.dashed = c.dashed || strings.HasPrefix(o, "-")
	}

	return c
}

// String returns the command line. If there is none to copy, it has placeholders and ends with the
// reason.
func (c Command) String() string { return Then(c) }

// Then joins command lines with &&.
func Then(commands ...Command) string {
	var lines []string
	refused := ""
	for _, c := range commands {
		lines = append(lines, c.line())
		if c.refused != "" {
			refused = " (" + c.refused + ")"
		}
	}

	return strings.Join(lines, " && ") + refused
}

// line returns the words in their order. If an operand begins with a dash, options come first, then
// "--", then operands.
func (c Command) line() string {
	var all, options, operands []string
	for _, w := range c.words {
		all = append(all, w.text)
		if w.operand {
			operands = append(operands, w.text)
		} else {
			options = append(options, w.text)
		}
	}
	if c.dashed {
		all = slices.Concat(options, []string{"--"}, operands)
	}

	return strings.Join(all, " ")
}

// ShellWord returns a string as one word of a POSIX shell, quoted if needed. It returns false if
// the string has characters that do not print: a terminal may obey them, or show another string.
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

// isSpecial reports whether a shell may give a character a meaning.
func isSpecial(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("./-_:,@", r)
}

// IsPrintable reports whether a string is valid UTF-8 of printing characters and spaces only.
func IsPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ReleaseCommand returns the command that releases r.
func ReleaseCommand(r Ref) Command { return NewCommand(Program, "release").On(r.Path()) }

// ReleaseOf returns the command that releases everything that a Restore has held.
func ReleaseOf(restore string) Command {
	return NewCommand(Program, "release").With("--restore", restore)
}

// ValidateCommand returns the command that validates r.
func ValidateCommand(r Ref) Command { return NewCommand(Program, "validate").On(r.Path()) }

// HowToGetBack returns, as part of a message, how a user gives r, which another writer made before
// the restore, what it composed in the backup.
func HowToGetBack(r Ref) string {
	return "stop what applies " + r.String() + ", have the external resources of what it composes now stay (managementPolicies without Delete, or " +
		"deletionPolicy: Orphan), delete it, and restore again: docs/gitops.md has each step"
}

// DescribeRestore returns Velero's command that describes a Restore.
func DescribeRestore(name string) Command {
	return NewCommand("velero", "restore", "describe", "--details").On(name)
}

// Kubectl returns a kubectl command for r. The pairs are labels or annotations to set or remove, as
// kubectl takes them. It has no command to copy if kubectl would read the kind or name as something
// else.
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

// isResource reports whether kubectl reads a word as one resource. A comma separates several
// resources, and a slash separates a resource and a name.
func isResource(kind string) bool {
	return !strings.ContainsFunc(kind, func(r rune) bool { return isSpecial(r) || strings.ContainsRune("/_:,@", r) }) && !strings.HasPrefix(kind, "-")
}

// isPair reports whether kubectl reads a word as a label or annotation to set or remove, not as a
// name.
func isPair(name string) bool { return strings.Contains(name, "=") || strings.HasSuffix(name, "-") }

package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// A stage runs the instructions after one FROM: on "scratch", or on an image with Go.
type stage struct {
	created time.Time
	context buildContext
	// given has the build arguments by name, and others the earlier stages.
	given  map[string]string
	others map[string]*stage
	lex    *shell.Lex

	scratch bool
	golang  string // The version of Go.
	dir     string // The root of its files on this machine.
	workdir string
	vars    map[string]string
	config  v1.Config
	layers  []mutate.Addendum
}

var digestRE = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (s *stage) carryOut(ctx context.Context, st instructions.Stage) error {
	// An engine uses the digest of the base. Here only Go's version counts: Go verifies a toolchain
	// that it downloads with its own checksum database.
	base, digest, pinned := strings.Cut(st.BaseName, "@")
	version, isGo := strings.CutPrefix(base, "golang:")
	s.scratch, s.golang = st.BaseName == "scratch", version
	// The engine's platform builds: its programs cross-compile for the others.
	if isBuild := isGo && st.Platform == "$BUILDPLATFORM"; !isBuild && (!s.scratch || st.Platform != "") {
		return fmt.Errorf("cannot carry out %q: only FROM scratch and FROM --platform=$BUILDPLATFORM golang:VERSION are known here", st.SourceCode)
	}
	if pinned && !digestRE.MatchString(digest) {
		return fmt.Errorf("cannot carry out %q: %q is no digest, which is sha256: and 64 hexadecimal digits", st.SourceCode, digest)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return err
	}
	for _, command := range st.Commands {
		if err := s.do(ctx, command); err != nil {
			return fmt.Errorf("cannot carry out %q in line %d of the Dockerfile: %w", command, command.Location()[0].Start.Line, err)
		}
	}

	return nil
}

var errUnknown = errors.New("it is not known here")

// do runs one instruction.
func (s *stage) do(ctx context.Context, command instructions.Command) error {
	if e, ok := command.(instructions.SupportsSingleWordExpansion); ok {
		if err := e.Expand(s.expand); err != nil {
			return err
		}
	}
	switch c := command.(type) {
	case *instructions.ArgCommand:
		return s.arg(c)
	case *instructions.CopyCommand:
		return s.copy(c)
	}
	if s.scratch {
		return s.configure(command)
	}
	switch c := command.(type) {
	case *instructions.RunCommand:
		return s.run(ctx, c)
	case *instructions.WorkdirCommand:
		if s.workdir = c.Path; !path.IsAbs(c.Path) {
			return errUnknown
		}

		return os.MkdirAll(inside(s.dir, s.workdir), 0o755)
	case *instructions.EnvCommand:
		for _, e := range c.Env {
			s.vars[e.Key] = e.Value
		}

		return nil
	}

	return errUnknown
}

// configure sets the image's configuration.
func (s *stage) configure(command instructions.Command) error {
	withShell := false
	switch c := command.(type) {
	case *instructions.LabelCommand:
		if s.config.Labels == nil {
			s.config.Labels = map[string]string{}
		}
		for _, l := range c.Labels {
			s.config.Labels[l.Key] = l.Value
		}
	case *instructions.UserCommand:
		s.config.User = c.User
	case *instructions.EntrypointCommand:
		s.config.Entrypoint, withShell = c.CmdLine, c.PrependShell
	case *instructions.CmdCommand:
		s.config.Cmd, withShell = c.CmdLine, c.PrependShell
	default:
		return errUnknown
	}
	if withShell {
		return errors.New("the image has no shell; write it as a JSON array")
	}

	return nil
}

func (s *stage) expand(word string) (string, error) {
	expanded, unset, err := s.lex.ProcessWord(word, shell.EnvsFromSlice(s.environment()))
	if err == nil && len(unset) > 0 {
		err = fmt.Errorf("nothing sets %s before", strings.Join(slices.Sorted(maps.Keys(unset)), ", "))
	}

	return expanded, err
}

func (s *stage) arg(c *instructions.ArgCommand) error {
	for _, a := range c.Args {
		value, ok := s.given[a.Key]
		switch {
		case ok:
			s.vars[a.Key] = value
		case a.Value != nil:
			s.vars[a.Key] = *a.Value
		default:
			return fmt.Errorf("nothing gives it %s", a.Key)
		}
	}

	return nil
}

func (s *stage) copy(c *instructions.CopyCommand) error { //nolint:cyclop // Each case is refused with its own reason.
	if c.Chown != "" || c.Chmod != "" || c.Link || c.Parents || len(c.ExcludePatterns) > 0 || len(c.SourceContents) > 0 {
		return fmt.Errorf("%w with its flags", errUnknown)
	}
	dest := c.DestPath
	if dest == "." || dest == "./" {
		dest = s.workdir + "/"
	}
	if isFolder := strings.HasSuffix(dest, "/"); !path.IsAbs(dest) || !isFolder && c.From == "" {
		return errors.New("what is copied needs a folder as destination, with a slash at its end")
	} else if isFolder && c.From != "" {
		dest += path.Base(c.SourcePaths[0])
	}
	root := s.dir
	if s.scratch { // Each instruction has its own layer.
		root = filepath.Join(s.dir, strconv.Itoa(len(s.layers)))
	}
	if c.From != "" {
		other, ok := s.others[c.From]
		if !ok || len(c.SourcePaths) > 1 {
			return fmt.Errorf("there is no stage %s before, or more than one file of it", c.From)
		}
		if err := copyFile(inside(other.dir, c.SourcePaths[0]), inside(root, dest)); err != nil {
			return err
		}
	} else {
		for _, source := range c.SourcePaths {
			if err := s.context.copyTo(source, inside(root, dest)); err != nil {
				return err
			}
		}
	}
	if !s.scratch {
		return nil
	}
	layer, err := layerOf(root, s.created, c.String())
	s.layers = append(s.layers, layer)

	return err
}

// run runs a go command with this machine's Go, or with the version of the stage's image if that
// differs. An absolute path of the output is a path in the stage's file system.
func (s *stage) run(ctx context.Context, c *instructions.RunCommand) error {
	if len(c.FlagsUsed) > 0 || !c.PrependShell || len(c.Files) > 0 || len(c.CmdLine) != 1 {
		return fmt.Errorf("%w, but as a go command in a stage with Go", errUnknown)
	}
	// There is no shell here.
	if strings.ContainsAny(c.CmdLine[0], ";&|<>`()*?~\n") {
		return errors.New("only one go command is known here, and nothing else that a shell does")
	}
	if _, err := s.expand(c.CmdLine[0]); err != nil {
		return err
	}
	env := s.environment()
	words, err := s.lex.ProcessWords(c.CmdLine[0], shell.EnvsFromSlice(env))
	if err != nil {
		return err
	}
	if len(words) < 2 || words[0] != "go" {
		return errors.New("only go commands are known here")
	}
	for i, word := range words[:len(words)-1] {
		if out := words[i+1]; word == "-o" && filepath.IsAbs(out) {
			words[i+1] = inside(s.dir, out)
		}
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = inside(s.dir, s.workdir), append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}

	return nil
}

// environment returns the stage's variables, after those that hide this machine's settings of Go,
// which could change the program.
func (s *stage) environment() []string {
	env := []string{"GOTOOLCHAIN=go" + s.golang, "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"}
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		env = append(env, name+"="+s.vars[name])
	}

	return env
}

// A buildContext has the files of a folder that its .dockerignore does not exclude.
type buildContext struct {
	root  string
	files []string // With slashes, relative to the root.
}

func readContext(root string) (buildContext, error) {
	c := buildContext{root: root}
	f, err := os.Open(filepath.Join(root, ".dockerignore"))
	if err != nil {
		return c, err
	}
	defer func() { _ = f.Close() }()
	patterns, err := ignorefile.ReadAll(f)
	if err != nil {
		return c, fmt.Errorf("cannot read the .dockerignore: %w", err)
	}
	ignored, err := patternmatcher.New(patterns)
	if err != nil {
		return c, fmt.Errorf("cannot understand the .dockerignore: %w", err)
	}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if skip, err := ignored.MatchesOrParentMatches(rel); skip || err != nil {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("cannot copy %s: it is no regular file, and nothing else is known here", rel)
		}
		c.files = append(c.files, filepath.ToSlash(rel))

		return nil
	})

	return c, err
}

// copyTo copies a file of the context, or all of them with their folders, into a folder.
func (c buildContext) copyTo(source, dir string) error {
	found := false
	for _, file := range c.files {
		to := path.Base(file)
		if source == "." {
			to = file
		} else if file != source {
			continue
		}
		found = true
		if err := copyFile(filepath.Join(c.root, filepath.FromSlash(file)), inside(dir, to)); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("cannot copy %s: the context has no such file, or the .dockerignore leaves it out", source)
	}

	return nil
}

// inside returns where an absolute path of an image's file system is on this machine.
func inside(root, path string) string {
	return filepath.Join(root, filepath.FromSlash(filepath.Clean("/"+path)))
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}

	return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, b, info.Mode().Perm()))
}

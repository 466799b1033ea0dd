package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
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

const (
	scratch = "scratch"
	golang  = "golang:"
	// buildPlatform is the engine's platform: its programs cross-compile for the others.
	buildPlatform = "$BUILDPLATFORM"
)

var digestRE = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func (s *stage) carryOut(ctx context.Context, st instructions.Stage) error {
	// An engine uses the digest of the base. Here only Go's version counts: Go verifies a toolchain
	// that it downloads with its own checksum database.
	base, digest, pinned := strings.Cut(st.BaseName, "@")
	version, isGo := strings.CutPrefix(base, golang)
	s.scratch, s.golang = st.BaseName == scratch, version
	switch {
	case s.scratch && st.Platform == "", isGo && st.Platform == buildPlatform:
	default:
		return fmt.Errorf("cannot carry out %q: only FROM %s and FROM --platform=%s %sVERSION are known here", st.SourceCode, scratch, buildPlatform, golang)
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
	case *instructions.RunCommand:
		return s.run(ctx, c)
	case *instructions.WorkdirCommand:
		s.workdir = path.Join(s.workdir, c.Path)
		if path.IsAbs(c.Path) {
			s.workdir = c.Path
		}
		if s.scratch {
			s.config.WorkingDir = s.workdir
		}

		return os.MkdirAll(inside(s.dir, s.workdir), 0o755)
	case *instructions.EnvCommand:
		if s.scratch { // The program would have to be in the image. No test has one.
			return errUnknown
		}
		for _, e := range c.Env {
			s.vars[e.Key] = e.Value
		}

		return nil
	default:
		return s.configure(command)
	}
}

// configure sets the image's configuration.
func (s *stage) configure(command instructions.Command) error {
	if !s.scratch {
		return errUnknown
	}
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
		s.config.Entrypoint = c.CmdLine

		return withoutShell(c.ShellDependantCmdLine)
	case *instructions.CmdCommand:
		s.config.Cmd = c.CmdLine

		return withoutShell(c.ShellDependantCmdLine)
	default:
		return errUnknown
	}

	return nil
}

func withoutShell(c instructions.ShellDependantCmdLine) error {
	if c.PrependShell {
		return errors.New("the image has no shell; write it as a JSON array")
	}

	return nil
}

func (s *stage) expand(word string) (string, error) {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(s.vars)) {
		env = append(env, name+"="+s.vars[name])
	}
	expanded, unset, err := s.lex.ProcessWord(word, shell.EnvsFromSlice(env))
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

func (s *stage) copy(c *instructions.CopyCommand) error {
	if c.Chown != "" || c.Chmod != "" || c.Link || c.Parents || len(c.ExcludePatterns) > 0 || len(c.SourceContents) > 0 {
		return fmt.Errorf("%w with its flags", errUnknown)
	}
	dest, err := s.destination(c)
	if err != nil {
		return err
	}
	root := s.dir
	if s.scratch { // Each instruction has its own layer.
		root = filepath.Join(s.dir, strconv.Itoa(len(s.layers)))
	}
	for _, source := range c.SourcePaths {
		err := s.context.copyTo(source, root, dest)
		if c.From != "" {
			err = s.copyFrom(c.From, source, root, dest)
		}
		if err != nil {
			return err
		}
	}
	if !s.scratch {
		return nil
	}
	layer, err := layerOf(root, s.created, c.String())
	s.layers = append(s.layers, layer)

	return err
}

// destination returns the absolute destination of a copy. A folder ends with a slash.
func (s *stage) destination(c *instructions.CopyCommand) (string, error) {
	dest := c.DestPath
	if !path.IsAbs(dest) {
		dest = path.Join(s.workdir, dest)
		if strings.HasSuffix(c.DestPath, "/") || c.DestPath == "." {
			dest += "/"
		}
	}
	if len(c.SourcePaths) > 1 && !strings.HasSuffix(dest, "/") {
		return "", errors.New("more than one file needs a folder as destination, with a slash at its end")
	}

	return dest, nil
}

// copyFrom copies one file of another stage.
func (s *stage) copyFrom(name, source, root, dest string) error {
	other, ok := s.others[name]
	if !ok {
		return fmt.Errorf("there is no stage %s before", name)
	}
	if strings.HasSuffix(dest, "/") {
		dest += path.Base(source)
	}

	return copyFile(inside(other.dir, source), inside(root, dest))
}

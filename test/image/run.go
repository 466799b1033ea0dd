package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// run runs a go command with this machine's Go, or with the version of the stage's image if that
// differs. An absolute path of the output is a path in the stage's file system.
func (s *stage) run(ctx context.Context, c *instructions.RunCommand) error {
	if s.scratch || len(c.FlagsUsed) > 0 || !c.PrependShell || len(c.Files) > 0 || len(c.CmdLine) != 1 {
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

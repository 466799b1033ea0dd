package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// TestStackSurvivesTheLossOfEachComponent kills each component. Later tests inject faults by these
// names, so each must come back, and the stack must work afterwards.
func TestStackSurvivesTheLossOfEachComponent(t *testing.T) {
	ctx := t.Context()
	options := stack.Options{Name: "faults", Crossplane: stack.V2, Plugin: true}
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(options)...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	c, err := stack.NewCluster(ctx, host, options)
	must(t, err)
	for _, name := range []string{stack.S3, stack.Cloud} {
		must(t, host.Kill(name))
		must(t, host.Start(ctx, name))
	}
	components := []string{
		stack.Etcd, stack.APIServer, stack.ControllerManager, stack.Crossplane, stack.Function, stack.CloudProvider, stack.Velero,
	}
	for _, name := range components {
		must(t, c.Kill(name))
		if name == stack.Etcd { // The API server does not outlive its storage for long.
			must(t, c.Kill(stack.APIServer))
			must(t, c.Start(ctx, name))
			must(t, c.Start(ctx, stack.APIServer))

			continue
		}
		must(t, c.Start(ctx, name))
	}
	p := drill.Platform{Crossplane: stack.V2, Namespace: "faults"}
	must(t, p.Install(ctx, c))
	must(t, p.Compose(ctx, c))
	must(t, c.RestartVelero(ctx))
	must(t, p.Make(ctx, c, 1))
	must(t, p.AwaitReady(ctx, c, 1))
	must(t, p.Backup(ctx, c, "faults"))
}

// TestStackIsGoneWithItsOwner runs two clusters on one S3 server and one cloud, and kills their
// owner without warning. All processes that it started, directly or not, must end.
func TestStackIsGoneWithItsOwner(t *testing.T) {
	ctx := t.Context()
	root, err := build.Root()
	must(t, err)
	program := filepath.Join(t.TempDir(), "stack")
	compile := exec.CommandContext(ctx, "go", "build", "-o", program, "./stack/cmd/stack")
	compile.Dir = filepath.Join(root, "test")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("cannot build the stack command: %v\n%s", err, out)
	}
	const name = "killed-by-test"
	t.Cleanup(func() { _ = exec.Command(program, "down", "--name", name).Run() }) //nolint:noctx // The test's context has ended by then.
	owner := exec.CommandContext(ctx, program, "up", "--foreground", "--name", name, "--clusters", "source,target")
	owner.Dir, owner.Stderr = root, os.Stderr
	var out bytes.Buffer
	owner.Stdout = &out
	must(t, owner.Start())
	ended := make(chan error, 1)
	go func() { ended <- owner.Wait() }()

	mark := filepath.Join("run", name, "host")
	before := 0
	must(t, stack.Wait(ctx, 2*time.Minute, "the stack to be up", func(context.Context) error {
		select {
		case err := <-ended:
			return stack.Never(fmt.Errorf("it ended: %w", err))
		default:
		}
		before = len(processes(t, mark))
		if before < 2+2*7 { // S3 server and cloud; twice etcd, API server, controller manager, Crossplane, function, provider, Velero.
			return fmt.Errorf("it has %d processes", before)
		}

		return nil
	}))
	must(t, owner.Process.Kill())
	must(t, stack.Wait(ctx, time.Minute, "its processes to be gone", func(context.Context) error {
		if left := processes(t, mark); len(left) > 0 {
			return fmt.Errorf("%d of %d are left: %v", len(left), before, left)
		}

		return nil
	}))
}

// processes returns the process IDs of those that have the mark in their command line or
// environment. A killed process that is not reaped yet has neither.
func processes(t *testing.T, mark string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	if len(dirs) == 0 {
		t.Skip("there is no /proc here to look for processes in")
	}
	var found []string
	for _, dir := range dirs {
		for _, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err == nil && bytes.Contains(b, []byte(mark)) {
				found = append(found, filepath.Base(dir))

				break
			}
		}
	}

	return found
}

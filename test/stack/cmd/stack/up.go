package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// foreground owns a stack until a signal ends it.
func foreground(ctx context.Context, dir string, s settings) error {
	l, err := own(ctx, dir)
	if err != nil {
		return fmt.Errorf("cannot start stack %s: %w", s.name, err)
	}
	defer l.Close() //nolint:errcheck // The process ends next.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	requests := accept(l, stop)
	if err := errors.Join(os.RemoveAll(runDir(dir)), os.RemoveAll(summaryFile(dir))); err != nil {
		return fmt.Errorf("cannot remove what an earlier stack %s left: %w", s.name, err)
	}
	options, err := s.options()
	if err != nil {
		return err
	}
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(options...)...)
	if err != nil {
		return err
	}
	host, err := stack.NewHost(ctx, set, runDir(dir), os.Stderr)
	if err != nil {
		return err
	}
	err = serve(ctx, dir, host, s.name, options, requests)

	return errors.Join(err, host.Close(), os.RemoveAll(runDir(dir)), os.RemoveAll(summaryFile(dir)))
}

// serve starts the clusters one after the other, writes the summary of how to use them, starts
// processes again that have ended, and exchanges the plugin.
func serve(ctx context.Context, dir string, host *stack.Host, name string, options []stack.Options, requests <-chan request) error {
	var clusters []*stack.Cluster
	for _, o := range options {
		c, err := stack.NewCluster(ctx, host, o)
		if err != nil {
			return err
		}
		clusters = append(clusters, c)
	}
	text, err := summary(dir, host, name, clusters)
	if err != nil {
		return err
	}
	fmt.Print(text)
	// Another process waits for the file, so it must appear whole.
	part := summaryFile(dir) + ".part"
	if err := errors.Join(os.WriteFile(part, []byte(text), 0o644), os.Rename(part, summaryFile(dir))); err != nil {
		return fmt.Errorf("cannot write how to use the stack: %w", err)
	}

	use := func(path string) error {
		for _, c := range clusters {
			if err := c.UsePluginFile(ctx, path); err != nil {
				return err
			}
		}

		return nil
	}
	look := time.NewTicker(reviveEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-requests:
			r.do(use)
		case <-look.C:
			revive(ctx, &host.Components)
			for _, c := range clusters {
				revive(ctx, &c.Components)
			}
		}
	}
}

// reviveEvery is the time between two looks whether a component has ended.
const reviveEvery = 5 * time.Second

// revive starts components again that have ended, as a kubelet would: who kills Velero, or gives it a
// plugin with which it does not start, keeps the clusters, the cloud and the logs.
func revive(ctx context.Context, c *stack.Components) {
	if ended := c.Err(); ended != nil {
		names, err := c.Revive(ctx)
		_, _ = fmt.Fprintln(os.Stderr, errors.Join(ended, err), "\nstarted again:", names)
	}
}

// summary returns how to use a stack.
func summary(dir string, host *stack.Host, name string, clusters []*stack.Cluster) (string, error) {
	var b strings.Builder
	for _, c := range clusters {
		log, err := c.Log(stack.Velero)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "cluster %s\n  export KUBECONFIG=%s\n  %s\n  log of Velero: %s\n", c.Name(), c.Kubeconfig(), strings.Join(c.VeleroCommand(), " "), log)
	}
	fmt.Fprintf(&b, `cloud   %s
journal curl '%[1]s/v1/journal?op=create,update,delete'
plugin  make stack-plugin ARGS="--name %s" builds it, gives it to Velero and restarts that; Velero takes one file of it only
logs    %s; what has ended and was started again: %s
`, host.CloudURL(), name, host.Dir(), outputFile(dir))

	return b.String(), nil
}

// background runs the same command as another process, in the foreground of a new session, and
// waits until the stack is ready.
func background(ctx context.Context, dir string, args []string) error {
	if conn, err := dial(ctx, dir); err == nil {
		return errors.Join(errors.New("cannot start the stack: it is running; end it with \"stack down\""), conn.Close())
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	output, err := os.Create(outputFile(dir))
	if err != nil {
		return fmt.Errorf("cannot make the stack's log: %w", err)
	}
	defer output.Close() //nolint:errcheck // The process has its own descriptor.
	if err := os.RemoveAll(summaryFile(dir)); err != nil {
		return fmt.Errorf("cannot remove what an earlier stack left: %w", err)
	}
	cmd := exec.Command(self, append(args, "--foreground")...) //nolint:noctx // It is this program, and outlives the context.
	cmd.Stderr, cmd.SysProcAttr = output, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the stack's process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	return follow(ctx, dir, ended, func() error { return cmd.Process.Signal(syscall.SIGTERM) })
}

// follow shows the progress of the stack's process until that has written the summary.
func follow(ctx context.Context, dir string, ended <-chan error, stop func() error) error {
	output, err := os.Open(outputFile(dir))
	if err != nil {
		return fmt.Errorf("cannot read the stack's log: %w", err)
	}
	defer output.Close() //nolint:errcheck // It was only read.
	show := func() { _, _ = io.Copy(os.Stderr, output) }

	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			err := stop()
			<-ended //nolint:errcheck // stop has ended it.
			show()

			return errors.Join(ctx.Err(), err)
		case err := <-ended:
			show()

			return errors.Join(errors.New("cannot start the stack: its process ended"), err)
		case <-look.C:
			show()
			text, err := os.ReadFile(summaryFile(dir))
			if err == nil {
				_, err = os.Stdout.Write(text)

				return err
			}
		}
	}
}

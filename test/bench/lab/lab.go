// Package lab measures the plugin in a real cluster on this machine with Velero's default settings.
// It restores backups of any size, which it makes from a small one.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/copies"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const (
	// empty is the saved state with the platform and no instances.
	empty = "empty"
	// seed is the small backup.
	seed = "seed"

	namespace = "bench"
	patience  = 5 * time.Minute
)

// Options returns the options of a Lab's cluster, with or without upjet's provider. Crossplane and
// the providers poll seldom, so that polls don't disturb a measurement.
func Options(upjet bool) stack.Options {
	return stack.Options{
		Name: "bench", Crossplane: stack.V2, Plugin: true, UpjetProvider: upjet,
		CrossplaneArgs: []string{"--poll-interval=30m"}, ProviderArgs: []string{"--poll", "30m"}, UpjetArgs: []string{"--poll", "30m"},
	}
}

// A Lab has one cluster, which it resets before each measurement.
type Lab struct {
	set     build.Set
	host    *stack.Host
	cluster *stack.Cluster
	cloud   *api.Client
	watch   *meter.Watch
	out     io.Writer
	began   time.Time

	dir      string // For tar files.
	composed int
	observe  string // How MRs of upjet's are restored; "" if XRs compose others.
	template *copies.Template
	backups  map[int]string // The uploaded backups, by the number of XRs.
	runs     int
	cloudHad map[string]bool
	held     *running // The restore that Held has left, of heldTrees trees.

	heldTrees int
	fast      bool // Velero may make FastRate requests a second.
	live      int  // The number of XRs that are adopted and not changed since; 0 if there are others.
}

// Start starts a Lab in which an XR composes that many MRs, and writes its progress to out. If
// observe is a value of the setting observe-first, the MRs are upjet's and are restored with that
// setting. The context is for the start only.
func Start(ctx context.Context, set build.Set, composed int, observe string, out io.Writer) (l *Lab, err error) {
	l = &Lab{set: set, out: out, began: time.Now(), composed: composed, observe: observe, backups: map[int]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.watch, err = meter.Follow(set["plugin"].Path); err != nil {
		return nil, err
	}
	if l.host, err = stack.NewHost(ctx, set, "", out); err != nil {
		return nil, err
	}
	l.dir, l.cloud = filepath.Join(l.host.Dir(), "tarballs"), api.NewClient(l.host.CloudURL())
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the directory of the backups: %w", err)
	}
	if l.cluster, err = stack.NewCluster(ctx, l.host, Options(l.isUpjets())); err != nil {
		return nil, err
	}

	if err := l.plant(ctx); err != nil {
		return nil, err
	}

	return l, nil
}

// Close destroys the Lab.
func (l *Lab) Close() error {
	if l.watch != nil {
		l.watch.Close()
	}
	if l.host == nil {
		return nil
	}

	return l.host.Close()
}

// plant makes the small backup, and saves the state before it.
func (l *Lab) plant(ctx context.Context) error {
	if err := l.install(ctx); err != nil {
		return err
	}
	if err := l.cluster.Save(ctx, empty); err != nil {
		return err
	}
	if err := l.grow(ctx); err != nil {
		return err
	}
	if _, err := l.cluster.Velero(ctx, "backup", "create", seed, "--include-namespaces", namespace, "--wait"); err != nil {
		return err
	}
	f, err := os.Open(l.host.BackupFile(seed))
	if err != nil {
		return fmt.Errorf("cannot open the backup of one tree: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	if l.template, err = copies.Read(f); err != nil {
		return err
	}
	if want := l.composed + 1; l.template.Size() != want {
		return fmt.Errorf("cannot copy a tree of %d objects: it should have %d", l.template.Size(), want)
	}
	l.backups[1] = seed

	return nil
}

// Tarball writes a backup with that many trees, and returns its path. The trees' cloud resources do
// not exist: it is for callers that only read the file.
func (l *Lab) Tarball(trees int) (string, error) {
	path := filepath.Join(l.dir, fmt.Sprintf("%d.tar.gz", trees))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}

	return path, l.tarball(path, trees, func(i int, of copies.External) string { return fmt.Sprintf("%s-%06d", of.Name, i) })
}

// tarball writes a backup with that many trees to a path.
func (l *Lab) tarball(path string, trees int, external func(int, copies.External) string) error {
	l.Say("making a backup of %d trees, %d objects", trees, l.objects(trees))
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("cannot make a backup of %d trees: %w", trees, err)
	}
	if err := errors.Join(l.template.Write(f, trees, external), f.Close()); err != nil {
		return fmt.Errorf("cannot make a backup of %d trees: %w", trees, err)
	}

	return os.Rename(part, path)
}

// objects returns the number of objects in a backup of that many trees.
func (l *Lab) objects(trees int) int { return l.template.Shared() + trees*l.template.Size() }

// backup returns the name of a backup with that many trees, which Velero knows after its next
// start. The trees' cloud resources exist.
func (l *Lab) backup(ctx context.Context, trees int) (string, error) {
	if name, ok := l.backups[trees]; ok {
		return name, nil
	}
	names, err := l.stock(ctx, trees)
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("trees-%d", trees)
	path := filepath.Join(l.dir, name+".tar.gz")
	if err := l.tarball(path, trees, func(i int, of copies.External) string { return names[external{i, of}] }); err != nil {
		return "", err
	}
	if err := l.host.Upload(ctx, name, seed, l.objects(trees), path); err != nil {
		return "", err
	}
	l.backups[trees] = name

	return name, os.Remove(path)
}

// controllers returns the components that reconcile restored objects.
func (l *Lab) controllers() []string {
	names := []string{stack.Function, stack.Crossplane, stack.CloudProvider}
	if l.isUpjets() {
		names = append(names, stack.UpjetProvider)
	}

	return names
}

// isUpjets reports whether XRs compose MRs of the upjet provider.
func (l *Lab) isUpjets() bool { return l.observe != "" }

// reset puts the cluster back into the state before any restore, with or without the plugin, and
// starts the named components.
func (l *Lab) reset(ctx context.Context, plugin bool, with ...string) error {
	l.live = 0
	if l.held != nil {
		l.held.record.End()
		l.held, l.heldTrees = nil, 0
	}
	if err := l.cluster.LinkPlugin(plugin); err != nil {
		return err
	}

	return l.cluster.Rewind(ctx, empty, with...)
}

// stop stops Crossplane and the provider.
func (l *Lab) stop() error {
	var errs []error
	for _, name := range l.controllers() {
		errs = append(errs, l.cluster.Stop(name))
	}

	return errors.Join(errs...)
}

func (l *Lab) start(ctx context.Context) error {
	for _, name := range l.controllers() {
		if err := l.cluster.Start(ctx, name); err != nil {
			return err
		}
	}

	return l.scale(ctx, 1)
}

// Say writes a line of progress.
func (l *Lab) Say(format string, args ...any) {
	_, _ = fmt.Fprintf(l.out, "%7.1fs  %s\n", time.Since(l.began).Seconds(), fmt.Sprintf(format, args...))
}

// unique returns a name that no other Backup or Restore has. The bucket outlives the cluster's
// objects, so counting those is not enough.
func (l *Lab) unique(what string) string {
	l.runs++

	return fmt.Sprintf("%s-%d", what, l.runs)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A round is one loss and restore of everything.
type round struct {
	title    string
	plugin   bool
	platform drill.Platform
	count    int

	outcome drill.Outcome
	seconds float64
	phase   string
}

type demo struct {
	out     io.Writer
	began   time.Time
	options stack.Options
	host    *stack.Host
	cloud   *api.Client
}

// run runs both rounds and prints their table. It fails if the plugin's round broke a promise.
func run(ctx context.Context, out io.Writer, options stack.Options, native bool, count int) (err error) {
	d := &demo{out: out, began: time.Now(), options: options}
	rounds := []*round{
		{title: "Velero alone", platform: drill.Platform{Crossplane: options.Crossplane, Native: native, Namespace: "alone"}, count: count},
		{title: "with the plugin", plugin: true, platform: drill.Platform{Crossplane: options.Crossplane, Native: native, Namespace: "safe"}, count: count},
	}
	all := options
	all.Plugin = true
	set, err := build.Ensure(ctx, out, stack.Programs(all)...)
	if err != nil {
		return err
	}
	if d.host, err = stack.NewHost(ctx, set, "", io.Discard); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.host.Close()) }()
	d.cloud = api.NewClient(d.host.CloudURL())
	for _, r := range rounds {
		if err := d.round(ctx, r); err != nil {
			return fmt.Errorf("cannot finish the round %q: %w", r.title, err)
		}
	}
	d.table(rounds)
	safe := rounds[1]
	if !safe.outcome.Sound() || safe.phase != "Completed" {
		return errors.New("a promise is broken: see the plugin's column")
	}
	d.say("The plugin kept its promises: nothing was created, deleted, duplicated or orphaned, and nothing is held.")

	return nil
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "%8s  %s\n", time.Since(d.began).Round(time.Second), fmt.Sprintf(format, args...))
}

func (d *demo) round(ctx context.Context, r *round) error {
	_, _ = fmt.Fprintf(d.out, "\n== %s ==\n", r.title)
	source, err := d.cluster(ctx, r, "source")
	if err != nil {
		return err
	}
	d.say("making %d environments, each a bucket, a network and a database in the cloud", r.count)
	if err := r.platform.Make(ctx, source, r.count); err != nil {
		return err
	}
	if err := r.platform.AwaitReady(ctx, source, r.count); err != nil {
		return err
	}
	before, err := r.platform.Record(ctx, source, d.cloud)
	if err != nil {
		return err
	}
	d.say("all are Ready: the cloud has %d resources for them", len(before.External))
	if err := r.platform.Backup(ctx, source, r.platform.Namespace); err != nil {
		return err
	}
	d.say("backed up with: velero backup create %s --include-namespaces %s", r.platform.Namespace, r.platform.Namespace)
	if err := source.Destroy(); err != nil {
		return err
	}
	d.say("the cluster is lost, etcd and all; the cloud and the backup are left")

	target, err := d.cluster(ctx, r, "target")
	if err != nil {
		return err
	}
	if err := d.restore(ctx, r, target, before); err != nil {
		return err
	}

	return target.Destroy()
}

func (d *demo) cluster(ctx context.Context, r *round, role string) (*stack.Cluster, error) {
	d.say("starting the %s cluster: Kubernetes, Crossplane, a provider, Velero", role)
	options := d.options
	options.Name, options.Plugin = r.platform.Namespace+"-"+role, r.plugin
	c, err := stack.NewCluster(ctx, d.host, options)
	if err != nil {
		return nil, err
	}
	if err := r.platform.Install(ctx, c); err != nil {
		return nil, err
	}
	if err := r.platform.Compose(ctx, c); err != nil {
		return nil, err
	}
	if err := c.RestartVelero(ctx); err != nil {
		return nil, err
	}
	d.say("it is up, with the platform's XRD and Composition")

	return c, nil
}

func (d *demo) restore(ctx context.Context, r *round, target *stack.Cluster, before *drill.Record) error {
	name := r.platform.Namespace
	began := time.Now()
	if err := r.platform.StartRestore(ctx, target, name, name); err != nil {
		return err
	}
	d.say("restoring with: velero restore create --from-backup %s", name)
	stop := d.follow(ctx, r, target)
	restore, err := drill.AwaitRestore(ctx, target, name)
	if err == nil {
		err = r.platform.AwaitReady(ctx, target, r.count)
	}
	r.seconds = time.Since(began).Seconds()
	stop()
	if err != nil {
		return err
	}
	r.phase = drill.Phase(restore)
	d.say("Velero says %s; all environments are Ready; seeing whether that lasts", r.phase)
	seen, err := r.platform.Record(ctx, target, d.cloud)
	if err != nil {
		return err
	}
	if err := r.platform.AwaitReads(ctx, target, d.cloud, seen, seen.Seq); err != nil {
		return err
	}
	r.outcome, err = r.platform.Compare(ctx, target, d.cloud, before)

	return err
}

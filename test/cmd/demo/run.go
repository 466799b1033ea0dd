package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
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

	outcome *drill.Recovery
}

type demo struct {
	out     io.Writer
	began   time.Time
	options stack.Options
	host    *stack.Host
	cloud   *api.Client
}

// run runs both rounds and prints their table. It fails if the plugin's round lost or duplicated
// anything.
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
	if safe := rounds[1].outcome; !safe.Sound() {
		return errors.New(strings.Join(append([]string{"a promise is broken: see the plugin's column"}, safe.Wrong...), "; "))
	}
	d.say("The plugin kept its promises: nothing was created, deleted, duplicated or orphaned, and nothing is held.")

	return nil
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, "%8s  %s\n", time.Since(d.began).Round(time.Second), fmt.Sprintf(format, args...))
}

func (d *demo) round(ctx context.Context, r *round) (err error) {
	_, _ = fmt.Fprintf(d.out, "\n== %s ==\n", r.title)
	options := d.options
	options.Plugin = r.plugin
	loss := drill.Loss{
		Host: d.host, Cloud: d.cloud, Options: options, Platform: r.platform, Count: r.count, Say: d.say,
		Follow: func(ctx context.Context, target *stack.Cluster) func() { return d.follow(ctx, r, target) },
	}
	r.outcome, err = loss.Recover(ctx)

	return err
}

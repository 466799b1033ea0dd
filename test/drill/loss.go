package drill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// Say reports progress.
type Say func(format string, args ...any)

// OnHost does something on a new host that has the programs for clusters with the options. It builds
// missing programs.
func OnHost(ctx context.Context, out io.Writer, do func(host *stack.Host, say Say) error, options ...stack.Options) (err error) {
	set, err := build.Ensure(ctx, out, stack.Programs(options...)...)
	if err != nil {
		return err
	}
	host, err := stack.NewHost(ctx, set, "", io.Discard)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	began := time.Now()

	return do(host, func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%8s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	})
}

// A Loss is one loss of a cluster with its etcd, and the restore of one of its namespaces into
// another cluster.
type Loss struct {
	Host  *stack.Host
	Cloud *api.Client
	// Options of both clusters, without their names.
	Options  stack.Options
	Platform Platform
	// Count is how many instances there are.
	Count int
	Say   Say
	// Follow is called when the restore has begun, and the function that it returns when all is
	// Ready. It may be nil.
	Follow func(ctx context.Context, target *stack.Cluster) func()
}

// A Recovery is the result of a Loss.
type Recovery struct {
	Outcome

	// Phase of the Restore.
	Phase string
	// Seconds from the start of the restore until all was Ready.
	Seconds float64
	// Wrong has the other differences: owners that don't exist, and claims and XRs with other
	// settings.
	Wrong []string
}

// Sound reports whether all is as it was before the loss.
func (r *Recovery) Sound() bool {
	return r.Outcome.Sound() && r.Phase == "Completed" && len(r.Wrong) == 0
}

// Recover makes instances, backs them up, loses the cluster, restores them, and compares the target
// and the cloud with what there was. It fails if one of these steps fails. It removes both clusters
// in any case.
func (l *Loss) Recover(ctx context.Context) (recovery *Recovery, err error) {
	source, err := l.cluster(ctx, "source")
	if err != nil {
		return nil, err
	}
	before, wishes, err := l.backUp(ctx, source)
	if err := errors.Join(err, source.Destroy()); err != nil {
		return nil, err
	}
	l.Say("the cluster is lost, etcd and all; the cloud and the backup are left")

	target, err := l.cluster(ctx, "target")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Destroy()) }()
	if recovery, err = l.restore(ctx, target, before); err != nil {
		return nil, err
	}
	recovery.Wrong, err = l.wrong(ctx, target, wishes)

	return recovery, err
}

func (l *Loss) cluster(ctx context.Context, role string) (*stack.Cluster, error) {
	l.Say("starting the %s cluster: Kubernetes, Crossplane, a provider, Velero", role)
	options := l.Options
	options.Name = l.Platform.Namespace + "-" + role
	c, err := stack.NewCluster(ctx, l.Host, options)
	if err != nil {
		return nil, err
	}
	err = l.Platform.Install(ctx, c)
	if err == nil {
		err = l.Platform.Compose(ctx, c)
	}
	if err == nil {
		err = c.RestartVelero(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Destroy())
	}
	l.Say("it is up, with the platform's XRD and Composition")

	return c, nil
}

// backUp makes the instances, backs them up, and returns the records of them.
func (l *Loss) backUp(ctx context.Context, source *stack.Cluster) (*Record, map[string]any, error) {
	p := l.Platform
	l.Say("making %d environments, each a bucket, a network and a database in the cloud", l.Count)
	if err := p.Make(ctx, source, l.Count); err != nil {
		return nil, nil, err
	}
	if _, err := p.AwaitMade(ctx, source, l.Count); err != nil {
		return nil, nil, err
	}
	before, err := p.Record(ctx, source, l.Cloud)
	if err != nil {
		return nil, nil, err
	}
	wishes, err := p.Wishes(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	l.Say("all are Ready: the cloud has %d resources for them", len(before.External))
	if err := p.Backup(ctx, source, p.Namespace); err != nil {
		return nil, nil, err
	}
	l.Say("backed up with: velero backup create %s --include-namespaces %s", p.Namespace, p.Namespace)

	return before, wishes, nil
}

func (l *Loss) restore(ctx context.Context, target *stack.Cluster, before *Record) (*Recovery, error) {
	p, name, began := l.Platform, l.Platform.Namespace, time.Now()
	if err := p.StartRestore(ctx, target, name, name); err != nil {
		return nil, err
	}
	l.Say("restoring with: velero restore create --from-backup %s", name)
	stop := func() {}
	if l.Follow != nil {
		stop = l.Follow(ctx, target)
	}
	restore, err := AwaitRestore(ctx, target, name)
	if err == nil {
		err = p.AwaitReady(ctx, target, l.Count)
	}
	r := &Recovery{Seconds: time.Since(began).Seconds()}
	stop()
	if err != nil {
		return nil, err
	}
	r.Phase = Phase(restore)
	l.Say("Velero says %s; all environments are Ready; seeing whether that lasts", r.Phase)
	seen, err := p.Record(ctx, target, l.Cloud)
	if err != nil {
		return nil, err
	}
	if err := p.AwaitReads(ctx, target, l.Cloud, seen, seen.Seq); err != nil {
		return nil, err
	}
	r.Outcome, err = p.Compare(ctx, target, l.Cloud, before)

	return r, err
}

// wrong returns the differences in the target.
func (l *Loss) wrong(ctx context.Context, target *stack.Cluster, before map[string]any) ([]string, error) {
	wrong, err := l.Platform.DeadOwners(ctx, target)
	if err != nil {
		return nil, err
	}
	after, err := l.Platform.Wishes(ctx, target)
	if err != nil {
		return nil, err
	}

	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
		wrong = append(wrong, "claims and XRs have other settings: "+diff)
	}

	return wrong, nil
}

package compat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// patience is the timeout of a step on a busy machine.
const patience = 4 * time.Minute

// An upgrade is the run of a pair.
type upgrade struct {
	Pair

	host   *stack.Host
	cloud  *api.Client
	scenes []scene
	say    func(format string, args ...any)
}

// A scene with its state before the loss.
type scene struct {
	drill.Scene

	picture drill.Picture
	ledger  *drill.Ledger
}

// PlayPair loses a cluster of a pair's source versions and restores all scenes into one of its
// target versions. It builds missing programs.
func PlayPair(ctx context.Context, p Pair, out io.Writer) (recovery *drill.Recovery, err error) {
	return PlayScenes(ctx, p, out)
}

// PlayScenes is PlayPair with the named scenes only, or all without names.
func PlayScenes(ctx context.Context, p Pair, out io.Writer, only ...string) (recovery *drill.Recovery, err error) {
	set, err := build.Ensure(ctx, out, stack.Programs(p.options(p.From, "source"), p.options(p.To, "target"))...)
	if err != nil {
		return nil, err
	}
	host, err := stack.NewHost(ctx, set, "", io.Discard)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	began := time.Now()
	u := upgrade{Pair: p, host: host, cloud: api.NewClient(host.CloudURL()), say: func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%8s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	}}
	all, err := p.scenes()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if len(only) == 0 || slices.Contains(only, s.Name) {
			u.scenes = append(u.scenes, scene{Scene: s})
		}
	}
	if err := u.lose(ctx); err != nil {
		return nil, err
	}

	return u.recover(ctx)
}

// cluster starts a cluster with the platform of each scene.
func (u *upgrade) cluster(ctx context.Context, options stack.Options, extra string) (*stack.Cluster, error) {
	c, err := stack.NewCluster(ctx, u.host, options)
	if err != nil {
		return nil, err
	}
	for _, s := range u.scenes {
		if err := s.Install(ctx, c, extra); err != nil {
			return nil, errors.Join(err, c.Destroy())
		}
	}
	if err := c.RestartVelero(ctx); err != nil {
		return nil, errors.Join(err, c.Destroy())
	}
	u.say("the %s cluster is up, with Crossplane %s", options.Name, build.Version(string(options.Crossplane)))

	return c, nil
}

// lose makes the scenes, backs up each, and loses the cluster.
func (u *upgrade) lose(ctx context.Context) (err error) {
	c, err := u.cluster(ctx, u.options(u.From, "source"), "source.yaml")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Destroy()) }()
	for _, s := range u.scenes {
		if err := s.Make(ctx, c); err != nil {
			return err
		}
	}
	for i := range u.scenes {
		if err := u.store(ctx, c, &u.scenes[i]); err != nil {
			return err
		}
	}
	u.say("all scenes are backed up")

	return nil
}

// store waits until a scene is complete, records its state, and backs it up.
func (u *upgrade) store(ctx context.Context, c *stack.Cluster, s *scene) error {
	incomplete := s.Scene
	incomplete.Size = 0
	if err := incomplete.AwaitReady(ctx, c); err != nil {
		return err
	}
	if _, err := s.Prune(ctx, c); err != nil {
		return err
	}
	if err := s.AwaitReady(ctx, c); err != nil {
		return err
	}
	if err := s.AddDetails(ctx, c); err != nil {
		return err
	}
	var err error
	if s.picture, err = s.Picture(ctx, c); err != nil {
		return err
	}
	if s.ledger, err = s.Ledger(ctx, u.cloud); err != nil {
		return err
	}

	return s.BackUp(ctx, c)
}

// recover restores each scene and compares it with the target and the cloud.
func (u *upgrade) recover(ctx context.Context) (r *drill.Recovery, err error) {
	c, err := u.cluster(ctx, u.options(u.To, "target"), "target.yaml")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Destroy()) }()
	if u.Alone {
		return u.control(ctx, c)
	}
	began := time.Now()
	for _, s := range u.scenes {
		if err := s.StartRestore(ctx, c); err != nil {
			return nil, err
		}
	}
	r = &drill.Recovery{Phase: "Completed"}
	for _, s := range u.scenes {
		if s.Name == native && u.old() {
			if err := u.cure(ctx, c, s, r); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range u.scenes {
		if err := u.await(ctx, c, s, r); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	u.say("all scenes are Ready; seeing whether that lasts")
	journal, err := u.cloud.Journal(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, s := range u.scenes {
		if err := s.AwaitReads(ctx, c, u.cloud, journal[len(journal)-1].Seq); err != nil {
			return nil, err
		}
		if err := u.judge(ctx, c, s, r); err != nil {
			return nil, err
		}
	}

	return r, nil
}

// await waits until a scene is restored and Ready.
func (u *upgrade) await(ctx context.Context, c *stack.Cluster, s scene, r *drill.Recovery) error {
	restore, err := drill.AwaitRestore(ctx, c, s.Name)
	if err != nil {
		return err
	}
	want := "Completed"
	if s.Name == native && u.old() {
		want = "PartiallyFailed" // An object that could not be created is an error of the restore.
	}
	if phase := drill.Phase(restore); phase != want {
		r.Phase = phase
		r.Wrong = append(r.Wrong, "the restore of "+s.Name+" is "+phase+": "+drill.Problems(ctx, c, s.Name))
	}
	unprotected, err := s.Unprotected(ctx, c)
	if err != nil {
		return err
	}
	r.Wrong = append(r.Wrong, unprotected...)

	return s.AwaitReady(ctx, c)
}

// judge compares a scene with its state before the loss. Fields that another version adds or
// manages are no damage.
func (u *upgrade) judge(ctx context.Context, c *stack.Cluster, s scene, r *drill.Recovery) error {
	after, err := s.Picture(ctx, c)
	if err != nil {
		return err
	}
	r.Total += len(s.picture)
	for _, name := range slices.Sorted(maps.Keys(s.picture)) {
		was, is := s.picture[name], after[name]
		if diff := cmp.Diff(was.Owners, is.Owners, cmpopts.EquateEmpty()) + cmp.Diff(inOrder(was.Fields), inOrder(is.Fields)); diff != "" {
			r.Wrong = append(r.Wrong, name+": "+diff)
		} else {
			r.Adopted++
		}
	}
	for name := range after {
		if _, ok := s.picture[name]; !ok {
			r.Wrong = append(r.Wrong, name+" was not there before")
		}
	}

	return u.count(ctx, s, r)
}

// inOrder returns an object's fields with the resource references sorted: a pipeline orders them
// differently from v1's native composition.
func inOrder(fields any) any {
	m, _ := fields.(map[string]any)
	refs, _, _ := unstructured.NestedFieldNoCopy(m, "spec", "resourceRefs")
	if list, ok := refs.([]any); ok {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}

	return fields
}

// count counts the changes in the cloud.
func (u *upgrade) count(ctx context.Context, s scene, r *drill.Recovery) error {
	changes, err := s.Changes(ctx, u.cloud, s.ledger.Seq, s.ledger.External)
	if err != nil {
		return err
	}
	for _, e := range changes {
		if e.Op == api.Create {
			r.Creates++
		} else {
			r.Deletes++
		}
	}
	now, err := s.Ledger(ctx, u.cloud)
	if err != nil {
		return err
	}
	for id := range now.External {
		if !s.ledger.External[id] {
			r.Duplicates++
		}
	}
	for id := range s.ledger.External {
		if !now.External[id] {
			r.Wrong = append(r.Wrong, "the cloud has no "+id+" any more")
		}
	}

	return nil
}

// cure checks that natively composed trees are held, with a message that has the next step, and
// takes that step.
func (u *upgrade) cure(ctx context.Context, c *stack.Cluster, s scene, r *drill.Recovery) error {
	err := c.Wait(ctx, patience, "the word that "+s.Name+" needs a pipeline", func(ctx context.Context) error {
		details, err := c.Velero(ctx, "restore", "describe", s.Name, "--details")
		if err != nil {
			return err
		}
		if !strings.Contains(details, "convert pipeline-composition") {
			return errors.New(details)
		}

		return nil
	})
	if err != nil {
		return err
	}
	changes, err := s.Changes(ctx, u.cloud, s.ledger.Seq, s.ledger.External)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		r.Wrong = append(r.Wrong, fmt.Sprintf("while %s was held: %v", s.Name, changes))
	}
	u.say("natively composed trees are held; converting their Compositions")

	return s.Cure(ctx, c)
}

package compat

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
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
	Case

	host   *stack.Host
	cloud  *api.Client
	scenes []scene
	say    drill.Say
}

// A scene with its state before the loss.
type scene struct {
	drill.Scene

	picture drill.Picture
	ledger  *drill.Ledger
}

// PlayScenes loses a cluster of a pair's source versions and restores the named scenes, or all
// without names, into one of its target versions. It builds missing programs.
func PlayScenes(ctx context.Context, p Case, out io.Writer, only ...string) (*drill.Recovery, error) {
	all, err := p.scenes()
	if err != nil {
		return nil, err
	}

	var recovery *drill.Recovery
	err = drill.OnHost(ctx, out, func(host *stack.Host, say drill.Say) (err error) {
		u := upgrade{Case: p, host: host, cloud: api.NewClient(host.CloudURL()), say: say}
		for _, s := range all {
			if len(only) == 0 || slices.Contains(only, s.Name) {
				u.scenes = append(u.scenes, scene{Scene: s})
			}
		}
		if err := u.lose(ctx); err != nil {
			return err
		}
		recovery, err = u.recover(ctx)

		return err
	}, p.options(p.From, "source"), p.options(p.To, "target"))

	return recovery, err
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
	began := time.Now()
	for _, s := range u.scenes {
		if err := s.StartRestore(ctx, c); err != nil {
			return nil, err
		}
	}
	r = &drill.Recovery{Phase: "Completed"}
	for _, s := range u.scenes {
		if s.Name == native && u.old() && !u.Alone {
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
	last, err := drill.LastEntry(ctx, u.cloud)
	if err != nil {
		return nil, err
	}
	for _, s := range u.scenes {
		err := u.patiently(ctx, func(ctx context.Context) error { return s.AwaitReads(ctx, c, u.cloud, last) })
		if err := errors.Join(err, u.judge(ctx, c, s, r)); err != nil {
			return nil, err
		}
	}
	if u.Alone {
		r.Wrong = nil // It would list every object that is not adopted.
	}

	return r, nil
}

// tolerance is how long a control waits for an object that may never be Ready.
const tolerance = time.Minute

// patiently waits for an object's state. In a control, where objects that are missing or never
// Ready are part of the damage, it waits for a while only.
func (u *upgrade) patiently(ctx context.Context, do func(ctx context.Context) error) error {
	if !u.Alone {
		return do(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, tolerance)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		u.say("went on without: %v", err)
	}

	return ctx.Err()
}

// await waits until a scene is restored and Ready.
func (u *upgrade) await(ctx context.Context, c *stack.Cluster, s scene, r *drill.Recovery) error {
	restore, err := drill.AwaitRestore(ctx, c, s.Name)
	if err != nil {
		return err
	}
	if u.Alone {
		u.say("the restore of %s is %s", s.Name, drill.Phase(restore))
		if s.Name == native && u.old() {
			if err := s.Cure(ctx, c); err != nil {
				return err
			}
		}
		s.Size = 0

		return u.patiently(ctx, func(ctx context.Context) error { return s.AwaitReady(ctx, c) })
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

// native is the scene whose Compositions only Crossplane v1 can run.
const native = "native"

// cases begins the folders of scenes that are cases, from the folder of a version's scenes.
const cases = "../../../cases/"

// scenes returns the scenes for a pair: those of the source's version.
func (c Case) scenes() ([]drill.Scene, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	version, dir, scenes := stack.V2, "v2", []drill.Scene{
		{Name: "nested", Dir: cases + "nested", Count: 4, Size: 44},
		{Name: "legacy", Dir: cases + "legacy-xrd", Count: 4, Size: 28},
		{Name: "usages", Dir: cases + "usages", Count: 2, Size: 12},
		{Name: "composed", Dir: cases + "composed-usages", Count: 2, Size: 8},
		{Name: "clusterusages", Dir: cases + "cluster-usages", Count: 2, Size: 10, BackupArgs: selected("clusterusages")},
		{Name: "config", Dir: cases + "configs", Count: 2, Size: 6, BackupArgs: selected("config")},
	}
	if !isV2(c.From.Crossplane) {
		version, dir, scenes = stack.V1, "v1.20", []drill.Scene{
			{Name: "nested", Dir: cases + "nested", Count: 4, Size: 48},
			{Name: "secrets", Dir: cases + "published-elsewhere", Count: 4, Size: 28},
			{Name: "usages", Dir: cases + "usages", Count: 2, Size: 12, BackupArgs: selected("usages")},
			{Name: "composed", Dir: cases + "composed-usages", Count: 2, Size: 10},
			{Name: "config", Dir: cases + "configs", Count: 2, Size: 6, BackupArgs: selected("config")},
			{Name: native, Count: 2, Size: 12},
		}
	}
	for i := range scenes {
		scenes[i].Crossplane = version
		// Another version of Crossplane gives the revision of the same Composition another name.
		scenes[i].Dir, scenes[i].Drift = filepath.Join(root, "test", "e2e", "testdata", dir, stdcmp.Or(scenes[i].Dir, scenes[i].Name)), true
	}

	return scenes, nil
}

// selected returns the arguments that back up one scene's cluster-scoped objects. Other scenes have
// objects of the same kinds.
func selected(scene string) []string {
	return []string{"--include-namespaces", scene, "--include-cluster-resources=true", "--selector", "scene=" + scene}
}

package compat

import (
	"context"
	"errors"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// tolerance is how long a control waits for an object that may never be Ready.
const tolerance = time.Minute

// control restores each scene with Velero alone and counts the damage. Objects that are missing or
// never Ready are part of it.
func (u *upgrade) control(ctx context.Context, c *stack.Cluster) (*drill.Recovery, error) {
	began := time.Now()
	for _, s := range u.scenes {
		if err := s.StartRestore(ctx, c); err != nil {
			return nil, err
		}
	}
	r := &drill.Recovery{}
	for _, s := range u.scenes {
		restore, err := drill.AwaitRestore(ctx, c, s.Name)
		if err != nil {
			return nil, err
		}
		u.say("the restore of %s is %s", s.Name, drill.Phase(restore))
		if s.Name == native && u.old() {
			if err := s.Cure(ctx, c); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range u.scenes {
		s.Size = 0
		if err := u.tolerate(ctx, func(ctx context.Context) error { return s.AwaitReady(ctx, c) }); err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(began).Seconds()
	journal, err := u.cloud.Journal(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, s := range u.scenes {
		err := u.tolerate(ctx, func(ctx context.Context) error { return s.AwaitReads(ctx, c, u.cloud, journal[len(journal)-1].Seq) })
		if err := errors.Join(err, u.judge(ctx, c, s, r)); err != nil {
			return nil, err
		}
	}
	r.Wrong = nil // It would list every object that is not adopted.

	return r, nil
}

// tolerate runs a function for a while, and logs its error. It fails only if ctx is done.
func (u *upgrade) tolerate(ctx context.Context, do func(ctx context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, tolerance)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		u.say("went on without: %v", err)
	}

	return ctx.Err()
}

package backupitem

import (
	"context"
	"sync"
)

// A KeyMaker makes the key that signs the marks of holds, unless there is one.
type KeyMaker interface {
	MakeMarkKey(ctx context.Context, namespace string) error
}

// WithMarkKey makes the action have the key made once in a backup, so that the command hold can
// sign with it and needs no right to create a Secret. A backup does not depend on the key.
func (t *Tree) WithMarkKey(m KeyMaker) *Tree {
	var once sync.Once
	t.makeKey = func(ctx context.Context, velero string) {
		once.Do(func() {
			if err := m.MakeMarkKey(ctx, velero); err != nil {
				t.log.WithError(err).Info("The command hold needs the right to make the key that signs the marks of holds, or another backup that makes it")
			}
		})
	}

	return t
}

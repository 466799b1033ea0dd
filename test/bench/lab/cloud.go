package lab

import (
	"context"
)

// count takes down what the cloud has, with what a backup of that many trees needs there.
func (l *Lab) count(ctx context.Context, trees int) (err error) {
	if _, err = l.backup(ctx, trees); err != nil {
		return err
	}
	l.cloudHad, err = l.inCloud(ctx)

	return err
}

// created returns how many resources the cloud has that it did not have when they were counted.
func (l *Lab) created(ctx context.Context) (int, error) {
	now, err := l.inCloud(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for id := range now {
		if !l.cloudHad[id] {
			n++
		}
	}

	return n, nil
}

func (l *Lab) inCloud(ctx context.Context) (map[string]bool, error) {
	resources, err := l.cloud.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for _, r := range resources {
		ids[string(r.Kind)+" "+r.ID] = true
	}

	return ids, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// A part is the Host, or a cluster.
type part interface {
	// Err returns an error, with the end of the log, for every component that has ended.
	Err() error
	// Revive starts these again, and returns their names.
	Revive(ctx context.Context) ([]string, error)
}

// reviveAgain is the time until the next attempt after a component did not start.
const reviveAgain = 10 * time.Second

// A keeper starts components again that have ended, as a kubelet would: who kills Velero, or gives
// it a plugin with which it does not start, keeps the clusters, the cloud and the logs.
type keeper struct {
	out io.Writer
	// next is the earliest time of the next attempt.
	next time.Time
}

// look starts what has ended in the parts.
func (k *keeper) look(ctx context.Context, now time.Time, parts ...part) {
	if now.Before(k.next) {
		return
	}
	for _, p := range parts {
		ended := p.Err()
		if ended == nil {
			continue
		}
		_, _ = fmt.Fprintln(k.out, ended) // It only informs.
		names, err := p.Revive(ctx)
		if err != nil {
			k.next = now.Add(reviveAgain)
			_, _ = fmt.Fprintf(k.out, "trying again in %s: %v\n", reviveAgain, err)

			continue
		}
		_, _ = fmt.Fprintf(k.out, "started again: %v\n", names)
	}
}

package stack

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	pollInterval = 75 * time.Millisecond

	// With more processes than cores an API server sometimes answers late. A deadline ends a wait
	// that can't succeed; it does not measure speed.
	readyTimeout = 2 * time.Minute
)

// Wait calls a condition until it returns nil. When the time is up, the error has the condition's
// last error. Wait ends at once if the condition returns an error made by Never.
func Wait(ctx context.Context, timeout time.Duration, what string, condition func(context.Context) error) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()

	last := errors.New("the condition was not looked at")
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if never := (neverError{}); errors.As(err, &never) {
			return fmt.Errorf("cannot get %s: %w", what, never.error)
		}
		if ctx.Err() == nil { // A cancelled call reports no state.
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot get %s in %s: %w", what, time.Since(began).Round(time.Second), last)
		case <-tick.C:
		}
	}
}

// Never marks an error of a condition that can't become true any more.
func Never(err error) error { return neverError{err} }

type neverError struct{ error }

func (e neverError) Unwrap() error { return e.error }

// parallel runs functions at the same time and returns their errors.
func parallel(fns ...func() error) error {
	errs := make(chan error, len(fns))
	for _, fn := range fns {
		go func() { errs <- fn() }()
	}
	var all []error
	for range fns {
		all = append(all, <-errs)
	}

	return errors.Join(all...)
}

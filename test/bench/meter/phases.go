package meter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// The phases of Velero's objects that this package uses.
const (
	InProgress = "InProgress"
	Waiting    = "WaitingForPluginOperations"
)

// A Phase is a phase of a Backup or Restore with the time at which it began. Velero's own times
// have seconds only.
type Phase struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Phases are the phases of one object, in order.
type Phases []Phase

// Begun returns when the work on the object began.
func (p Phases) Begun() (time.Time, error) {
	return p.first(func(name string) bool { return name == InProgress })
}

// Left returns when all items were done: the beginning of the phase after InProgress.
func (p Phases) Left() (time.Time, error) {
	return p.first(func(name string) bool {
		return !slices.Contains([]string{"", "New", "Queued", "ReadyToStart", InProgress}, name)
	})
}

// End returns the last phase.
func (p Phases) End() Phase {
	if len(p) == 0 {
		return Phase{}
	}

	return p[len(p)-1]
}

func (p Phases) first(is func(name string) bool) (time.Time, error) {
	for _, phase := range p {
		if is(phase.Name) {
			return phase.At, nil
		}
	}

	return time.Time{}, fmt.Errorf("cannot find the phase: there were %v", p)
}

// A Record follows one Velero object through its phases.
type Record struct {
	watch  watch.Interface
	name   string
	last   *unstructured.Unstructured // nil until the object exists.
	phases Phases
}

// Begin begins to record the phases of an object that does not exist yet. End ends that.
func Begin(ctx context.Context, c *stack.Cluster, kind, name string) (*Record, error) {
	r, err := c.Resource(ctx, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: kind}, "velero")
	if err != nil {
		return nil, err
	}
	list, err := r.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("cannot list kind %s: %w", kind, err)
	}
	one := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = "metadata.name=" + name

		return r.Watch(ctx, options)
	}
	// The API server ends a watch after half an hour or later, and a large restore may take as
	// long.
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: one})
	if err != nil {
		return nil, fmt.Errorf("cannot watch %s %s: %w", kind, name, err)
	}

	return &Record{watch: w, name: kind + " " + name}, nil
}

// End stops the record.
func (r *Record) End() { r.watch.Stop() }

// Until waits until is accepts the object's phase, and returns the object and all its phases until
// then. It fails after the timeout, or at once if the object has failed.
func (r *Record) Until(ctx context.Context, timeout time.Duration, is func(phase string) bool) (*unstructured.Unstructured, Phases, error) {
	late := time.NewTimer(timeout)
	defer late.Stop()
	for {
		if is(r.phases.End().Name) {
			return r.last, slices.Clone(r.phases), nil
		}
		if Failed(r.phases.End().Name) {
			return r.last, r.phases, fmt.Errorf("cannot go on: %s is %s: %w", r.name, r.phases.End().Name, r.reason())
		}
		select {
		case event, open := <-r.watch.ResultChan():
			if !open {
				return nil, nil, fmt.Errorf("cannot go on: the watch of %s was closed", r.name)
			}
			if err := r.take(event, time.Now()); err != nil {
				return nil, nil, err
			}
		case <-late.C:
			return nil, nil, fmt.Errorf("cannot wait for %s any longer: it was %v", r.name, r.phases)
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (r *Record) take(event watch.Event, now time.Time) error {
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type == watch.Error {
		return fmt.Errorf("cannot watch %s: %w", r.name, apierrors.FromObject(event.Object))
	}
	r.last = u
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	if phase != r.phases.End().Name {
		r.phases = append(r.phases, Phase{Name: phase, At: now})
	}

	return nil
}

func (r *Record) reason() error {
	errs := []error{errors.New("see its log")}
	for _, field := range []string{"failureReason", "validationErrors", "errors"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(r.last.Object, "status", field); found {
			errs = append(errs, fmt.Errorf("%s: %v", field, value))
		}
	}

	return errors.Join(errs...)
}

// Failed reports whether a phase means a failure, in whole or in part.
func Failed(phase string) bool { return strings.Contains(phase, "Failed") }

// Over reports whether the phase is the last one of a success.
func Over(phase string) bool { return phase == "Completed" }

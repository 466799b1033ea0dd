package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Restore is the measurement of the restore of a backup, until all items are restored.
type Restore struct {
	// Items that Velero has restored, and the Seconds from the restore's beginning to the answer to
	// the last request about an item.
	Items   int     `json:"items"`
	Seconds float64 `json:"seconds"`
	// Plugin and Velero count their requests during the items phase by kind of request.
	Plugin map[string]int `json:"plugin"`
	Velero map[string]int `json:"velero"`
	// Peak is the peak memory of the plugin's process, in bytes.
	Peak int64 `json:"peak"`
	// VeleroPeak is the peak memory of Velero's own process, which starts before the restore.
	VeleroPeak int64 `json:"veleroPeak"`
}

// Calls returns the number of requests.
func Calls(kinds map[string]int) int {
	n := 0
	for _, count := range kinds {
		n += count
	}

	return n
}

// A How is the way in which a backup is restored.
type How struct {
	// Plugin gives Velero the plugin.
	Plugin bool
	// Status restores the status of all objects.
	Status bool
	// Live runs Crossplane and the provider.
	Live bool
	// Fast lets Velero send FastRate requests a second.
	Fast bool
}

// Restore restores a backup of that many trees into a cluster without them.
func (l *Lab) Restore(ctx context.Context, trees int, how How) (*Restore, error) {
	r, run, err := l.restore(ctx, trees, how)
	if err != nil {
		return nil, err
	}
	run.record.End()

	return r, nil
}

// FastRate is the limit of requests a second for a Velero that it must not slow down. Velero's
// default is 100.
const FastRate = 1000

// limit sets Velero's limit of requests, from its next start on.
func (l *Lab) limit(fast bool) error {
	if fast == l.fast {
		return nil
	}
	l.fast = fast
	rate := 100
	if fast {
		rate = FastRate
	}

	return l.cluster.AddArgs(stack.Velero, fmt.Sprintf("--client-qps=%d", rate), fmt.Sprintf("--client-burst=%d", rate))
}

// running is a restore with all items restored.
type running struct {
	record   *meter.Record
	restored time.Time // The time of the answer to the last request about an item.
	left     time.Time // The time of the next phase.
}

func (l *Lab) restore(ctx context.Context, trees int, how How) (_ *Restore, run *running, err error) {
	backup, err := l.backup(ctx, trees)
	if err != nil {
		return nil, nil, err
	}
	if err := l.limit(how.Fast); err != nil {
		return nil, nil, err
	}
	var with []string
	if how.Live {
		with = l.controllers()
	}
	if err := l.reset(ctx, how.Plugin, with...); err != nil {
		return nil, nil, err
	}
	if !how.Live {
		if err := l.scale(ctx, 0); err != nil {
			return nil, nil, err
		}
	}
	name := l.unique("restore")
	if err := l.awaitBackup(ctx, backup); err != nil {
		return nil, nil, err
	}
	record, err := meter.Begin(ctx, l.cluster, "Restore", name)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			record.End()
			err = errors.Join(err, errors.New(drill.Problems(ctx, l.cluster, name)))
		}
	}()
	if _, err := l.cluster.Velero(ctx, append([]string{"restore", "create", name, "--from-backup", backup}, l.options(how)...)...); err != nil {
		return nil, nil, err
	}
	u, phases, err := record.Until(ctx, l.timeout(trees), func(phase string) bool { return phase == meter.Waiting || meter.Over(phase) })
	if err != nil {
		return nil, nil, err
	}

	return l.measureRestore(ctx, u, phases, record)
}

// timeout returns a time that is far longer than a restore of that many trees takes.
func (l *Lab) timeout(trees int) time.Duration {
	return patience + time.Duration(trees*(l.composed+1))*100*time.Millisecond
}

func (l *Lab) measureRestore(ctx context.Context, u *unstructured.Unstructured, phases meter.Phases, record *meter.Record) (*Restore, *running, error) {
	begun, err := phases.Begun()
	if err != nil {
		return nil, nil, err
	}
	left, err := phases.Left()
	if err != nil {
		return nil, nil, err
	}
	requests, err := l.cluster.Requests(ctx)
	if err != nil {
		return nil, nil, err
	}
	last := meter.LastItem(requests, begun, left)
	if last.IsZero() {
		return nil, nil, errors.New("cannot find the end of a restore: Velero has asked for no item")
	}
	pid, err := l.cluster.PID(stack.Velero)
	if err != nil {
		return nil, nil, err
	}
	velero, err := meter.PeakOf(pid)
	if err != nil {
		return nil, nil, err
	}
	items, _, _ := unstructured.NestedInt64(u.Object, "status", "progress", "itemsRestored")
	r := &Restore{
		Items: int(items), Seconds: last.Sub(begun).Seconds(),
		Plugin: meter.Kinds(meter.Between(requests, meter.Plugin, begun, last)), Velero: meter.Kinds(meter.Between(requests, meter.Velero, begun, last)),
		Peak: meter.Peak(meter.In(l.watch.Processes(), begun.Add(-time.Second), left)), VeleroPeak: velero,
	}
	l.Say("%d items restored in %.1f s; %d requests of Velero, %d of the plugin; %d MB, Velero itself %d MB",
		r.Items, r.Seconds, Calls(r.Velero), Calls(r.Plugin), r.Peak>>20, r.VeleroPeak>>20)

	return r, &running{record: record, restored: last, left: left}, nil
}

// options returns the options of a Restore.
func (l *Lab) options(how How) []string {
	var args []string
	if how.Status {
		args = append(args, "--status-include-resources", "*")
	}
	if how.Plugin && l.isUpjets() {
		args = append(args, "--annotations", "velero.crossplane.io/observe-first="+l.observe)
	}

	return args
}

// awaitBackup waits until Velero has found a backup in the bucket.
func (l *Lab) awaitBackup(ctx context.Context, name string) error {
	backups, err := l.cluster.Resource(ctx, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"}, "velero")
	if err != nil {
		return err
	}

	return l.cluster.Wait(ctx, patience, "Backup "+name, func(ctx context.Context) error {
		_, err := backups.Get(ctx, name, metav1.GetOptions{})

		return err
	})
}

// A Poll is the measurement of one poll of a restore's operations.
type Poll struct {
	// Seconds for which the plugin's process ran. Velero starts one for each poll and calls it for
	// each operation.
	Seconds float64 `json:"seconds"`
	// Asking is the time in seconds from the poll's first request to the answer to its last.
	Asking float64 `json:"asking"`
	// Lists is how often the most listed kind was listed.
	Lists int            `json:"lists"`
	Calls map[string]int `json:"calls"`
	Peak  int64          `json:"peak"`
}

// polls measures polls of a restore of that many trees. Nothing changes meanwhile, since Crossplane
// is stopped.
func (l *Lab) polls(ctx context.Context, trees int, run *running, n int) ([]Poll, error) {
	var ended []meter.Process
	err := l.cluster.Wait(ctx, time.Duration(n+1)*l.timeout(trees), fmt.Sprintf("%d polls", n), func(context.Context) error {
		ended = l.watch.Ended(run.left)
		if len(ended) < n {
			return fmt.Errorf("there were %d", len(ended))
		}

		return nil
	})
	if err != nil {
		return nil, err
	}
	requests, err := l.cluster.Requests(ctx)
	if err != nil {
		return nil, err
	}
	var polls []Poll
	for _, p := range ended[:n] {
		asked := meter.Between(requests, meter.Plugin, p.Began.Add(-100*time.Millisecond), p.Ended) // It was seen a little after its start.
		poll := Poll{Seconds: p.Ended.Sub(p.Began).Seconds(), Lists: meter.Lists(asked), Calls: meter.Kinds(asked), Peak: p.Peak}
		if len(asked) > 0 {
			poll.Asking = asked[len(asked)-1].Done.Sub(asked[0].At).Seconds()
		}
		polls = append(polls, poll)
		l.Say("a poll took %.2f s, of which %.2f s with the API server; %v; %d MB", poll.Seconds, poll.Asking, poll.Calls, poll.Peak>>20)
	}

	return polls, nil
}

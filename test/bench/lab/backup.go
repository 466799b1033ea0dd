package lab

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A Backup is the measurement of a backup of the namespace.
type Backup struct {
	Items int `json:"items"`
	// Seconds from the beginning until the backup is in the bucket.
	Seconds float64 `json:"seconds"`
	// Plugin and Velero count their requests during the backup.
	Plugin map[string]int `json:"plugin"`
	Velero map[string]int `json:"velero"`
	// Peak is the peak memory of the plugin's process, in bytes.
	Peak int64 `json:"peak"`
}

// Backups are two backups of the same cluster.
type Backups struct {
	Plugin *Backup `json:"plugin"`
	Alone  *Backup `json:"alone"`
}

// Backups backs up the namespace with and without the plugin, with that many trees in it and
// Crossplane stopped.
func (l *Lab) Backups(ctx context.Context, trees int, pluginFirst bool) (*Backups, error) {
	if err := l.adopted(ctx, trees); err != nil {
		return nil, err
	}
	b := &Backups{}
	for _, plugin := range []bool{pluginFirst, !pluginFirst} {
		if err := l.cluster.UsePlugin(ctx, plugin); err != nil {
			return nil, err
		}
		one, err := l.backUp(ctx, trees, plugin)
		if err != nil {
			return nil, err
		}
		if plugin {
			b.Plugin = one
		} else {
			b.Alone = one
		}
	}

	return b, nil
}

// adopted brings the cluster into the state in which that many trees are adopted and Crossplane is
// stopped.
func (l *Lab) adopted(ctx context.Context, trees int) error {
	if l.live != trees {
		l.Say("restoring %d trees to measure them", trees)
		if err := l.count(ctx, trees); err != nil {
			return err
		}
		r, run, err := l.restore(ctx, trees, How{Plugin: true, Live: true})
		if err != nil {
			return err
		}
		defer run.record.End()
		if _, _, err := run.record.Until(ctx, 2*l.timeout(trees), meter.Over); err != nil {
			return fmt.Errorf("cannot release %d items: %w", r.Items, err)
		}
		l.live = trees
	}
	if err := l.stop(); err != nil {
		return err
	}

	// The number of Events varies from run to run, and they do not concern the plugin.
	events, err := l.cluster.Resource(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, namespace)
	if err != nil {
		return err
	}
	if err := events.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("cannot delete the Events: %w", err)
	}

	return nil
}

// backUp makes one backup.
func (l *Lab) backUp(ctx context.Context, trees int, plugin bool) (*Backup, error) {
	name := l.unique("backup")
	_, place, err := l.cluster.RequestsSince(ctx, 0)
	if err != nil {
		return nil, err
	}
	record, err := meter.Begin(ctx, l.cluster, "Backup", name)
	if err != nil {
		return nil, err
	}
	defer record.End()
	if _, err := l.cluster.Velero(ctx, "backup", "create", name, "--include-namespaces", namespace); err != nil {
		return nil, err
	}
	u, phases, err := record.Until(ctx, l.timeout(trees), meter.Over)
	if err != nil {
		logs, _ := l.cluster.Velero(ctx, "backup", "logs", name)

		return nil, fmt.Errorf("%w\n%s", err, build.Tail(logs))
	}
	begun, err := phases.Begun()
	if err != nil {
		return nil, err
	}
	left, err := phases.Left()
	if err != nil {
		return nil, err
	}
	requests, _, err := l.cluster.RequestsSince(ctx, place)
	if err != nil {
		return nil, err
	}
	items, _, _ := unstructured.NestedInt64(u.Object, "status", "progress", "itemsBackedUp")
	b := &Backup{
		Items: int(items), Seconds: left.Sub(begun).Seconds(),
		Plugin: meter.Kinds(meter.Between(requests, meter.Plugin, begun, left)), Velero: meter.Kinds(meter.Between(requests, meter.Velero, begun, left)),
		Peak: meter.Peak(meter.In(l.watch.Processes(), begun.Add(-time.Second), left)),
	}
	l.Say("%d items backed up in %.2f s (plugin: %v); %d requests of Velero, %d of the plugin; %d MB",
		b.Items, b.Seconds, plugin, Calls(b.Velero), Calls(b.Plugin), b.Peak>>20)

	return b, nil
}

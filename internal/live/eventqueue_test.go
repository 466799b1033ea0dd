package live

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// versioned returns an object with a resourceVersion.
func versioned(name, version string) *unstructured.Unstructured {
	return xptest.With(xptest.XR(name), xptest.Field(version, "metadata", "resourceVersion"))
}

// A write comes back as an event, after the events of earlier versions. Only later events are
// changes.
func TestEventsAfterWrites(t *testing.T) {
	cases := map[string]struct {
		reason string
		// written is the version that was written, "" if none was.
		written string
		// batches are the resourceVersions of events that arrive together.
		batches [][]string
		want    []string
	}{
		"Foreign":   {reason: "The snapshot takes over a change of another writer.", batches: [][]string{{"7"}}, want: []string{"7"}},
		"Last":      {reason: "Only the last of many changes counts.", batches: [][]string{{"7", "8", "9"}}, want: []string{"9"}},
		"Older":     {reason: "An older version than the written one brings nothing new.", written: "8", batches: [][]string{{"6"}, {"7"}}, want: []string{"8", "8"}},
		"Own":       {reason: "The written version is known, and the later one is new.", written: "8", batches: [][]string{{"7", "8"}, {"9"}}, want: []string{"8", "9"}},
		"Unchanged": {reason: "A write without a change sends no notice, so the snapshot must not wait for one.", written: "5", batches: [][]string{{"6"}}, want: []string{"6"}},
		"Between":   {reason: "A version after the written one is new, even in the same batch.", written: "8", batches: [][]string{{"7", "8", "9"}}, want: []string{"9"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newObserver(nil, adoption.Unverified, selector, nil)
			in := &listing{collection: collection{GroupVersionKind: versioned("x", "").GroupVersionKind()}}
			o.put(versioned("x", "5"))
			if tc.written != "" {
				o.putWritten(versioned("x", tc.written))
			}
			var got []string
			for _, versions := range tc.batches {
				for _, version := range versions {
					o.events.add(watch.Modified, versioned("x", version), in)
				}
				before := o.snapshot.Get(xp.RefTo(versioned("x", ""))).GetResourceVersion()
				changed, ok := o.catchUp()
				if !ok {
					t.Error("the watch must be complete")
				}
				now := o.snapshot.Get(xp.RefTo(versioned("x", ""))).GetResourceVersion()
				if changed != (now != before) {
					t.Errorf("%s changed: %t, from %s to %s", tc.reason, changed, before, now)
				}
				got = append(got, now)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The queue has one event for each object, however often it changes.
func TestEventQueue(t *testing.T) {
	f := newEventQueue()
	labelled, all := &listing{}, &listing{}
	for _, version := range []string{"1", "2"} {
		for _, in := range []*listing{labelled, all} {
			f.add(watch.Modified, versioned("x", version), in)
		}
	}
	f.add(watch.Deleted, versioned("y", "3"), all)
	if err := f.wait(context.Background(), 0, 0); err != nil {
		t.Error(err)
	}
	notices, _, ok := f.drain()
	var got [][]string
	for at, h := range notices {
		got = append(got, append([]string{string(h.event), at.id.Name}, h.versions...))
	}
	slices.SortFunc(got, func(a, b []string) int { return strings.Compare(a[1], b[1]) })
	if diff := cmp.Diff([][]string{{"MODIFIED", "x", "1", "2"}, {"MODIFIED", "x", "1", "2"}, {"DELETED", "y", "3"}}, got); diff != "" || !ok {
		t.Errorf("complete: %t\n-want, +got:\n%s", ok, diff)
	}
	f.markIncomplete()
	if notices, _, ok := f.drain(); len(notices) > 0 || ok {
		t.Errorf("the queue repeats the notices %v, or does not report the loss", notices)
	}
}

// An object that was deleted while no watch was open must not count as existing.
func TestRelisted(t *testing.T) {
	gone, there, later := versioned("gone", "1"), versioned("there", "1"), versioned("later", "9")
	elsewhere := xptest.With(versioned("elsewhere", "1"), xptest.Without("metadata", "labels"))
	in := &listing{collection: collection{GroupVersionKind: gone.GroupVersionKind()}, options: metav1.ListOptions{LabelSelector: selector}}
	o := newObserver(nil, adoption.Unverified, selector, nil)
	for _, u := range []*unstructured.Unstructured{restored(gone), restored(there), elsewhere} {
		o.put(u)
	}
	for _, u := range []*unstructured.Unstructured{gone, there} {
		o.events.add(watch.Modified, restored(u), in)
	}
	o.events.relisted(in, map[xp.ID]bool{xp.RefTo(there).ID(): true})
	o.events.add(watch.Added, restored(later), in)
	o.events.add(watch.Modified, restored(versioned("there", "2")), in)
	if !o.isCurrent() {
		t.Error("the watch must be complete")
	}
	var got []string
	for _, u := range o.snapshot.All(gone.GroupVersionKind().GroupKind(), nil) {
		got = append(got, u.GetName()+" "+u.GetResourceVersion())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"elsewhere 1", "later 9", "there 2"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

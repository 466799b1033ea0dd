package adopter

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// withoutMessages returns Events without their messages.
func withoutMessages(told []string) []string {
	var short []string
	for _, e := range told {
		e, _, _ = strings.Cut(e, ": ")
		short = append(short, e)
	}

	return short
}

// kubectl describe of an XR or claim shows each state once, however often it is polled.
func TestAdoptWritesEvents(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, xr, _ := apiserver.RestoredTree()
		s := apiserver.NewServer(objects...)
		mr := s.Get(t, apiserver.Buckets, "", "b")
		_ = s.Tracker().Delete(apiserver.Buckets, "", "b")
		simulateCrossplane(s)
		for _, o := range [][]xptest.Option{nil, {xptest.Synced("False", "ReconcileError", "request 1 was refused")}, {xptest.Synced("False", "ReconcileError", "request 2 was refused")}, {}} {
			if o != nil {
				s.Put(apiserver.Buckets, xptest.With(mr, o...))
			}
			for range 2 {
				adopt(t, s, xr)
			}
		}
		want := []string{
			"Normal Held o", "Normal Held c", "Normal Held x", "Normal Released c", "Normal Waiting o", "Normal Waiting x",
			"Normal Waiting o", "Normal Waiting x", "Normal Released o", "Normal Released x",
		}
		xptest.Same(t, want, withoutMessages(s.WrittenEvents()), "Events must follow the causes of waiting, not the messages of a provider:\n"+strings.Join(s.WrittenEvents(), "\n"))
	})
}

// If there is no time for all notices, warnings come first, and no notice about a held object is
// written twice.
func TestAdoptReportsWithinTimeout(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		const xrs, bad = 100, 3
		s := apiserver.NewTransport()
		s.Put(apiserver.PlatformOf(xptest.XR("x"))...)
		for n := range xrs {
			mark := hold.Hold{Since: apiserver.StartAt}
			if n >= xrs-bad {
				mark.Clone = "XOrder y"
			}
			s.Put(apiserver.Held(xptest.XR(fmt.Sprintf("x%02d", n), xptest.Refs(xptest.MR("gone")), xptest.Created(apiserver.StartAt)), mark))
		}
		poll := func(telling time.Duration) map[string]int {
			a := newAdopter(t, s)
			a.reportTimeout, a.writes = telling, 1
			adoptWith(t, a, hold.Unverified, xptest.XR("x00"))
			told := map[string]int{}
			for _, e := range s.All(apiserver.Events) {
				told[text(e, "reason")]++
			}

			return told
		}
		xptest.Same(t, map[string]int{adoption.EventHeld: xrs}, poll(-1), "the time is enough only for the Events about arrivals")
		want := map[string]int{adoption.EventHeld: xrs, adoption.EventStopped: bad, adoption.EventWaiting: xrs - bad}
		for range 2 {
			xptest.Same(t, want, poll(time.Minute), "each Event must be written once")
		}
		told := map[string][]int{}
		for _, e := range s.All(apiserver.Events) {
			version, _ := strconv.Atoi(e.GetResourceVersion())
			told[text(e, "reason")] = append(told[text(e, "reason")], version)
		}
		if slices.Max(told[adoption.EventStopped]) > slices.Min(told[adoption.EventWaiting]) {
			t.Errorf("Events that need a user must come first: %v", told)
		}
	})
}

func text(u *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(u.Object, path...)

	return text
}

// An adoption does not depend on Events. A notice in a mark is not repeated if its Event was lost.
// It is repeated if the mark could not be written.
func TestAdoptWithoutEvents(t *testing.T) {
	xptest.Bubble(t, func(t *testing.T) {
		objects, _, xr, _ := apiserver.RestoredTree()
		s := apiserver.NewServer(objects...)
		simulateCrossplane(s)
		s.FailOn("create", "events", 1<<30, apiserver.ErrDown)
		done(t, adopt(t, s, xr))
		s = apiserver.NewServer(objects...)
		s.FailOn("patch", "*", 1<<30, apiserver.ErrDown)
		for range 2 {
			adopt(t, s, xr)
		}
		if n := len(s.WrittenEvents()); n != 6 {
			t.Errorf("two processes must write Events for the three held objects, and none for an object without a mark: %v", s.WrittenEvents())
		}
	})
}

// versioned returns an object with a resourceVersion.
func versioned(name, version string) *unstructured.Unstructured {
	return xptest.XR(name, xptest.Version(version))
}

// A write comes back as an event, after the events of earlier versions. Only later events are
// changes.
func TestEventsAfterWrites(t *testing.T) {
	type args struct {
		reason string
		// written is the version that was written, "" if none was.
		written string
		// batches are the resourceVersions of events that arrive together.
		batches []string
		want    []string
	}
	xptest.Each(t, map[string]args{
		"Foreign":   {reason: "The snapshot takes over a change of another writer.", batches: []string{"7"}, want: []string{"7"}},
		"Last":      {reason: "Only the last of many changes counts.", batches: []string{"7 8 9"}, want: []string{"9"}},
		"Older":     {reason: "An older version than the written one brings nothing new.", written: "8", batches: []string{"6", "7"}, want: []string{"8", "8"}},
		"Own":       {reason: "The written version is known, and the later one is new.", written: "8", batches: []string{"7 8", "9"}, want: []string{"8", "9"}},
		"Unchanged": {reason: "A write without a change sends no notice, so the snapshot must not wait for one.", written: "5", batches: []string{"6"}, want: []string{"6"}},
		"Between":   {reason: "A version after the written one is new, even in the same batch.", written: "8", batches: []string{"7 8 9"}, want: []string{"9"}},
	}, func(t *testing.T, tc args) {
		o := newObserver(nil, hold.Unverified, selector, nil)
		in := &listing{Collection: cluster.Collection{GroupVersionKind: versioned("x", "").GroupVersionKind()}}
		o.put(versioned("x", "5"))
		version := func() string { return o.snapshot.Get(xp.RefTo(versioned("x", ""))).GetResourceVersion() }
		if tc.written != "" {
			o.putWritten(versioned("x", tc.written))
		}
		var got []string
		for _, batch := range tc.batches {
			for version := range strings.FieldsSeq(batch) {
				o.events.add(watch.Modified, versioned("x", version), in)
			}
			before := version()
			changed, ok := o.catchUp()
			now := version()
			if !ok || changed != (now != before) {
				t.Errorf("%s complete: %t, changed: %t, from %s to %s", tc.reason, ok, changed, before, now)
			}
			got = append(got, now)
		}
		xptest.Same(t, tc.want, got, tc.reason)
	})
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
	if err := f.wait(t.Context(), 0, 0); err != nil {
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
	in := &listing{Collection: cluster.Collection{GroupVersionKind: gone.GroupVersionKind()}, options: metav1.ListOptions{LabelSelector: selector}}
	o := newObserver(nil, hold.Unverified, selector, nil)
	for _, u := range []*unstructured.Unstructured{apiserver.Restored(gone), apiserver.Restored(there), elsewhere} {
		o.put(u)
	}
	for _, u := range []*unstructured.Unstructured{gone, there} {
		o.events.add(watch.Modified, apiserver.Restored(u), in)
	}
	o.events.relisted(in, map[xp.ID]bool{xp.RefTo(there).ID(): true})
	o.events.add(watch.Added, apiserver.Restored(later), in)
	o.events.add(watch.Modified, apiserver.Restored(versioned("there", "2")), in)
	if !o.isCurrent() {
		t.Error("the watch must be complete")
	}
	var got []string
	for _, u := range o.snapshot.All(gone.GroupVersionKind().GroupKind(), nil) {
		got = append(got, u.GetName()+" "+u.GetResourceVersion())
	}
	slices.Sort(got)
	xptest.Same(t, []string{"elsewhere 1", "later 9", "there 2"}, got, "what no list and no event has is gone")
}

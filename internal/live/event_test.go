package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// without returns the Events without their messages.
func without(told []string) []string {
	var short []string
	for _, e := range told {
		e, _, _ = strings.Cut(e, ": ")
		short = append(short, e)
	}

	return short
}

// kubectl describe of an XR or claim shows each state once, however often it is polled.
func TestAdoptWritesEvents(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	mr := s.get(t, buckets, "", "b")
	_ = s.Tracker().Delete(buckets, "", "b")
	simulateCrossplane(s)
	adopt := func() {
		t.Helper()
		for range 2 {
			if _, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err != nil {
				t.Fatal(err)
			}
		}
	}
	adopt()
	s.put(buckets, xptest.With(mr, xptest.Synced("False", "ReconcileError", "request 1 was refused")))
	adopt()
	s.put(buckets, xptest.With(mr, xptest.Synced("False", "ReconcileError", "request 2 was refused")))
	adopt()
	s.put(buckets, mr)
	adopt()
	want := []string{
		"Normal Held o", "Normal Held c", "Normal Held x", "Normal Released c", "Normal Waiting o", "Normal Waiting x",
		"Normal Waiting o", "Normal Waiting x", "Normal Released o", "Normal Released x",
	}
	if diff := cmp.Diff(want, without(s.writtenEvents())); diff != "" {
		t.Errorf("Events must follow the causes of waiting, not the messages of a provider: -want, +got:\n%s\n%s", diff, strings.Join(s.writtenEvents(), "\n"))
	}
}

func TestAdoptReportsFailures(t *testing.T) {
	copied, err := adoption.Put(xptest.XR("x"), adoption.Hold{Clone: "XOrder y", Reason: "it is a copy of XOrder y"})
	if err != nil {
		t.Fatal(err)
	}
	x := xptest.XR("x")
	if _, err := adoption.Put(x, *copied); err != nil {
		t.Fatal(err)
	}
	s := newServer(x)
	for range 2 {
		if _, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(x)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Normal Held x", "Warning AdoptionStopped x"}, without(s.writtenEvents())); diff != "" {
		t.Errorf("a failure must be reported once: -want, +got:\n%s", diff)
	}
	if h, err := adoption.HoldOf(s.get(t, xorders, "", "x")); err != nil || h.Reason != copied.Reason {
		t.Errorf("the reason of the hold must stay: %+v, %v", h, err)
	}
}

// If there is no time for all notices, warnings come first, and no notice about a held object is
// written twice.
func TestAdoptReportsWithinTimeout(t *testing.T) {
	const xrs, bad = 100, 3
	now := time.Now().UTC().Format(time.RFC3339)
	s := newAPIServer(t)
	s.put(t, platformOf(xptest.XR("x"))...)
	for n := range xrs {
		x := xptest.With(restored(xptest.XR(fmt.Sprintf("x%02d", n))), xptest.Refs(xptest.MR("gone")), xptest.Field(now, "metadata", "creationTimestamp"))
		hold := adoption.Hold{Restore: "velero/monday", Since: now}
		if n >= xrs-bad {
			hold.Clone = "XOrder y"
		}
		if _, err := adoption.Put(x, hold); err != nil {
			t.Fatal(err)
		}
		s.put(t, x)
	}
	poll := func(telling time.Duration) map[string]int {
		t.Helper()
		a := newShortAdopter(t, s)
		a.reportTimeout, a.writes = telling, 1
		if _, err := a.Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xptest.XR("x00"))); err != nil {
			t.Fatal(err)
		}
		told := map[string]int{}
		for _, e := range s.all(events) {
			told[text(e, "reason")]++
		}

		return told
	}
	if diff := cmp.Diff(map[string]int{adoption.EventHeld: xrs}, poll(-1)); diff != "" {
		t.Errorf("the time is enough only for the Events about arrivals: -want, +got:\n%s", diff)
	}
	want := map[string]int{adoption.EventHeld: xrs, adoption.EventStopped: bad, adoption.EventWaiting: xrs - bad}
	for range 2 {
		if diff := cmp.Diff(want, poll(time.Minute)); diff != "" {
			t.Errorf("each Event must be written once: -want, +got:\n%s", diff)
		}
	}
	told := map[string][]int{}
	for _, e := range s.all(events) {
		version, err := strconv.Atoi(e.GetResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		told[text(e, "reason")] = append(told[text(e, "reason")], version)
	}
	if slices.Max(told[adoption.EventStopped]) > slices.Min(told[adoption.EventWaiting]) {
		t.Errorf("Events that need a user must come first: %v", told)
	}
}

func text(u *unstructured.Unstructured, field string) string {
	text, _, _ := unstructured.NestedString(u.Object, field)

	return text
}

// An adoption does not depend on Events.
func TestAdoptGoesOnWithoutEvents(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	simulateCrossplane(s)
	s.failOn("create", "events", 1<<30, errDown)
	plans, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr))
	if err != nil || !plans[xp.RefTo(xr).ID()].Done {
		t.Errorf("got %+v, %v", plans, err)
	}
}

// A notice in a mark is not repeated if its Event was lost. It is repeated if the mark could not be
// written.
func TestAdoptReportsUnmarkedAgain(t *testing.T) {
	objects, _, xr, _ := restoredTree()
	s := newServer(objects...)
	s.failOn("patch", "*", 1<<30, errDown)
	for range 2 {
		if _, err := newFastAdopter(s).Adopt(context.Background(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.writtenEvents()); n != 6 {
		t.Errorf("two processes must write Events for the three held objects, and none for an object without a mark: %v", s.writtenEvents())
	}
}

func TestWarnCutsLongTexts(t *testing.T) {
	u := xptest.XR(strings.Repeat("a", 63) + "." + strings.Repeat("b.", 95))
	s := newServer(u)
	if err := s.cluster().Warn(context.Background(), u, "Why", strings.Repeat("ä", 1024)+"\xff"); err != nil {
		t.Fatal(err)
	}
	list, err := s.Resource(events).Namespace(metav1.NamespaceDefault).List(context.Background(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatal(list, err)
	}
	e := list.Items[0]
	message, _ := e.Object["message"].(string)
	if len(message) > 1024 || len(message) < 1000 || !utf8.ValidString(message) || !strings.HasSuffix(message, "ä…") {
		t.Errorf("the message has %d bytes: %s", len(message), message)
	}
	if problems := validation.IsDNS1123Subdomain(e.GetGenerateName() + "x"); len(problems) > 0 {
		t.Errorf("%s: %v", e.GetGenerateName(), problems)
	}
}

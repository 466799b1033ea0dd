package live

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// composedEach is how many MRs each XR of a benchmark composes.
const composedEach = 10

// realistic adds managedFields and a creation time, as real objects have.
func realistic(u *unstructured.Unstructured) *unstructured.Unstructured {
	var fields []any
	for _, manager := range []string{"velero", "crossplane", "provider"} {
		owned := map[string]any{}
		for n := range 12 {
			owned[fmt.Sprintf("f:field%02d", n)] = map[string]any{".": map[string]any{}, "f:value": map[string]any{}}
		}
		fields = append(fields, map[string]any{
			"manager": manager, "operation": "Update", "apiVersion": u.GetAPIVersion(), "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:metadata": owned, "f:spec": owned},
		})
	}

	return xptest.With(u, xptest.Field(fields, "metadata", "managedFields"), xptest.Field(time.Now().UTC().Format(time.RFC3339), "metadata", "creationTimestamp"))
}

// platformOf returns the XRD and the revision of an XR.
func platformOf(xr *unstructured.Unstructured) []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		xptest.XRD("xorders.example.org", xptest.Field("example.org", "spec", "group"), xptest.Field(map[string]any{"kind": xptest.LegacyKind}, "spec", "names"),
			xptest.Field([]any{map[string]any{"type": xp.ConditionEstablished, "status": "True"}}, "status", "conditions")),
		restored(xptest.Revision(xptest.RevisionName, xr)),
	}
}

// putHeldXRs puts held XRs with composed resources into a server, and returns the first. since is
// when they were held.
func (s *apiServer) putHeldXRs(tb testing.TB, xrs int, since time.Time) xp.Ref {
	tb.Helper()
	s.put(tb, platformOf(xptest.XR("x"))...)
	for n := range xrs {
		x := xptest.XR(fmt.Sprintf("x%05d", n))
		composed := make([]*unstructured.Unstructured, 0, composedEach)
		for m := range composedEach {
			composed = append(composed, xptest.MR(fmt.Sprintf("%s-%d", x.GetName(), m), xptest.ControlledBy(x), xptest.Reconciled()))
		}
		held := xptest.With(x, xptest.Refs(composed...), xptest.Labelled("velero.io/restore-name", "monday"))
		if _, err := adoption.Put(held, adoption.Hold{Restore: "velero/monday", Since: since.UTC().Format(time.RFC3339)}); err != nil {
			tb.Fatal(err)
		}
		held = realistic(held)
		held.SetCreationTimestamp(metav1.NewTime(since))
		s.put(tb, held)
		for _, u := range composed {
			s.put(tb, realistic(restored(u)))
		}
	}

	return xp.Ref{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x00000"}
}

// reconcileAtOnce is a Crossplane that reconciles XRs at once.
func reconcileAtOnce(u *unstructured.Unstructured) *unstructured.Unstructured {
	if !xp.IsComposite(u) {
		return nil
	}
	want := xptest.Reconciled()
	reason := "ReconcileSuccess"
	if xp.IsPaused(u) {
		want, reason = xptest.SeenPaused(), xp.ReasonReconcilePaused
	}
	if c, ok := xp.ConditionOf(u, xp.ConditionSynced); ok && c.Reason == reason {
		return nil
	}

	return xptest.With(u, want)
}

// countRequests returns the lists of the resource that was listed most, all lists and all writes.
func countRequests(asked map[string]int) (most, lists, writes int) {
	for what, n := range asked {
		verb, _, _ := strings.Cut(what, " ")
		switch verb {
		case "list":
			most, lists = max(most, n), lists+n
		case "patch", "create":
			writes += n
		}
	}

	return most, lists, writes
}

// BenchmarkPoll polls held XRs that no controller reconciles.
func BenchmarkPoll(b *testing.B) {
	for _, xrs := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("xrs=%d", xrs), func(b *testing.B) {
			s := newAPIServer(b)
			first := s.putHeldXRs(b, xrs, time.Now().Add(-time.Hour))
			poll := func() {
				if _, err := NewAdopter(s.connect(b), discardLog()).Adopt(context.Background(), adoption.Unverified, monday, selector, first); err != nil {
					b.Fatal(err)
				}
			}
			poll() // The first poll writes all notices.
			s.takeRequests()
			for b.Loop() {
				poll()
			}
			_, lists, writes := countRequests(s.takeRequests())
			b.ReportMetric(float64(lists)/float64(b.N), "lists/op")
			b.ReportMetric(float64(writes)/float64(b.N), "writes/op")
		})
	}
}

// BenchmarkLook observes and plans after a change of one composed resource.
func BenchmarkLook(b *testing.B) {
	for _, xrs := range []int{500, 5000} {
		b.Run(fmt.Sprintf("xrs=%d", xrs), func(b *testing.B) {
			ctx := context.Background()
			s := newAPIServer(b)
			first := s.putHeldXRs(b, xrs, time.Now())
			a := NewAdopter(s.connect(b), discardLog())
			a.relists = true
			p := a.newPoll(ctx)
			o := newObserver(a.cluster, adoption.Unverified, selector, []xp.Ref{first})
			p.configure(o)
			look := func() {
				if err := o.listNeeded(ctx); err != nil {
					b.Fatal(err)
				}
				p.plans, _ = p.plan(o.snapshot, append(o.snapshot.Subjects(), o.refs...))
			}
			look()
			changed := restored(xptest.MR("x00000-0", xptest.ControlledBy(xptest.XR("x00000"))))
			for b.Loop() {
				o.update(realistic(changed))
				look()
			}
		})
	}
}

// BenchmarkAdoption adopts restored XRs with a Crossplane that takes no time.
func BenchmarkAdoption(b *testing.B) {
	for _, xrs := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("xrs=%d", xrs), func(b *testing.B) {
			lists, writes := 0, 0
			for b.Loop() {
				b.StopTimer()
				s := newAPIServer(b)
				s.controllers = reconcileAtOnce
				first := s.putHeldXRs(b, xrs, time.Now())
				b.StartTimer()
				for done := false; !done; {
					plans, err := NewAdopter(s.connect(b), discardLog()).Adopt(context.Background(), adoption.Unverified, monday, selector, first)
					if err != nil {
						b.Fatal(err)
					}
					done = true
					for _, p := range plans {
						done = done && p.Done
					}
				}
				b.StopTimer()
				_, l, w := countRequests(s.takeRequests())
				lists, writes = lists+l, writes+w
				s.stop()
				b.StartTimer()
			}
			b.ReportMetric(float64(lists)/float64(b.N), "lists/op")
			b.ReportMetric(float64(writes)/float64(b.N*xrs), "writes/xr")
		})
	}
}

// BenchmarkObserve measures the time of one observation and its memory per object.
func BenchmarkObserve(b *testing.B) {
	for _, xrs := range []int{100, 1000} {
		b.Run(fmt.Sprintf("xrs=%d", xrs), func(b *testing.B) {
			s := newAPIServer(b)
			first := s.putHeldXRs(b, xrs, time.Now())
			c := s.connect(b)
			var before, after runtime.MemStats
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				snapshot, err := c.Observe(context.Background(), adoption.Unverified, selector, []xp.Ref{first})
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				runtime.KeepAlive(snapshot)
			}
			b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/float64(xrs*(1+composedEach)), "B/object")
		})
	}
}

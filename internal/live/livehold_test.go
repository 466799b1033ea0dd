package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// HoldLive holds what it can, and leaves to the next look what another writer has changed.
func TestHoldLive(t *testing.T) {
	free, gone, busy := xptest.MR("free", xptest.Reconciled()), xptest.MR("gone", xptest.Reconciled()), xptest.MR("busy", xptest.Deleting())
	changed := xptest.With(xptest.MR("changed", xptest.Reconciled()), xptest.Version("0"))
	s := newServer(free, busy, changed)
	key := adoption.Key(strings.Repeat("k", adoption.KeySize))
	var steps []string
	a := NewAdopter(s.cluster(), discardLog()).OnStep(func(c adoption.Change) { steps = append(steps, xp.String(c.Target)+": "+c.Step) })
	seen := []*unstructured.Unstructured{s.get(t, buckets, "", "free"), gone, s.get(t, buckets, "", "busy"), changed}
	if err := a.HoldLive(t.Context(), key, seen); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Bucket free: " + adoption.StepHoldLive}, steps); diff != "" {
		t.Errorf("steps: -want, +got:\n%s", diff)
	}
	for name, want := range map[string]bool{"free": true, "busy": false, "changed": false} {
		if got := xp.IsPaused(s.get(t, buckets, "", name)); got != want {
			t.Errorf("Bucket %s is paused: %t", name, got)
		}
	}
	s.failOn("patch", "buckets", 1, errors.New("no"))
	if err := a.HoldLive(t.Context(), key, []*unstructured.Unstructured{s.get(t, buckets, "", "changed")}); err == nil || !strings.Contains(err.Error(), "cannot hold Bucket changed") {
		t.Errorf("a patch that fails must be an error that names the object; got %v", err)
	}
}

package restoreitem

import (
	"context"
	"errors"
	"strings"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// sharedBucket is a SourceCluster that finds collisions.
type sharedBucket struct {
	SourceCluster

	found []reason.Message
	err   error
	looks int
}

func (b *sharedBucket) Collisions(context.Context, string, string) ([]reason.Message, error) {
	b.looks++

	return b.found, b.err
}

func TestSplitBrain(t *testing.T) {
	sign := reason.SourceAlive.Messagef("another cluster has taken a backup")
	adopted := adoption.Plan{Done: true, Total: 1, Adopted: 1}
	cases := map[string]struct {
		reason   string
		settings map[string]string
		bucket   sharedBucket
		plan     adoption.Plan
		// asks is whether the Adopter may take steps, says what the operation must say, and ends
		// whether it is over.
		asks, ends bool
		says       string
		fails      string
	}{
		"None":   {reason: "No other cluster is seen.", plan: adopted, asks: true, ends: true, says: "1 of 1 composed resources adopted"},
		"Warn":   {reason: "The default does not make disaster recovery harder.", bucket: sharedBucket{found: []reason.Message{sign}}, plan: adopted, asks: true, ends: true, says: "SourceAlive"},
		"Refuse": {reason: "Nothing may be released.", settings: map[string]string{"split-brain": "refuse"}, bucket: sharedBucket{found: []reason.Message{sign}}, plan: adopted, ends: true, fails: "[SplitBrainRefused]"},
		"RefuseAlone": {
			reason: "The setting alone refuses nothing.", settings: map[string]string{"split-brain": "refuse"}, plan: adopted, asks: true, ends: true,
			says: "1 of 1 composed resources adopted",
		},
		"Quarantine": {
			reason: "A quarantine adopts nothing.", settings: map[string]string{"split-brain": "refuse", "hold": "all"}, bucket: sharedBucket{found: []reason.Message{sign}},
			plan: adoption.Plan{Quarantine: reason.Quarantined.Messagef("it is in quarantine")}, asks: true, ends: true, says: "it is in quarantine [Quarantined]",
		},
		"Error": {reason: "What can't be read proves nothing.", bucket: sharedBucket{err: errors.New("boom")}, plan: adopted, says: "brings back: boom"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			w := &fakeAdopter{plans: planFor(tc.plan)}
			c := live()
			c.config = tc.settings
			a := NewAdopt(Crossplane(), c, w, log, WithSource(&tc.bucket))
			a.now = at(30)
			restore := &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "again"}}
			for range 2 {
				progress, err := a.Progress(operation, restore)
				if err != nil || progress.Completed != tc.ends || !strings.Contains(progress.Description, tc.says) || !strings.HasSuffix(progress.Err, tc.fails) {
					t.Errorf("%s: got %+v, %v", tc.reason, progress, err)
				}
			}
			if got := len(w.asked) > 0; got != tc.asks {
				t.Errorf("%s: the Adopter was asked: %t", tc.reason, got)
			}
			if tc.bucket.err == nil && tc.bucket.looks > 1 {
				t.Errorf("%s: one round of polls has read the bucket %d times", tc.reason, tc.bucket.looks)
			}
		})
	}
}

// A sign that is there before the restore holds everything.
func TestSplitBrainHoldsAll(t *testing.T) {
	mr := xptest.MR("b", xptest.Reconciled())
	for name, tc := range map[string]struct {
		reason string
		value  string
		found  []reason.Message
		held   bool
	}{
		"Refuse": {reason: "Nothing may be reconciled here.", value: "refuse", found: []reason.Message{reason.AdoptedElsewhere.Messagef("another cluster")}, held: true},
		"Alone":  {reason: "No other cluster is seen.", value: "refuse"},
		"Warn":   {reason: "A warning changes nothing.", value: "warn", found: []reason.Message{reason.AdoptedElsewhere.Messagef("another cluster")}},
	} {
		t.Run(name, func(t *testing.T) {
			c := live()
			c.config = map[string]string{"split-brain": tc.value}
			log, _ := logtest.NewNullLogger()
			a := NewAdopt(Crossplane(), c, &fakeAdopter{}, log, WithSource(&sharedBucket{found: tc.found}))
			out, err := a.Execute(inputFor(mr, restoreOf(nil)))
			if err != nil {
				t.Fatal(err)
			}
			var h *adoption.Hold
			if out.UpdatedItem != nil { // A nil item stays as it is.
				if h, err = adoption.HoldOf(&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}); err != nil {
					t.Fatal(err)
				}
			}
			if got := h != nil && h.Quarantine; got != tc.held {
				t.Errorf("%s: held: %t", tc.reason, got)
			}
		})
	}
}

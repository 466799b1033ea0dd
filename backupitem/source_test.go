package backupitem

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A sourceCluster is what a backup reads about its cluster.
type sourceCluster struct {
	handovers                    adoption.Handovers
	uidErr, handoversErr, keyErr error
	// asked are the calls.
	asked []string
}

var sourceKey = adoption.Key(bytes.Repeat([]byte("k"), adoption.KeySize))

func (c *sourceCluster) UID(context.Context) (string, error) {
	c.asked = append(c.asked, "uid")
	if c.uidErr != nil {
		return "", c.uidErr
	}

	return "here", nil
}

func (c *sourceCluster) Handovers(_ context.Context, velero string) (adoption.Handovers, error) {
	c.asked = append(c.asked, "handovers in "+velero)

	return c.handovers, c.handoversErr
}

func (c *sourceCluster) ReadMarkKey(_ context.Context, velero string) (adoption.Key, error) {
	c.asked = append(c.asked, "key in "+velero)

	return sourceKey, c.keyErr
}

// quiet returns u as the command hold holds it, after its controller has reported the pause.
func quiet(u *unstructured.Unstructured) *unstructured.Unstructured {
	change, why := sourceKey.HandOver(u, time.Unix(0, 0))
	if !why.IsZero() {
		panic(why) // The test is wrong.
	}

	return xptest.With(xptest.Merge(u, change.Patch), xptest.SeenPaused())
}

func TestTreeNotesItsSource(t *testing.T) {
	mr := xptest.NamespacedMR("b", xptest.Reconciled())
	local := xptest.XRV2("x", xptest.Reconciled())
	team := adoption.Handovers{xptest.Namespace: {Since: "monday"}}
	plain, handed := xp.Source{Cluster: "here"}, xp.Source{Cluster: "here", Handover: "monday"}
	busy := handed
	busy.Busy = "NotHandedOver"
	untouched := xptest.NamespacedMR("u", xptest.ControlledBy(local), xptest.Without("metadata", "finalizers"), xptest.Without("metadata", "annotations"))
	cases := map[string]struct {
		reason string
		item   *unstructured.Unstructured
		from   *sourceCluster
		want   xp.Source
		// warned are parts of the warnings, in order.
		warned []string
		// failed is how many of these make the backup PartiallyFailed.
		failed int
	}{
		"Plain":     {reason: "Without a handover a backup only notes its cluster.", item: mr, from: &sourceCluster{}, want: plain},
		"Quiet":     {reason: "The object is held, and nothing writes for it.", item: quiet(mr), from: &sourceCluster{handovers: team}, want: handed},
		"QuietXR":   {reason: "The same for an XR.", item: quiet(local), from: &sourceCluster{handovers: team}, want: handed},
		"Claim":     {reason: "A claim has the note too.", item: xptest.Claim("o", xptest.Reconciled()), from: &sourceCluster{}, want: plain},
		"Unrelated": {reason: "No controller of Crossplane writes for it.", item: xptest.Object("example.org/v1", "Thing", xptest.Namespace, "t"), from: &sourceCluster{handovers: team}},
		"Elsewhere": {reason: "Another namespace is not handed over.", item: xptest.With(mr, xptest.In("team-b")), from: &sourceCluster{handovers: team}, want: plain},
		"New": {
			reason: "It was created after the hold.", item: mr, from: &sourceCluster{handovers: team}, want: busy,
			warned: []string{"Bucket team-a/b is in the scope of a handover and not quiet, so a restore in another cluster refuses it: it is not held; run: velero-plugin-for-crossplane hold -n team-a [NotHandedOver]"},
		},
		"Untouched": {
			reason: "Its provider will create its external resource.", item: untouched, from: &sourceCluster{handovers: team}, want: busy, warned: []string{"[NotHandedOver]"},
		},
		"Unpaused": {
			reason: "Another writer has removed the pause.", item: xptest.With(quiet(mr), xptest.Without("metadata", "annotations", xp.AnnotationPaused)),
			from: &sourceCluster{handovers: team}, want: xp.Source{Cluster: "here", Handover: "monday", Busy: "HoldRemoved"}, warned: []string{"[NotHandedOver]"},
		},
		"NotReported": {
			reason: "Its provider may still work on it.", item: xptest.With(quiet(mr), xptest.Reconciled()), from: &sourceCluster{handovers: team},
			want: xp.Source{Cluster: "here", Handover: "monday", Busy: "AwaitingPauseReport"}, warned: []string{"[NotHandedOver]"},
		},
		"NoUID": {
			reason: "Without the right to read it, the note lacks the cluster.", item: quiet(mr), from: &sourceCluster{handovers: team, uidErr: errAPI},
			want: xp.Source{Handover: "monday"}, warned: []string{"back up again [RelatedNotRead]"}, failed: 1,
		},
		"NoRecord": {reason: "The backup goes on and says so.", item: mr, from: &sourceCluster{handoversErr: errAPI}, want: plain, warned: []string{"[RelatedNotRead]"}, failed: 1},
		"NoRecordButHeld": {
			reason: "Its mark shows the handover, so the target must not take it for a lost cluster.", item: quiet(mr), from: &sourceCluster{handoversErr: errAPI},
			want:   xp.Source{Cluster: "here", Handover: time.Unix(0, 0).UTC().Format(time.RFC3339), Busy: "NotHandedOver"},
			warned: []string{"[RelatedNotRead]", "[NotHandedOver]"}, failed: 1,
		},
		"NoKey": {
			reason: "A mark that can't be verified proves nothing.", item: quiet(mr), from: &sourceCluster{handovers: team, keyErr: errAPI},
			want: xp.Source{Cluster: "here", Handover: "monday", Busy: "MarkForged"}, warned: []string{"[MarkKeyMissing]", "[NotHandedOver]"}, failed: 1,
		},
		"Forged": {
			reason: "A tenant's own note must not survive.", from: &sourceCluster{},
			item: xptest.With(mr, xptest.Field(map[string]any{"cluster": "there", "handover": "never"}, "metadata", xp.FieldSource)), want: plain,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			tree := NewTree(NewResolver(clusterOf()), log).WithSource(tc.from)
			stored, _, _, _, err := tree.Execute(tc.item.DeepCopy(), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, xp.SourceOf(&unstructured.Unstructured{Object: stored.UnstructuredContent()})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			var warned []string
			failed := 0
			for _, e := range hook.AllEntries() {
				if fmt.Sprint(e.Data["reference"]) == "<nil>" || strings.HasPrefix(e.Message, "Backup") {
					warned = append(warned, e.Message)
				}
				if e.Level == logrus.ErrorLevel {
					failed++
				}
			}
			if failed != tc.failed {
				t.Errorf("%s\n%d errors, want %d: %q", tc.reason, failed, tc.failed, warned)
			}
			if len(warned) != len(tc.warned) {
				t.Fatalf("%s\nwarnings: %q", tc.reason, warned)
			}
			for n, part := range tc.warned {
				if !strings.Contains(warned[n], part) {
					t.Errorf("%s\nthe warning lacks %q: %s", tc.reason, part, warned[n])
				}
			}
		})
	}
}

// A backup with thousands of items reads its source once.
func TestTreeReadsItsSourceOnce(t *testing.T) {
	from := &sourceCluster{handovers: adoption.Handovers{"": {Since: "monday"}}}
	log, _ := logtest.NewNullLogger()
	tree := NewTree(NewResolver(clusterOf()), log).WithSource(from)
	for range 3 {
		if _, _, _, _, err := tree.Execute(quiet(xptest.MR("b", xptest.Reconciled())), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero"}}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"uid", "handovers in velero", "key in velero"}, from.asked); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

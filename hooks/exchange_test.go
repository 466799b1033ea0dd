package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var buckets = schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "buckets"}

// A recomposedTree is an XR with a new composed resource that the backup lacks, and that backup.
type recomposedTree struct{ xr, recreated, savedXR, saved *unstructured.Unstructured }

func newRecomposedTree(external string) recomposedTree {
	mr := func(name, external string, xr *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.MR(name, xptest.Annotated(xp.AnnotationExternalName, external), xptest.ControlledBy(xr), xptest.Reconciled(),
			xptest.Field([]any{"*"}, "spec", "managementPolicies"))
	}
	old, xr := xptest.XR("x", xptest.UID("old")), xptest.XR("x", xptest.UID("new"), xptest.Reconciled())
	a := recomposedTree{recreated: mr("b", external, xr), saved: mr("a", "one", old)}
	a.xr, a.savedXR = xptest.With(xr, xptest.Refs(a.recreated)), xptest.With(old, xptest.Refs(a.saved))

	return a
}

// exchangeServer returns a server whose Crossplane reports pauses, unless it ignores them.
func exchangeServer(ignoresPauses bool, objects ...*unstructured.Unstructured) *server {
	s := newServer(objects...)
	s.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchActionImpl) //nolint:forcetypeassert // It is one.
		obj, err := s.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
		if err != nil {
			return true, nil, err
		}
		var document map[string]any
		if err := json.Unmarshal(patch.GetPatch(), &document); err != nil {
			return true, nil, err
		}
		u := xptest.Merge(obj.(*unstructured.Unstructured), document) //nolint:forcetypeassert // The tracker has no other type.
		switch {
		case xp.IsManaged(u):
		case xp.IsPaused(u) && !ignoresPauses:
			u = xptest.With(u, xptest.SeenPaused())
		default:
			u = xptest.With(u, xptest.Reconciled())
		}

		return true, u, s.Tracker().Update(patch.GetResource(), u, u.GetNamespace())
	})

	return s
}

type exchanged struct {
	Code  int
	Wrote []string
	// Paused, Marked and Listed describe the XR.
	Paused, Marked, Listed bool

	out, err string
}

// exchange runs the command with the input typed on a terminal. It calls meanwhile at the question.
func (s *server) exchange(ctx context.Context, t *testing.T, a recomposedTree, typed string, meanwhile func(), args ...string) exchanged {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := os.WriteFile(file, xptest.Backup(a.savedXR, a.saved), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	said := &recorder{heard: func(said string) {
		if meanwhile != nil && strings.Contains(said, "[y/N]") {
			meanwhile()
		}
	}}
	streams := Streams{Out: &out, Err: said}
	if typed != "" {
		keyboard, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer keyboard.Close() //nolint:errcheck // It is a test's terminal.
		if _, err := keyboard.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		streams.In = terminal
	}
	o := newOptions(streams)
	o.velero = "velero"
	e := &exchangeRun{
		options: o, backup: file, timeout: time.Minute, pause: time.Millisecond, await: time.Minute, cluster: live.NewCluster(s, s),
	}
	for _, arg := range args {
		switch arg {
		case "--yes":
			e.yes = true
		case "--dry-run":
			e.dryRun = true
		case "--abandon":
			e.abandon = true
		case "--now":
			e.timeout = 0
		case "--ignore-pauses":
			e.await = 0
		}
	}
	s.ClearActions()
	err := e.prepare([]string{"x"})
	if err != nil {
		err = &exit{code: ExitUsage, err: err}
	} else {
		err = failed(e.run(ctx))
	}
	o.printError(err)
	xr := s.get(t, xorders, "", "x")
	refs, _ := xp.CompositeFrom(xr).ResourceRefs()

	return exchanged{
		Code: codeOf(err), Wrote: s.wrote(), Paused: xp.IsPaused(xr), Marked: xp.HasAnnotation(xr, xp.AnnotationExchange), Listed: len(refs) > 0,
		out: out.String(), err: said.String(),
	}
}

func TestExchange(t *testing.T) {
	a := newRecomposedTree("two")
	done := exchanged{Wrote: []string{"xorders x", "delete buckets", "xorders x"}, Paused: true, Marked: true}
	cases := map[string]struct {
		reason        string
		of            recomposedTree
		more          []*unstructured.Unstructured
		ignoresPauses bool
		typed         string
		args          []string
		meanwhile     func(s *server)
		want          exchanged
		said          string
	}{
		"DryRun": {
			reason: "A dry run must change nothing.", of: a, args: []string{"--dry-run"}, want: exchanged{Listed: true}, said: "DELETED WITH ITS EXTERNAL RESOURCE",
		},
		"NoTerminal": {
			reason: "Without a terminal the command can't ask, so it must change nothing.", of: a, want: exchanged{Code: ExitUsage, Listed: true}, said: "stdin is no terminal",
		},
		"Declined": {
			reason: "The command must change nothing when the user declines.", of: a, typed: "n\n", want: exchanged{Code: ExitFailed, Listed: true}, said: "[NotConfirmed]",
		},
		"Agreed": {reason: "The command must delete the new objects after the user agrees.", of: a, typed: "y\n", want: done, said: "Delete 1 external resource permanently, and 1 object in all?"},
		"Yes":    {reason: "--yes must stand for the user's answer.", of: a, args: []string{"--yes"}, want: done, said: "velero restore create"},
		"SameExternal": {
			reason: "The command must protect an external resource of the backup before it deletes the new MR.", of: newRecomposedTree("one"), args: []string{"--yes"},
			want: exchanged{Wrote: []string{"xorders x", "buckets b", "delete buckets", "xorders x"}, Paused: true, Marked: true},
			said: "its external resource stays: Bucket a of the backup manages it",
		},
		"Changed": {
			reason: "The user has not agreed to objects that appeared after the question.", of: a, typed: "y\n",
			meanwhile: func(s *server) {
				more := xptest.MR("c", xptest.ControlledBy(a.xr), xptest.Reconciled(), xptest.Version("1"))
				_ = s.Tracker().Add(more)
				_ = s.Tracker().Update(xorders, xptest.With(a.xr, xptest.Refs(a.recreated, more), xptest.Version("2")), "")
			},
			want: exchanged{Code: ExitFailed, Wrote: []string{"xorders x", "xorders x"}, Listed: true}, said: "[ChangedSinceConfirmed]",
		},
		"PauseNotReported": {
			reason: "Crossplane can still compose until it has reported the pause.", of: a, ignoresPauses: true, args: []string{"--yes", "--ignore-pauses"},
			want: exchanged{Code: ExitFailed, Wrote: []string{"xorders x", "xorders x"}, Listed: true}, said: "[PauseNotSeen]",
		},
		"Busy": {
			reason: "A running Restore may bring the object back.", of: a, more: []*unstructured.Unstructured{gone("InProgress")}, args: []string{"--yes"},
			want: exchanged{Code: ExitFailed, Listed: true}, said: "[RestoreRunning]",
		},
		"Nothing": {reason: "Without an exchange there is nothing to abandon.", of: a, args: []string{"--abandon"}, want: exchanged{Listed: true}, said: "XOrder x has no exchange"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := exchangeServer(tc.ignoresPauses, append(tc.more, tc.of.xr, tc.of.recreated)...)
			got := s.exchange(t.Context(), t, tc.of, tc.typed, func() {
				if tc.meanwhile != nil {
					tc.meanwhile(s)
				}
			}, tc.args...)
			if said := got.out + got.err; !strings.Contains(said, tc.said) {
				t.Errorf("%s\nthe output lacks %q:\n%s", tc.reason, tc.said, said)
			}
			got.out, got.err = "", ""
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(exchanged{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A name without an object probably lacks its namespace.
func TestExchangeAbandonsNothingSilently(t *testing.T) {
	a := newRecomposedTree("two")
	s := exchangeServer(false, a.xr, a.recreated)
	e := &exchangeRun{options: newOptions(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}), abandon: true, names: []string{"y"}, cluster: live.NewCluster(s, s)}
	if err := e.run(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot abandon the exchange of y") {
		t.Errorf("an exchange of an unknown name must fail; got %v", err)
	}
}

// TestExchangeAgain ends an exchange at each point, then continues or abandons it.
func TestExchangeAgain(t *testing.T) {
	a := newRecomposedTree("two")
	stays := []runtime.Object{}
	s := exchangeServer(false, a.xr, a.recreated)
	// The provider has not deleted it yet.
	s.PrependReactor("delete", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		u := xptest.With(s.get(t, buckets, "", "b"), xptest.Deleting())
		stays = append(stays, u)

		return true, nil, s.Tracker().Update(buckets, u, "")
	})
	got := s.exchange(t.Context(), t, a, "", nil, "--yes", "--now")
	if got.Code != ExitTimeout || !got.Paused || !got.Listed || !strings.Contains(got.err, "Bucket b") {
		t.Fatalf("first run, with a pending deletion: %+v\n%s", got, got.err)
	}
	for range 2 {
		if again := s.exchange(t.Context(), t, a, "", nil, "--yes", "--now"); again.Code != ExitTimeout || len(again.Wrote) > 0 {
			t.Errorf("the repeated run wrote %v, and its exit code is %d:\n%s", again.Wrote, again.Code, again.err)
		}
	}
	if got := s.exchange(t.Context(), t, a, "", nil, "--abandon"); got.Code != ExitFine || got.Paused || got.Marked {
		t.Errorf("after --abandon: %+v\n%s", got, got.err)
	}
	if got := s.exchange(t.Context(), t, a, "", nil, "--yes", "--now"); got.Code != ExitTimeout || !got.Paused {
		t.Errorf("after a second start: %+v\n%s", got, got.err)
	}
	if err := s.Tracker().Delete(buckets, "", "b"); err != nil {
		t.Fatal(err)
	}
	if got := s.exchange(t.Context(), t, a, "", nil, "--yes"); got.Code != ExitFine || got.Listed || !got.Paused || !got.Marked {
		t.Errorf("after the deletion: %+v\n%s", got, got.err)
	}
	if got := s.exchange(t.Context(), t, a, "", nil, "--yes"); got.Code != ExitFine || len(got.Wrote) > 0 || !strings.Contains(got.out, "Restore now") {
		t.Errorf("after the exchange: %+v\n%s", got, got.out)
	}
	if len(stays) != 1 {
		t.Errorf("the XR's resource was deleted %d times", len(stays))
	}
}

// TestExchangeWhosePauseIsTakenOff has another writer take the pause off meanwhile.
func TestExchangeWhosePauseIsTakenOff(t *testing.T) {
	a := newRecomposedTree("two")
	s := exchangeServer(false, a.xr, a.recreated)
	s.PrependReactor("delete", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, s.Tracker().Update(xorders, xptest.With(s.get(t, xorders, "", "x"), xptest.Annotated(xp.AnnotationPaused, "false")), "")
	})
	if got := s.exchange(t.Context(), t, a, "", nil, "--yes"); got.Code != ExitFailed || !got.Listed || !strings.Contains(got.err, "[PauseRemoved]") {
		t.Errorf("another writer removed the pause; got %+v:\n%s", got, got.err)
	}
}

// TestExchangeNamesWhatItKept abandons an exchange that ended between the two steps for a resource
// that is kept.
func TestExchangeNamesWhatItKept(t *testing.T) {
	a := newRecomposedTree("one")
	marks := []xptest.Option{xptest.Annotated(xp.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationExchange, "now")}
	kept := xptest.With(a.recreated, func(u *unstructured.Unstructured) {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "velero-plugin-for-crossplane-exchange", Operation: metav1.ManagedFieldsOperationUpdate}})
	})
	s := exchangeServer(false, xptest.With(a.xr, marks...), kept)
	if got := s.exchange(t.Context(), t, a, "", nil, "--abandon"); got.Paused || !strings.Contains(got.err, "Bucket b only observes its external resource") {
		t.Errorf("the abandoned exchange left the XR paused or printed no warning; got %+v:\n%s", got, got.err)
	}
}

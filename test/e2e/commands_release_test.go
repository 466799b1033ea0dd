package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// leftHolds are two namespaces whose holds are left behind: the Restore of one is deleted while it is
// in progress, and the Restore of the other gives up.
type leftHolds struct{ gone, stopped *tenant }

func (s *suite) fillLeak(t *testing.T) *leftHolds {
	t.Helper()
	l := &leftHolds{
		gone:    s.few(t, s.source, drill.Platform{Namespace: "gone", Without: []string{"database"}}, 3),
		stopped: s.few(t, s.source, drill.Platform{Namespace: "stopped"}, 2),
	}
	s.settings(t, l.gone)
	s.backUp(t, s.source, l.gone)
	s.backUp(t, s.source, l.stopped)

	return l
}

// testRelease restores while the provider is down, so that nothing is adopted. Then the command
// release finishes what is left, without Velero.
func (s *suite) testRelease(t *testing.T, l *leftHolds) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, l.stopped.StartRestore(ctx, s.target, "stopped", "stopped", "--item-operation-timeout", "1s"))
	must(t, l.gone.StartRestore(ctx, s.target, "gone", "gone"))
	must(t, drill.AwaitOperations(ctx, s.target, "gone"))
	t.Run("LeavesWhatIsUnderWay", func(t *testing.T) { s.testReleaseUnderWay(t, l.gone) })
	_, err := drill.AwaitRestore(ctx, s.target, "stopped")
	must(t, err)
	s.eventually(t, "an Event for each XR", func(ctx context.Context) error { return s.explained(ctx, l.stopped) })
	s.wantWaiting(t, l.gone)
	// Velero has a finalizer on it.
	remove(t, s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}, "velero", "gone")
	missing := s.loseBucket(t, l.stopped)
	t.Run("Leaked", func(t *testing.T) {
		s.wantLeaked(t, l.gone, "that Restore does not exist")
		s.wantLeaked(t, l.stopped, "that Restore has ended as PartiallyFailed")
	})
	t.Run("DryRun", func(t *testing.T) { s.testReleaseDryRun(t, l) })
	must(t, s.target.Start(ctx, stack.CloudProvider))

	t.Run("Adopts", func(t *testing.T) {
		s.released(t, "--restore", "gone")
		l.gone.unclaimed = s.version == stack.V1 // The role of release.yaml may not read Secrets: docs/hooks.md.
		s.settle(t, l.gone)
		s.wantSound(t, l.gone)
		s.wantStory(t, l.gone)
		if again := command(t, s.target, "release", "--restore", "gone"); again.code != 0 || !strings.Contains(again.stdout, "Nothing is held") {
			t.Errorf("what is released stays so: %+v", again)
		}
	})
	t.Run("Force", func(t *testing.T) { s.testReleaseForce(t, l.stopped, missing) })
}

// wantLeaked checks that validate reports each leaked hold in a namespace, and the command that
// releases it.
func (s *suite) wantLeaked(t *testing.T, n *tenant, why string) {
	t.Helper()
	var want, got []string
	for _, u := range s.roots(t, n) {
		if drill.Held(&u) {
			want = append(want, u.GetKind()+" "+u.GetName())
		}
	}
	if len(want) < 2 {
		t.Fatalf("in %s nothing is held but %v", n.Namespace, want)
	}
	for _, p := range s.validate(t, 3, "-n", n.Namespace).Problems {
		if p.Code == "LeakedHold" && strings.Contains(p.Reason, why) && strings.Contains(p.Next, "velero-plugin-for-crossplane release ") {
			got = append(got, p.Object.Kind+" "+p.Object.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("of the holds in %s validate reported: -want, +got:\n%s", n.Namespace, diff)
	}
}

// testReleaseUnderWay checks that release leaves a hold alone while its Restore is in progress.
func (s *suite) testReleaseUnderWay(t *testing.T, n *tenant) {
	for _, r := range s.released(t, "-n", n.Namespace) {
		if r["result"] != "left-alone" || !strings.Contains(fmt.Sprint(r["reason"]), "WaitingForPluginOperations") {
			t.Errorf("%v", r)
		}
	}
	held := 0
	for _, u := range s.roots(t, n) {
		if drill.Held(&u) {
			held++
		}
	}
	// The instance that a user has paused needs no provider.
	if all := len(s.roots(t, n)); held != all-all/n.size {
		t.Errorf("only %d of %d are still held", held, all)
	}
}

// testReleaseDryRun checks that a dry run writes nothing.
func (s *suite) testReleaseDryRun(t *testing.T, l *leftHolds) {
	before := len(asked(t, s.target, 0))
	for _, args := range [][]string{{"--restore", "gone"}, {"-n", l.stopped.Namespace}, {"-n", l.stopped.Namespace, "--force"}} {
		r := command(t, s.target, append([]string{"release", "--dry-run"}, args...)...)
		if !strings.Contains(r.stdout, "would") {
			t.Errorf("release --dry-run %v: %+v", args, r)
		}
	}
	wantOnlyRead(t, s.target, "a dry run", before)
}

// loseBucket deletes a Bucket as if it had never been restored, and returns its name.
func (s *suite) loseBucket(t *testing.T, n *tenant) string {
	t.Helper()
	mrs, err := n.Managed(t.Context(), s.target)
	must(t, err)
	u := mrs[slices.IndexFunc(mrs, func(u unstructured.Unstructured) bool { return u.GetKind() == "Bucket" })]
	must(t, drill.Patch(t.Context(), s.target, &u, map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	buckets, err := s.target.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
	must(t, err)
	must(t, buckets.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))

	return u.GetName()
}

// testReleaseForce checks that release releases what it can. It releases the rest only with
// --force, after which the missing object is composed again and nothing else.
func (s *suite) testReleaseForce(t *testing.T, n *tenant, missing string) {
	ctx := t.Context()
	if s.version == stack.V1 {
		s.forceRelease(t, n, missing)

		return
	}
	r := command(t, s.target, "release", "-n", n.Namespace)
	if r.code != 3 || !strings.Contains(r.stdout, missing) {
		t.Errorf("what is missing stays missing: %+v", r)
	}
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	total := len(n.before.Slots)
	if diff := gocmp.Diff(drill.Outcome{Adopted: total - 1, Total: total, Holds: 1, Orphans: 1}, got); diff != "" {
		t.Errorf("without --force: -want, +got:\n%s", diff)
	}
	before := len(asked(t, s.target, 0))
	if r := command(t, s.target, "release", "-n", n.Namespace, "--force"); r.code != 2 || !strings.Contains(r.stderr, "--yes") || len(asked(t, s.target, before)) > 0 {
		t.Errorf("there is no terminal to ask for confirmation: %+v", r)
	}
	s.forceRelease(t, n, missing)
}

// forceRelease releases by force, and checks that only the missing Bucket is composed again.
func (s *suite) forceRelease(t *testing.T, n *tenant, missing string) {
	t.Helper()
	ctx := t.Context()
	r := command(t, s.target, "release", "-n", n.Namespace, "--force", "--yes")
	if r.code != 0 || !strings.Contains(r.stderr, missing+" is missing: Crossplane creates it again") || !strings.Contains(r.stdout, "forced") {
		t.Errorf("by force: %+v", r)
	}
	must(t, n.AwaitReady(ctx, s.target, n.size))
	now, err := n.Record(ctx, s.target, s.cloud)
	must(t, err)
	must(t, n.AwaitReads(ctx, s.target, s.cloud, now, now.Seq))
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	total := len(n.before.Slots)
	if diff := gocmp.Diff(drill.Outcome{Creates: 1, Adopted: total - 1, Total: total, Orphans: 1, Duplicates: 1}, got); diff != "" {
		t.Errorf("by force: -want, +got:\n%s", diff)
	}
}

// released runs release and returns the result for each hold.
func (s *suite) released(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	r := command(t, s.target, append([]string{"release", "-o", "json"}, args...)...)
	var report struct {
		Kind     string           `json:"kind"`
		Releases []map[string]any `json:"releases"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.code != 0 || report.Kind != "Release" || len(report.Releases) == 0 {
		t.Errorf("release %v: %+v", args, r)
	}

	return report.Releases
}

// roots returns the XRs and claims of a namespace.
func (s *suite) roots(t *testing.T, n *tenant) []unstructured.Unstructured {
	t.Helper()
	xrs, err := n.Composites(t.Context(), s.target)
	must(t, err)
	if s.version != stack.V1 {
		return xrs
	}
	claims, err := n.Instances(t.Context(), s.target)
	must(t, err)

	return append(xrs, claims...)
}

// wantStory checks that the Events of each XR and claim report its adoption.
func (s *suite) wantStory(t *testing.T, n *tenant) {
	t.Helper()
	for _, u := range s.roots(t, n) {
		s.eventually(t, "the Events of "+u.GetName(), func(ctx context.Context) error {
			story, err := s.story(ctx, &u)
			if err != nil {
				return err
			}
			// An instance that a user has paused waits for no provider.
			waits := !strings.HasPrefix(u.GetName(), n.Name(0))
			last := len(story) - 1
			if last < 1 || story[0] != "Held" || story[last] != "Released" || slices.Contains(story[1:], "Held") ||
				slices.Contains(story[:last], "Released") || waits && !slices.Contains(story, "Waiting") {
				return fmt.Errorf("they are %v", story)
			}

			return nil
		})
	}
}

// wantWaiting waits until Events name what each XR and claim in a namespace waits for. The plugin
// emits them when the wait has lasted for a poll. An instance that a user has paused waits for no
// provider.
func (s *suite) wantWaiting(t *testing.T, n *tenant) {
	t.Helper()
	for _, u := range s.roots(t, n) {
		if strings.HasPrefix(u.GetName(), n.Name(0)) {
			continue
		}
		s.eventually(t, "what "+u.GetName()+" waits for", func(ctx context.Context) error {
			story, err := s.story(ctx, &u)
			if err == nil && !slices.Contains(story, "Waiting") {
				err = fmt.Errorf("its Events are %v", story)
			}

			return err
		})
	}
}

// story returns the reasons of the plugin's Events about an object, in their order.
func (s *suite) story(ctx context.Context, u *unstructured.Unstructured) ([]string, error) {
	events, err := s.target.Resource(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, cmp.Or(u.GetNamespace(), metav1.NamespaceDefault))
	if err != nil {
		return nil, err
	}
	list, err := events.List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(u.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("cannot list Events: %w", err)
	}
	var story []string
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		m, _ := strconv.Atoi(a.GetResourceVersion())
		k, _ := strconv.Atoi(b.GetResourceVersion())

		return cmp.Compare(m, k)
	})
	for _, e := range list.Items {
		if component, _, _ := unstructured.NestedString(e.Object, "source", "component"); component != plugin {
			continue
		}
		message, _, _ := unstructured.NestedString(e.Object, "message")
		if message == "" || len(message) > 1024 {
			return nil, errors.New("an Event has an invalid message: " + message)
		}
		story = append(story, fmt.Sprint(e.Object["reason"]))
	}

	return story, nil
}

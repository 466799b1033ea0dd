package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	l := &leftHolds{gone: s.few(t, s.source, drill.Platform{Namespace: "gone"}, 2), stopped: s.few(t, s.source, drill.Platform{Namespace: "stopped"}, 2)}
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
	for _, r := range s.released(t, "-n", "gone") {
		if r["result"] != "left-alone" {
			t.Errorf("Its Restore is in progress, and %v", r)
		}
	}
	s.wantPhase(t, "stopped", "PartiallyFailed")
	s.eventually(t, "an Event for each XR", func(ctx context.Context) error { return s.explained(ctx, l.stopped) })
	s.wantStory(t, l.gone, "Waiting")
	// Velero has a finalizer on it.
	remove(t, s.target, veleroRestore, "velero", "gone")
	missing := s.loseBucket(t, l.stopped)
	s.wantLeaked(t, l.gone)
	s.wantLeaked(t, l.stopped)
	before := len(asked(t, s.target, 0))
	for _, args := range [][]string{{"--restore", "gone"}, {"-n", "stopped"}, {"-n", "stopped", "--force"}} {
		command(t, s.target, append([]string{"release", "--dry-run"}, args...)...)
	}
	wantOnlyRead(t, s.target, "a dry run", before)
	must(t, s.target.Start(ctx, stack.CloudProvider))

	t.Run("Adopts", func(t *testing.T) {
		s.released(t, "--restore", "gone")
		l.gone.unclaimed = s.version == stack.V1 // The role of release.yaml may not read Secrets: docs/hooks.md.
		s.settle(t, l.gone)
		s.wantSound(t, l.gone)
		s.wantStory(t, l.gone, "Released")
		if again := command(t, s.target, "release", "--restore", "gone"); again.code != 0 {
			t.Errorf("what is released stays so: %+v", again)
		}
	})
	t.Run("Force", func(t *testing.T) { s.testReleaseForce(t, l.stopped, missing) })
}

// wantLeaked checks that validate reports each leaked hold in a namespace, and the command that
// releases it.
func (s *suite) wantLeaked(t *testing.T, n *tenant) {
	t.Helper()
	want, got := names(s.roots(t, n)), []string{}
	for _, p := range s.validate(t, 3, "-n", n.Namespace).Problems {
		if p.Code == "LeakedHold" && strings.Contains(p.Next, "velero-plugin-for-crossplane release ") {
			got = append(got, p.Object.Kind+"/"+p.Object.Name)
		}
	}
	if diff := gocmp.Diff(ordered(want), ordered(got)); diff != "" {
		t.Errorf("of the holds in %s validate reported: -want, +got:\n%s", n.Namespace, diff)
	}
}

// loseBucket deletes a Bucket as if it had never been restored, and returns its name.
func (s *suite) loseBucket(t *testing.T, n *tenant) string {
	t.Helper()
	mrs, err := n.Managed(t.Context(), s.target)
	must(t, err)
	u := &mrs[slices.IndexFunc(mrs, func(u unstructured.Unstructured) bool { return u.GetKind() == "Bucket" })]
	must(t, drill.Patch(t.Context(), s.target, u, map[string]any{"metadata": map[string]any{"finalizers": nil}}))
	s.delete(t, u, metav1.DeletePropagationBackground)

	return u.GetName()
}

// testReleaseForce checks that release releases what it can. It releases the rest only with
// --force, after which the missing object is composed again and nothing else.
func (s *suite) testReleaseForce(t *testing.T, n *tenant, missing string) {
	ctx := t.Context()
	total := len(n.before.Slots)
	wantOutcome := func(want drill.Outcome) {
		t.Helper()
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		must(t, err)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	}
	if s.version != stack.V1 {
		if r := command(t, s.target, "release", "-n", n.Namespace); r.code != 3 || !strings.Contains(r.stdout, missing) {
			t.Errorf("what is missing stays missing: %+v", r)
		}
		wantOutcome(drill.Outcome{Adopted: total - 1, Total: total, Holds: 1, Orphans: 1})
		before := len(asked(t, s.target, 0))
		if r := command(t, s.target, "release", "-n", n.Namespace, "--force"); r.code != 2 || len(asked(t, s.target, before)) > 0 {
			t.Errorf("there is no terminal to ask for confirmation: %+v", r)
		}
	}
	if r := command(t, s.target, "release", "-n", n.Namespace, "--force", "--yes"); r.code != 0 || !strings.Contains(r.stderr, missing) {
		t.Errorf("by force: %+v", r)
	}
	s.settle(t, n)
	wantOutcome(drill.Outcome{Creates: 1, Adopted: total - 1, Total: total, Orphans: 1, Duplicates: 1})
}

// released runs release and returns the result for each hold.
func (s *suite) released(t *testing.T, args ...string) []map[string]any {
	t.Helper()
	r := command(t, s.target, append([]string{"release", "-o", "json"}, args...)...)
	var report struct {
		Releases []map[string]any `json:"releases"`
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatalf("%v: %+v", err, r)
	}
	if r.code != 0 || len(report.Releases) == 0 {
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

// wantStory waits until the Events of each XR and claim report its adoption up to a reason. Of a
// wait the plugin emits one when that has lasted for a poll.
func (s *suite) wantStory(t *testing.T, n *tenant, until string) {
	t.Helper()
	for _, u := range s.roots(t, n) {
		s.eventually(t, "the Events of "+u.GetName(), func(ctx context.Context) error {
			story, err := s.story(ctx, &u)
			if err != nil {
				return err
			}
			if end := slices.Index(story, until); end < 1 || story[0] != "Held" || slices.Contains(story[1:], "Held") || until == "Released" && end != len(story)-1 {
				return fmt.Errorf("they are %v", story)
			}

			return nil
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
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { // Longer numbers are greater.
		return cmp.Or(cmp.Compare(len(a.GetResourceVersion()), len(b.GetResourceVersion())), cmp.Compare(a.GetResourceVersion(), b.GetResourceVersion()))
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

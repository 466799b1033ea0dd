package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const (
	// mostWrites and longestReplay limit how often, and for how long, a mark is written again.
	mostWrites    = 500
	longestReplay = 3 * time.Minute
	// stepsOfPoll is more than the number of writes that a poll makes on one object while another
	// writer reverts them. Velero polls each of the two Restores every two seconds, so there is a
	// poll a second.
	stepsOfPoll = 4
)

// hostileWords move the cursor, clear the screen, begin a new line, and contain shell commands.
const hostileWords = "forged\x1b[2J\x1b]0;owned\x07\r\n$(reboot); run: velero-plugin-for-crossplane release `reboot` \u202e"

// hostileName is a valid name of a Role. Unquoted, a shell runs it as a command.
const hostileName = "$(reboot)"

// mark returns a mark written without the key. It claims that a user had paused the XR.
func (a *attack) mark(t *testing.T, reason string) string {
	t.Helper()
	var refs []any
	for _, u := range a.named {
		ref := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()}
		if a.version != stack.V1 && u.GetNamespace() != "" {
			ref["namespace"] = u.GetNamespace()
		}
		refs = append(refs, ref)
	}
	b, err := json.Marshal(map[string]any{
		"restore": "velero/" + a.restore, "since": time.Now().UTC().Format(time.RFC3339), "reason": reason, "paused": "true", "resourceRefs": refs,
		"mac": strings.Repeat("A", 43) + "=",
	})
	must(t, err)

	return string(b)
}

// make creates what the forged marks name: in the pretender's namespace the limits of a tenant, and
// on v1, where XRs are cluster-scoped, objects that all tenants need. Where a tenant can write
// that, they look as if a restore had created them and the XR had composed them.
func (a *attack) make(t *testing.T, l *targets) {
	t.Helper()
	all := limitsIn(pretender, map[string]any{labelRestore: a.restore, "crossplane.io/composite": a.pretender.Name(0)})
	if a.version == stack.V1 {
		bucket := &unstructured.Unstructured{Object: map[string]any{"spec": l.bucket(t).Object["spec"]}}
		bucket.SetGroupVersionKind(l.bucket(t).GroupVersionKind())
		bucket.SetName("commons")
		crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
		crd.SetName("databases.cloud.example.org")
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName("commons")
		must(t, a.target.ApplyObjects(t.Context(), namespace, bucket))
		all = []*unstructured.Unstructured{namespace, crd, bucket}
	} else {
		must(t, a.target.ApplyObjects(t.Context(), all...))
	}
	for _, u := range all {
		live, err := get(t.Context(), a.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		a.named = append(a.named, live)
	}
}

// bucket returns one of the Buckets of the victim.
func (l *targets) bucket(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(l.managed, func(u unstructured.Unstructured) bool { return u.GetKind() == "Bucket" })
	if i < 0 {
		t.Fatal("the victim has no Bucket")
	}

	return &l.managed[i]
}

// pretend writes forged marks during the polls of the honest tenant's restore: on the XR or, on v1,
// on the claim, from which Crossplane copies some of them. Then it makes the XR look as if all of
// them had been copied, and as if it composed what the marks name.
func (a *attack) pretend(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	mark := a.mark(t, hostileWords)
	instances, err := a.pretender.Instances(ctx, a.target)
	must(t, err)
	metadata := map[string]any{
		"labels": map[string]any{labelRestore: a.restore}, "annotations": map[string]any{oldHold: mark, annotationHold: mark, annotationPaused: "true"},
	}
	xr := &instances[0]
	if a.version == stack.V1 {
		must(t, drill.Patch(ctx, a.target, xr, map[string]any{"metadata": map[string]any{
			"labels": metadata["labels"], "annotations": map[string]any{oldHold: mark, annotationHold: mark},
		}}))
		xr = a.awaitCopied(t, a.pretender, 0, mark)
	}
	refs := refsOf(xr)
	for _, u := range a.named {
		refs = append(refs, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()})
	}
	refs = append(refs, map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "name": hostileName})
	spec := map[string]any{"resourceRefs": refs}
	if a.version != stack.V1 {
		spec = map[string]any{"crossplane": spec}
	}
	must(t, drill.Patch(ctx, a.target, xr, map[string]any{"metadata": metadata, "spec": spec}))
}

func refsOf(xr *unstructured.Unstructured) []any {
	for _, path := range [][]string{{"spec", "crossplane", "resourceRefs"}, {"spec", "resourceRefs"}} {
		if refs, ok, _ := unstructured.NestedSlice(xr.Object, path...); ok {
			return refs
		}
	}

	return nil
}

// awaitCopied waits until Crossplane has copied a claim's old mark to its XR. It checks that
// Crossplane has not copied the new one.
func (a *attack) awaitCopied(t *testing.T, n *tenant, i int, mark string) *unstructured.Unstructured {
	t.Helper()
	var xr *unstructured.Unstructured
	a.eventually(t, "the old mark of the claim on its XR", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, a.target)
		if err != nil {
			return err
		}
		for _, u := range xrs {
			if u.GetLabels()["crossplane.io/claim-name"] == n.Name(i) && u.GetAnnotations()[oldHold] == mark && u.GetLabels()[labelRestore] == a.restore {
				xr = &u

				return nil
			}
		}

		return errors.New("it is not there")
	})
	if xr.GetAnnotations()[annotationHold] == mark {
		t.Errorf("Crossplane has copied the annotation %s from a claim to %s", annotationHold, xr.GetName())
	}

	return xr
}

// A writer writes a genuine mark onto an object as often as the plugin removes it.
type writer struct {
	target *unstructured.Unstructured
	mark   string
	place  int64
	began  time.Time
	stop   context.CancelFunc
	writes chan int
}

// replay starts to write old marks onto the replayer's instances: onto the first its own mark, with
// the pause, and onto the second the mark of its XR.
func (a *attack) replay(t *testing.T) []*writer {
	t.Helper()
	ctx := t.Context()
	instances, err := a.replayer.Instances(ctx, a.target)
	must(t, err)
	xrs, err := a.replayer.Composites(ctx, a.target)
	must(t, err)
	_, place, err := a.target.RequestsSince(ctx, 0)
	must(t, err)
	var replays []*writer
	for i := range instances {
		u := &instances[i]
		mark := u.GetAnnotations()[annotationHold]
		if i > 0 && a.version == stack.V1 {
			xr := slices.IndexFunc(xrs, func(x unstructured.Unstructured) bool {
				return x.GetLabels()["crossplane.io/claim-name"] == u.GetName()
			})
			mark = xrs[xr].GetAnnotations()[annotationHold]
		}
		if !strings.Contains(mark, "mac") {
			t.Fatalf("%s %s has no mark to be written again: %v", u.GetKind(), u.GetName(), u.GetAnnotations())
		}
		annotations := map[string]any{annotationHold: mark, oldHold: mark}
		if i == 0 {
			annotations[annotationPaused] = "true"
		}
		patch := map[string]any{"metadata": map[string]any{"labels": map[string]any{labelRestore: a.restore}, "annotations": annotations}}
		r := &writer{target: u, mark: mark, place: place, began: time.Now(), writes: make(chan int, 1)}
		var during context.Context
		during, r.stop = context.WithTimeout(ctx, longestReplay)
		t.Cleanup(r.stop)
		objects, err := a.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
		must(t, err)
		w, err := objects.Watch(during, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
		must(t, err)
		// It makes the other Restore observe the object too.
		must(t, drill.Patch(ctx, a.target, u, map[string]any{"metadata": map[string]any{"labels": map[string]any{labelRestore: a.restore}}}))
		go func() {
			n := 0
			for event := range w.ResultChan() {
				now, ok := event.Object.(*unstructured.Unstructured)
				if !ok || n == mostWrites {
					continue
				}
				if _, marked := now.GetAnnotations()[annotationHold]; !marked && drill.Patch(during, a.target, u, patch) == nil {
					n++
				}
			}
			r.writes <- n
		}()
		replays = append(replays, r)
	}

	return replays
}

// wantReplayed checks that the restore of the replayer has ended with few writes and Events, and
// that its details name the cause.
func (a *attack) wantReplayed(t *testing.T, replays []*writer) {
	t.Helper()
	ctx := t.Context()
	r, err := drill.AwaitRestore(ctx, a.target, a.replayed)
	must(t, err)
	details := a.details(t, a.replayed)
	t.Logf("Restore %s is %s", a.replayed, drill.Phase(r))
	if drill.Phase(r) != "Completed" && !strings.Contains(details, "[HoldAddedAgain]") && a.version != stack.V1 {
		t.Errorf("Restore %s is %s, and its details do not name the cause:\n%s", a.replayed, drill.Phase(r), details)
	}
	if a.version == stack.V1 {
		a.awaitCopied(t, a.replayer, 1, replays[1].mark)
	}
	for _, r := range replays {
		r.stop()
		writes := <-r.writes
		requests, _, err := a.target.RequestsSince(ctx, r.place)
		must(t, err)
		steps := 0
		for _, q := range requests {
			if q.UserAgent == plugin && q.Verb == "patch" && q.Namespace == r.target.GetNamespace() && q.Name == r.target.GetName() {
				steps++
			}
		}
		events := a.eventsOf(t, r.target)
		what := r.target.GetKind() + " " + r.target.GetName()
		most := stepsOfPoll * (1 + int(time.Since(r.began)/time.Second))
		t.Logf("the mark of %s was written again %d times; the plugin has patched it %d times, and there are %d Events, of at most %d", what, writes, steps, events, most)
		if writes == 0 {
			t.Errorf("the mark of %s was never removed, so this tests nothing", what)
		}
		if steps > most || int(events) > most {
			t.Errorf("the plugin has patched %s %d times, and there are %d Events", what, steps, events)
		}
	}
}

// eventsOf counts the plugin's Events about an object, with their repetitions.
func (a *attack) eventsOf(t *testing.T, u *unstructured.Unstructured) int64 {
	t.Helper()
	events, err := a.target.Resource(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Event"}, u.GetNamespace())
	must(t, err)
	list, err := events.List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(u.GetUID())})
	must(t, err)
	all := int64(0)
	for _, e := range list.Items {
		if component, _, _ := unstructured.NestedString(e.Object, "source", "component"); component != plugin {
			continue
		}
		n, _, _ := unstructured.NestedInt64(e.Object, "count")
		all += max(n, 1)
	}

	return all
}

// testCommands runs the commands on what the pretender has written. Neither a terminal nor a shell
// may execute what they print.
func (a *attack) testCommands(t *testing.T) {
	t.Helper()
	name := a.pretender.Name(0)
	for _, args := range [][]string{
		{"wait", name, "--for=adopted", "--namespace=" + pretender, "--timeout=1s"},
		{"release", pretender + "/" + name, "--dry-run"},
		{"release", pretender + "/" + name},
		{"release", "-n", pretender},
		{"release", pretender + "/" + name, "--force", "--dry-run"},
		{"validate", "-n", pretender},
	} {
		r := command(t, a.target, args...)
		said := r.stdout + r.stderr
		t.Logf("%v ended with %d:\n%s", args, r.code, said)
		if said == "" {
			t.Errorf("%v prints nothing", args)
		}
		if c := strings.IndexFunc(said, func(c rune) bool {
			return c != '\n' && c != '\t' && (c < ' ' || c >= 0x7f && c < 0xa0 || c == '\u202e')
		}); c >= 0 {
			t.Errorf("%v prints a control character: %q", args, said)
		}
		for line := range strings.Lines(said) {
			switch line = strings.TrimSpace(line); {
			case strings.HasPrefix(line, hostileName):
				t.Errorf("%v prints a line that another writer wrote: %q", args, line)
			case strings.HasPrefix(line, "Next:") && !isQuoted(line, hostileName):
				t.Errorf("%v prints a command that a shell obeys: %q", args, line)
			}
		}
	}
}

// isQuoted reports whether a text is in a line only between single quotes.
func isQuoted(line, text string) bool {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 0 && strings.Contains(part, text) {
			return false
		}
	}

	return true
}

package restoreitem

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	riav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/restoreitemaction/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero does not count plugin warnings in a restore. So messages for the user are operations.
func TestAdoptNotes(t *testing.T) {
	created := func(day int) xptest.Option {
		return func(u *unstructured.Unstructured) {
			u.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)))
		}
	}
	xr := xptest.XR("x", xptest.UID("old"), created(1))
	mr := xptest.MR("b", xptest.ControlledBy(xr), created(2))
	atWork := xptest.XR("x", xptest.UID("new"), xptest.Refs(), xptest.Synced("True", "ReconcileSuccess", ""))
	restored := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{xp.LabelRestore: "sunday"}) }
	job := func(name string) *unstructured.Unstructured { return xptest.Object("batch/v1", "Job", "team-a", name) }
	type want struct {
		Code   reason.Code
		Failed bool
	}
	runAdopts(t, map[string]adoptCase[want]{
		"Dropped": {
			reason: "A composed resource that its XR does not list does not come back.", item: mr, live: live(xptest.With(atWork, created(5), restored)),
			want: want{Code: reason.NotListed},
		},
		"Recreated": {
			reason: "Another writer created the XR again, so the MR in the backup is lost.", item: mr, live: live(xptest.With(atWork, created(5))),
			want: want{Code: reason.ComposedTwice, Failed: true},
		},
		"OlderXR": {
			reason: "An XR from before the restore dropped the resource itself.", item: mr, live: live(xptest.With(atWork, created(1))), want: want{Code: reason.NotListed},
		},
		"Unrestored": {
			reason: "Velero restores no Event, and the backup has noted that it restores no completed Job.",
			item:   xptest.XR("x", xptest.Refs(job("done"), job("runs"), xptest.Object("v1", "Event", "team-a", "e"), mr), xptest.UnresolvedRefs(job("done"), xptest.MR("b"))),
			want:   want{Code: reason.MadeAgain},
		},
	}, func(t *testing.T, out adopted) want {
		t.Helper()
		if out.note != "" && !strings.HasPrefix(out.note, out.item.GetKind()+" ") {
			t.Errorf("the note must name the object: %s", out.note)
		}
		_, code, _ := strings.Cut(out.note, " [")
		got := want{Code: reason.Code(strings.TrimSuffix(code, "]")), Failed: out.failed}
		if got.Code == reason.MadeAgain && !strings.Contains(out.note, "It composes Job team-a/done, Event team-a/e, which") {
			t.Errorf("the note must name what Velero does not restore: %s", out.note)
		}

		return got
	})
}

// Thousands of live objects can be left as they are, so there is one note for each kind.
func TestAdoptNotesEachLiveKindOnce(t *testing.T) {
	items := []*unstructured.Unstructured{xptest.MR("a"), xptest.MR("b"), xptest.Composition("c", xptest.XR("x"))}
	a := newAdopt(live(items...), Shared{})
	got := ""
	for _, item := range items {
		if noteText(execute(t, a, item, updating()).OperationID, &velero.OperationProgress{}) {
			got += item.GetName() //nolint:perfsprint // There are two or three.
		}
	}
	if got != "ac" {
		t.Errorf("got notes of %s", got)
	}
}

// The author of an item chooses how many warnings it causes. The log and the note have the first,
// and the number of the others.
func TestWarningsOfOneItemAreBounded(t *testing.T) {
	const many = 500
	secrets, owners, refs := make([]any, many), make([]any, many), make([]any, many)
	for n := range many {
		name := "s" + strings.Repeat("x", n%200) + string(rune('a'+n/200))
		secrets[n] = map[string]any{"name": name, "namespace": "infra"}
		owners[n] = map[string]any{"apiVersion": xptest.LegacyVersion, "kind": xptest.LegacyKind, "name": name, "uid": "u"}
		refs[n] = map[string]any{"apiVersion": "gone.example.org/v1", "kind": "Gone", "name": name}
	}
	for name, tc := range map[string]struct {
		item *unstructured.Unstructured
		more string
	}{
		"Inputs": {item: xptest.MR("b", xptest.Field(secrets, "spec", "forProvider", "passwordSecretRefs")), more: "There are 480 more warnings like the 20 before [InputMissing]"},
		"Owners": {
			item: xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), xptest.Field(owners, "metadata", "ownerReferences")),
			more: "There are 44 more warnings like the 20 before [RestoredWithoutOwner]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := live()
			got := adopt(t, c, tc.item, restoreOf(nil))
			if got.err != nil {
				t.Fatal(got.err)
			}
			if len(got.logged) > 3*mostWarnings || len(got.note) > longestNote+100 || !strings.Contains(got.note, tc.more) || !strings.Contains(strings.Join(got.logged, "\n"), tc.more) {
				t.Errorf("the log has %d lines, and the note %d bytes; both must have %q:\n%s", len(got.logged), len(got.note), tc.more, got.note)
			}
			if len(c.asked) > 2*xp.MostOwners+many {
				t.Errorf("the cluster was asked %d times", len(c.asked))
			}
		})
	}
	log, hook := logtest.NewNullLogger()
	spec := velerov1.RestoreSpec{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
	o := NewOrder(Crossplane(), kindsFn(served), log, Shared{})
	for range 2 {
		hook.Reset()
		execute(t, o, xptest.XRV2("x", xptest.Field(refs, "spec", "crossplane", "resourceRefs")), restoreWith(spec))
		last := hook.LastEntry()
		if n := len(hook.AllEntries()); n > 2*mostWarnings || last == nil || last.Message != "There are 480 more warnings like the 20 before [KindNotServed]" {
			t.Errorf("each item has warnings of its own; got %d, the last of them %v", n, last)
		}
	}
}

// "velero restore describe --details" prints operations as they are.
func TestOperationsAreClean(t *testing.T) {
	const hostile = "a\x1b[2J\x1b]0;owned\x07\r\n  b\u202e"
	owner := metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: hostile, UID: "u"}
	item := xptest.MR("b", xptest.Labelled(xp.LabelComposite, "x"), xptest.Annotated(xp.AnnotationResourceName, "b"), xptest.OwnedBy(owner))
	adopt, order := newAdopt(live(), Shared{}), newOrder(Shared{})
	for _, id := range []string{execute(t, adopt, item, restoreOf(nil)).OperationID, "note: Bucket b: " + hostile, "failed: Bucket b: " + hostile} {
		for _, action := range []riav2.RestoreItemAction{adopt, order} {
			p, err := action.Progress(id, restoreOf(nil))
			if err != nil || !strings.Contains(p.Description, "owned") || strings.ContainsFunc(p.Description+p.Err, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) }) {
				t.Errorf("%s: got %q, %q, error %v", action.Name(), p.Description, p.Err, err)
			}
		}
	}
}

// Velero applies resource modifiers after all actions. One that removes a hold is found before the
// item is created.
func TestAdoptChecksModifiers(t *testing.T) {
	rule := func(group, what string) string {
		return "version: v1\nresourceModifierRules:\n- conditions:\n    groupResource: \"" + group + "\"\n  " + what + "\n"
	}
	const (
		all       = `patches: [{operation: remove, path: /metadata/annotations}]`
		replaces  = `patches: [{operation: replace, path: /metadata/annotations, value: "{\"a\": \"b\"}"}]`
		unpauses  = `patches: [{operation: replace, path: /metadata/annotations/crossplane.io~1paused, value: "false"}]`
		removes   = `patches: [{operation: remove, path: /metadata/annotations/velero.crossplane.x-k8s.io~1hold}]`
		merges    = `mergePatches: [{patchData: "metadata: {annotations: null}"}]`
		strategic = `strategicPatches: [{patchData: "{\"metadata\":{\"annotations\":{\"crossplane.io/paused\":null}}}"}]`
		adds      = `patches: [{operation: add, path: /metadata/annotations/team, value: a}, {operation: replace, path: /spec/region, value: us}]`
		tests     = `patches: [{operation: test, path: /metadata/name, value: other}, {operation: remove, path: /metadata/annotations}]`
	)
	xr, mr := xptest.XRV2("x"), xptest.MR("b")
	held := xptest.MR("b", xptest.Without("metadata", "annotations", xp.AnnotationExternalName), xptest.Reconciled())
	for name, tc := range map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		rule    string
		err     error
		refused bool
		unnamed bool
	}{
		"RemovesAll":          {reason: "The rule removes all annotations, and the hold with them.", item: xr, rule: rule("orders.example.org", all), refused: true},
		"ReplacesAll":         {reason: "The rule replaces all annotations, and the hold with them.", item: xr, rule: rule("*.example.org", replaces), refused: true},
		"Unpauses":            {reason: "The rule takes the pause off, so Crossplane would reconcile the XR.", item: xr, rule: rule("orders.example.org", unpauses), refused: true},
		"RemovesMark":         {reason: "Without the mark no operation releases the XR.", item: xr, rule: rule("orders.example.org", removes), refused: true},
		"Merges":              {reason: "A null in a merge patch removes the annotations.", item: xr, rule: rule("orders.example.org", merges), refused: true},
		"Strategic":           {reason: "For custom resources a strategic merge patch works like a merge patch.", item: xr, rule: rule("orders.example.org", strategic), refused: true},
		"HeldMR":              {reason: "The provider would create a second external resource.", item: held, rule: rule("buckets.cloud.example.org", all), refused: true},
		"Adds":                {reason: "The rule leaves the hold as it is.", item: xr, rule: rule("orders.example.org", adds)},
		"Tests":               {reason: "The rule's test does not match this XR.", item: xr, rule: rule("orders.example.org", tests)},
		"OtherKind":           {reason: "The rule is for another kind.", item: xr, rule: rule("widgets.example.org", all)},
		"None":                {reason: "The Restore names no resource modifiers.", item: xr, rule: rule("orders.example.org", all), unnamed: true},
		"CannotBeRead":        {reason: "Unreadable rules may remove the hold.", item: xr, err: errors.New("not now"), refused: true},
		"CannotBeReadNotHeld": {reason: "An item without a hold comes back as with Velero alone.", item: mr, err: errors.New("not now")},
		"NoRules":             {reason: "Rules that the plugin cannot parse may remove the hold.", item: xr, rule: "?", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, restore := &cluster{configMap: map[string]string{"rules": tc.rule}, modifierErr: tc.err}, restoreOf(nil)
			if !tc.unnamed {
				restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "changes"}
			}
			if err := adopt(t, c, tc.item, restore).err; (err != nil) != tc.refused || tc.refused && !strings.Contains(err.Error(), "velero/changes") {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}

// Velero will have resource modifiers that no Restore names.
func TestAdoptChecksDefaultModifiers(t *testing.T) {
	const strips = "version: v1\nresourceModifierRules:\n- conditions: {groupResource: \"*.example.org\"}\n  patches: [{operation: remove, path: /metadata/annotations}]\n"
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "cni")
	for name, tc := range map[string]struct {
		reason          string
		of, rules       string
		named           bool
		skips           any
		err, restoreErr error
		refused         bool
	}{
		"Strips":        {reason: "The server's rules apply to each Restore that names none.", of: "cni", rules: strips, refused: true},
		"None":          {reason: "The server has no rules.", rules: strips},
		"Skipped":       {reason: "The Restore skips the server's rules.", of: "cni", rules: strips, skips: true},
		"NotSkipped":    {reason: "The Restore asks for the server's rules.", of: "cni", rules: strips, skips: false, refused: true},
		"Named":         {reason: "A Restore's own rules replace the server's.", of: "cni", rules: "version: v1", named: true},
		"Absent":        {reason: "Velero continues without the missing ConfigMap.", of: "cni", err: absent},
		"Unreadable":    {reason: "Velero continues without rules that it cannot parse.", of: "cni", rules: "?"},
		"Unknown":       {reason: "Unreadable rules may remove the hold.", of: "cni", err: errors.New("not now"), refused: true},
		"UnreadRestore": {reason: "An unreadable Restore may use the server's rules.", of: "cni", rules: strips, restoreErr: errors.New("not now"), refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := live()
			c.configMap, c.modifierErr, c.restoreErr = map[string]string{"rules": tc.rules}, tc.err, tc.restoreErr
			c.restore = map[string]any{"spec": map[string]any{"skipDefaultResourceModifier": tc.skips}}
			restore := restoreOf(nil)
			if tc.named {
				restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "mine"}
			}
			err := adoptWith(t, Shared{Modifiers: func() string { return tc.of }}, c, xptest.XRV2("x"), restore).err
			if (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "velero/cni") {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}

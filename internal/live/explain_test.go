package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// chart returns a Deployment of Crossplane's chart.
func chart(namespace, name string, ready int64, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Object("apps/v1", "Deployment", namespace, name, append([]xptest.Option{
		xptest.Labelled("app.kubernetes.io/part-of", "crossplane"), xptest.Field(ready, "status", "readyReplicas"),
	}, o...)...)
}

func image(i string) xptest.Option {
	return xptest.Field([]any{map[string]any{"image": i}}, "spec", "template", "spec", "containers")
}

// deployment returns Crossplane's Deployment as in its chart.
func deployment(name, version string, ready int64) *unstructured.Unstructured {
	return chart("crossplane-system", name, ready, image("xpkg.crossplane.io/crossplane/crossplane:v"+version))
}

func scaledTo(n int64) xptest.Option { return xptest.Field(n, "spec", "replicas") }

func TestInstallation(t *testing.T) {
	found := func(namespace, name string, replicas, ready int64) adoption.Installation {
		return adoption.Installation{Namespace: namespace, Name: name, Replicas: replicas, Ready: ready}
	}
	type args struct {
		reason  string
		objects []*unstructured.Unstructured
		want    adoption.Installation
	}
	each(t, map[string]args{
		"None":       {reason: "A Crossplane that the chart did not install is not found.", objects: []*unstructured.Unstructured{xptest.Object("apps/v1", "Deployment", "a", "b")}},
		"Elsewhere":  {reason: "Crossplane can be in another namespace.", objects: []*unstructured.Unstructured{chart("upbound", "xp", 2)}, want: found("upbound", "xp", 1, 2)},
		"Two":        {reason: "A Deployment that was scaled down does not count.", objects: []*unstructured.Unstructured{chart("crossplane-system", "old", 0, scaledTo(0)), chart("upbound", "xp", 1)}, want: found("upbound", "xp", 1, 1)},
		"Scaled":     {reason: "A user has scaled Crossplane to zero.", objects: []*unstructured.Unstructured{chart("upbound", "xp", 0, scaledTo(0))}, want: found("upbound", "xp", 0, 0)},
		"Tenant":     {reason: "A tenant can label a Deployment as Crossplane's.", objects: []*unstructured.Unstructured{chart("team-a", "xp", 3), chart("crossplane-system", "xp", 1)}, want: found("crossplane-system", "xp", 1, 1)},
		"TenantDown": {reason: "It must not hide that Crossplane is down.", objects: []*unstructured.Unstructured{chart("team-a", "xp", 3), chart("crossplane-system", "xp", 0)}, want: found("crossplane-system", "xp", 1, 0)},
		"RBAC":       {reason: "The RBAC manager is from the same chart, and runs without Crossplane.", objects: []*unstructured.Unstructured{chart("crossplane-system", "xp", 0), chart("crossplane-system", "xp-rbac-manager", 1)}, want: found("crossplane-system", "xp", 1, 0)},
		"RBACAlone":  {reason: "The RBAC manager alone is no Crossplane.", objects: []*unstructured.Unstructured{chart("crossplane-system", "xp-rbac-manager", 1)}},
	}, func(t *testing.T, tc args) {
		got, err := newServer(tc.objects...).cluster().Installation(t.Context())
		must(t, err)
		same(t, tc.want, got, tc.reason)
	})
}

// A tag can have any content. With an unknown version only what holds for every version is
// reported.
func TestVersionOf(t *testing.T) {
	label := func(version string) xptest.Option { return xptest.Labelled("app.kubernetes.io/version", version) }
	containers := func(value any) xptest.Option { return xptest.Field(value, "spec", "template", "spec", "containers") }
	for name, tc := range map[string]struct {
		reason string
		o      []xptest.Option
		want   string
	}{
		"Release":      {reason: "The chart installs this image.", o: []xptest.Option{image("xpkg.crossplane.io/crossplane/crossplane:v1.18.0")}, want: "1.18.0"},
		"Bare":         {reason: "A mirror may omit the v.", o: []xptest.Option{image("r:5000/crossplane:2.1.0")}, want: "2.1.0"},
		"Build":        {reason: "Some users build their own image.", o: []xptest.Option{image("r/crossplane:v1.19.0-up.1")}, want: "1.19.0-up.1"},
		"Digest":       {reason: "A digest after the tag adds nothing.", o: []xptest.Option{image("r/crossplane:v1.20.1@sha256:abc")}, want: "1.20.1"},
		"Major":        {reason: "A major version alone is no version.", o: []xptest.Option{image("r/crossplane:v99")}},
		"Empty":        {reason: "There may be no image.", o: []xptest.Option{image("")}},
		"Colon":        {reason: "A colon alone has no tag.", o: []xptest.Option{image(":")}},
		"DigestOnly":   {reason: "A digest is no version, whatever its digits.", o: []xptest.Option{image("r/crossplane@sha256:1.2")}},
		"PortOnly":     {reason: "A port is no tag, even if it looks like a version.", o: []xptest.Option{image("r:1.2/crossplane")}},
		"Words":        {reason: "A tag with other words is no version.", o: []xptest.Option{image("r/crossplane:release-1.20")}},
		"Huge":         {reason: "A number that overflows can't be compared.", o: []xptest.Option{image("r/crossplane:v99999999999999999999.0.0")}},
		"Label":        {reason: "The version label counts too.", o: []xptest.Option{image("r/crossplane:latest"), label("v2.1.3")}, want: "2.1.3"},
		"LabelGarbage": {reason: "A version label without a version does not count.", o: []xptest.Option{image("r/crossplane"), label("latest")}},
		"NoList":       {reason: "The containers can be malformed.", o: []xptest.Option{containers("x")}},
		"NoObjects":    {reason: "A container can be malformed.", o: []xptest.Option{containers([]any{"x", nil})}},
		"NoImage":      {reason: "An image can be malformed.", o: []xptest.Option{containers([]any{map[string]any{"image": int64(1)}})}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := adoption.FindInstallation([]*unstructured.Unstructured{chart("a", "b", 1, tc.o...)}).Version; got != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// isRequest reports whether an action sets or removes a request for a reconcile.
func isRequest(action clienttesting.Action, value string) bool {
	p, ok := action.(clienttesting.PatchAction)

	return ok && strings.Contains(string(p.GetPatch()), xp.AnnotationReconcileRequested+value)
}

func TestAdoptNamesWhatIsStuck(t *testing.T) {
	objects, _, xr, child := restoredTree()
	type args struct {
		reason string
		stuck  time.Duration
		extra  []*unstructured.Unstructured
		fail   error
		want   string
		event  string
	}
	each(t, map[string]args{
		"Fresh": {reason: "Crossplane may be busy.", stuck: time.Hour, want: "", event: "Normal Waiting"},
		"Down": {
			reason: "No replica of Crossplane is ready.", extra: []*unstructured.Unstructured{deployment("crossplane", "2.3.4", 0)},
			want: "no replica of Crossplane (Deployment crossplane-system/crossplane) is ready", event: "Warning AdoptionStuck",
		},
		"Old": {
			reason: "The advice depends on the version of Crossplane, not of the RBAC manager.",
			extra:  []*unstructured.Unstructured{deployment("crossplane-rbac-manager", "9.9.9", 1), deployment("crossplane", "1.18.0", 1)},
			want:   "Crossplane 1.18.0 stops watching", event: "Warning AdoptionStuck",
		},
		"Unknown": {reason: "The message admits that the version is unknown.", fail: errDown, want: "Crossplane's Deployment can't be read", event: "Warning AdoptionStuck"},
	}, func(t *testing.T, tc args) {
		s := newServer(append(tc.extra, objects...)...)
		if tc.fail != nil {
			s.failOn("list", "deployments", 1<<30, tc.fail)
		}
		a := newFastAdopter(s)
		a.stuckAfter, a.requestAfter = tc.stuck, time.Hour
		for range 2 {
			plans, err := a.Adopt(t.Context(), hold.Unverified, monday, selector, xp.RefTo(xr))
			must(t, err)
			if got := waiting(plans[xp.RefTo(child).ID()]); tc.want == "" && strings.Contains(got, "Deployment") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nthe plan waits for %q", tc.reason, got)
			}
		}
		if h, err := hold.Of(s.get(t, xorders, "", "c")); err != nil || !strings.Contains(h.Reason, tc.want) {
			t.Errorf("%s\nhold %+v, error %v", tc.reason, h, err)
		}
		var told []string
		for _, e := range withoutMessages(s.writtenEvents()) {
			if event, about := strings.CutSuffix(e, " c"); about {
				told = append(told, event)
			}
		}
		same(t, []string{"Normal Held", tc.event}, told, tc.reason)
	})
}

// A poll lists kinds. It reads no object separately that has not changed since, and goes on if a
// request fails.
func TestAdoptRequestsListedObjects(t *testing.T) {
	forbidden, conflict := apierrors.NewForbidden(xorders.GroupResource(), "x", errDown), apierrors.NewConflict(xorders.GroupResource(), "x", errDown)
	for name, fails := range map[string]map[string]error{"Accepted": {}, "Refused": {"patch": forbidden}, "Unreadable": {"get": forbidden, "patch": conflict}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				objects, _, xr, _ := restoredTree()
				s := newServer(objects...)
				for verb, err := range fails {
					s.failOn(verb, "xorders", 1<<30, err)
				}
				a := newFastAdopter(s)
				a.requestAfter, a.stuckAfter = 0, time.Hour
				if p := adoptWith(t, a, hold.Unverified, xr); p.Done {
					t.Errorf("got %+v", p)
				}
				asked := 0
				for _, action := range s.Actions() {
					if isRequest(action, "") {
						asked++
					}
					if action.Matches("get", "xorders") {
						t.Error("a poll must not get a single XR")
					}
				}
				if len(fails) == 0 && (asked == 0 || asked%2 != 0) {
					t.Errorf("each request for a reconcile must be removed, but there are %d writes", asked)
				}
			})
		})
	}
}

func TestIsDue(t *testing.T) {
	a := NewAdopter(nil, discardLog())
	for age, want := range map[time.Duration]bool{
		time.Second: false, 10 * time.Second: true, 25 * time.Second: true, 9 * time.Minute: true,
		11*time.Minute + 10*time.Second: true, 11*time.Minute + 30*time.Second: false,
	} {
		if got := a.isDue(age); got != want {
			t.Errorf("after %s of silence: %v", age, got)
		}
	}
}

// A released object waits for Crossplane's reconcile, whichever restore has created it. An object
// that no restore has created does not.
func TestAdoptWaitsAfterTheRelease(t *testing.T) {
	for label, done := range map[string]bool{"velero.io/restore-name": false, "theirs": true} {
		bubble(t, func(t *testing.T) {
			xr := xptest.XR("x", xptest.Labelled(label, "sunday"), xptest.Generation(2), xptest.Reconciled(), xptest.OfGeneration(1))
			if p := adopt(t, newServer(xr), xr); p.Done != done {
				t.Errorf("with the label %s: got %+v", label, p)
			}
		})
	}
}

func xrd(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.XRD("xorders.example.org", append([]xptest.Option{xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"}},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}`)}, o...)...)
}

// A Usage that an XR left behind is reported when the XR is adopted, with an Event, and in each
// later poll. Usages are listed once in a poll.
func TestAdoptReportsLeftovers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		objects, _, xr, _ := restoredTree()
		usage := func(name string, o ...xptest.Option) *unstructured.Unstructured {
			return xptest.Object(usages.GroupVersion().String(), "Usage", "", name, append([]xptest.Option{
				xptest.JSON(`{"spec":{"of":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","resourceRef":{"name":"b"}}}}`),
			}, o...)...)
		}
		s := newPlatform(append(objects, xrd(), usage("left", xptest.ControlledBy(xr)), usage("own"))...)
		simulateCrossplane(s)
		for i := range 2 {
			p := adopt(t, s, xr)
			if !p.Done || len(p.Remarks) != 1 || !strings.HasPrefix(p.Remarks[0].String(), "Usage left: XOrder x composed it") {
				t.Fatalf("got %+v", p)
			}
			told := slices.DeleteFunc(s.writtenEvents(), func(e string) bool { return !strings.Contains(e, "UsagesLeftBehind") })
			same(t, []string{"Warning UsagesLeftBehind x: " + p.Remarks[0].String()}, told, "one Event when the XR is adopted, and no more")
			if n := strings.Count(strings.Join(s.requests("list"), "\n"), "usages"); n != i+1 {
				t.Errorf("poll %d: Usages were listed %d times", i, n)
			}
		}
		s = newPlatform(append(objects, xrd())...)
		simulateCrossplane(s)
		s.failOn("list", usages.Resource, 1, errDown)
		done(t, adopt(t, s, xr))
	})
}

// An XR with a terminating XRD is not unpaused.
func TestAdoptWaitsForThePlatform(t *testing.T) {
	bubble(t, func(t *testing.T) {
		objects, _, xr, _ := restoredTree()
		objects[5] = xptest.With(objects[5], xptest.JSON(`{"spec":{"pipeline":[{"functionRef":{"name":"f"}}]}}`))
		s := newPlatform(append(objects, xrd(xptest.Deleting()))...)
		simulateCrossplane(s)
		why := waiting(adopt(t, s, xr))
		for _, want := range []string{"its XRD xorders.example.org is being deleted", "Function f: the pipeline of XOrder x calls it, and it is not installed"} {
			if !strings.Contains(why, want) {
				t.Errorf("the plan must wait with %q: %s", want, why)
			}
		}
		if patched := s.steps(); len(patched) > 0 {
			t.Errorf("nothing may be released; got %v", patched)
		}
		s.failOn("list", functions.Resource, 1, errDown)
		if _, err := newFastAdopter(s).Adopt(t.Context(), hold.Unverified, monday, selector, xp.RefTo(xr)); err == nil {
			t.Error("without an answer the plan must fail")
		}
	})
}

// A user may delete an XRD during a restore, which takes minutes.
func TestTerminating(t *testing.T) {
	order, other := schema.GroupKind{Group: "example.org", Kind: "XOrder"}, schema.GroupKind{Group: "example.org", Kind: "XOther"}
	bubble(t, func(t *testing.T) {
		s := newPlatform(xrd())
		s.failOn("list", xrds.Resource, 1, errDown)
		c := s.cluster()
		if _, err := c.Terminating(t.Context(), order); err == nil {
			t.Error("a failed list must be an error")
		}
		for _, tc := range []struct {
			reason string
			after  time.Duration
			want   bool
			lists  int
		}{
			{reason: "A failed list must be repeated. The XRD is not being deleted.", lists: 2},
			{reason: "The cache is valid for a while.", after: definitionsTTL / 2, lists: 2},
			{reason: "The cache expires.", after: definitionsTTL, want: true, lists: 3},
			{reason: "One list serves all.", want: true, lists: 3},
		} {
			time.Sleep(tc.after)
			if got, err := c.Terminating(t.Context(), order); err != nil || (got != nil) != tc.want || s.count("list", "compositeresourcedefinitions ") != tc.lists {
				t.Errorf("%s Got %v, %v, with %v", tc.reason, got, err, s.requests("list"))
			}
			if got, err := c.Terminating(t.Context(), other); err != nil || got != nil {
				t.Errorf("The kind has no XRD: %v, %v", got, err)
			}
			s.put(xrds, xrd(xptest.Deleting()))
		}
		if got, err := newServer().cluster().Terminating(t.Context(), order); got != nil || err != nil {
			t.Errorf("without Crossplane no XRD is being deleted: %v, %v", got, err)
		}
	})
}

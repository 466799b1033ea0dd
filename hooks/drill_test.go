package hooks

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// earlierDrill is the Restore of an earlier drill.
const earlierDrill = "drill-nightly-20260102030405"

// byDrill returns u as an earlier drill brought it.
func byDrill(u *unstructured.Unstructured, h adoption.Hold, o ...xptest.Option) *unstructured.Unstructured {
	u = xptest.With(u, xptest.Labelled(xp.LabelRestore, earlierDrill))
	h.Restore, h.Since, h.Quarantine = "velero/"+earlierDrill, "2026-01-02T03:04:05Z", true
	if _, err := adoption.Put(u, h); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, append(o, xptest.SeenPaused())...)
}

// drillServer returns a server whose Velero runs the plugin or not, and that ends each new Restore in a phase.
func drillServer(plugin bool, phase string, restores func(s *server, name string), objects ...*unstructured.Unstructured) *server {
	s := handoverServer(nil, objects...)
	request := func() *unstructured.Unstructured {
		name := "velero.io/pod"
		if plugin {
			name = adoption.ActionAdopt
		}

		return xptest.Object("velero.io/v1", "ServerStatusRequest", "velero", "r", xptest.Field("Processed", "status", "phase"),
			xptest.Field([]any{map[string]any{"name": name, "kind": "RestoreItemActionV2"}}, "status", "plugins"))
	}
	s.PrependReactor("*", "serverstatusrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return true, request(), nil })
	s.PrependReactor("patch", "restores", s.patchConfigMap)
	s.PrependReactor("create", "restores", func(action clienttesting.Action) (bool, runtime.Object, error) {
		u := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured) //nolint:forcetypeassert // The client has no other type.
		u = xptest.With(u, xptest.Version("1"), xptest.Field(phase, "status", "phase"))
		err := s.Tracker().Create(action.GetResource(), u, u.GetNamespace())
		if err == nil && restores != nil {
			restores(s, u.GetName())
		}

		return true, u, err
	})

	return s
}

func nightlyBackup(age time.Duration) *unstructured.Unstructured {
	return xptest.Object("velero.io/v1", "Backup", "velero", "nightly-1", xptest.Labelled("velero.io/schedule-name", "nightly"),
		xptest.Field("Completed", "status", "phase"), xptest.Field(time.Now().Add(-age).UTC().Format(time.RFC3339), "status", "startTimestamp"))
}

// A drillRunResult is what a drill has done.
type drillRunResult struct {
	Code  int
	Codes []string
	// Passed is the result on the Restore; "" if there is no new one.
	Passed string
	// Left are the claims, XRs and MRs that exist afterwards.
	Left []string
}

func TestDrillRun(t *testing.T) {
	a := newLiveTree("1")
	claim, xr, mr := byDrill(a.claim, adoption.Hold{}), byDrill(a.xr, adoption.Hold{}), byDrill(a.mr, adoption.Hold{})
	edited := xptest.With(mr, xptest.Field([]any{
		map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": xptest.ManagedVersion, "time": "2026-01-02T04:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}},
	}, "metadata", "managedFields"))
	forged := xptest.With(newLiveTree("2").mr, xptest.Labelled(xp.LabelRestore, earlierDrill))
	earlier := xptest.Object("velero.io/v1", "Restore", "velero", earlierDrill, xptest.Labelled(adoption.LabelDrill, "nightly"), xptest.Field("Completed", "status", "phase"))
	byHand := xptest.Object("velero.io/v1", "Restore", "velero", earlierDrill, xptest.Field("Completed", "status", "phase"))
	brings := func(s *server, name string, u *unstructured.Unstructured) {
		u = xptest.With(u, xptest.Labelled(xp.LabelRestore, name))
		if _, err := adoption.Put(u, adoption.Hold{Restore: "velero/" + name, Since: "2026-01-02T03:04:05Z", Quarantine: true}); err != nil {
			panic(err) // The test is wrong.
		}
		if err := markKey.Sign(u, u.GetNamespace()); err != nil {
			panic(err) // The test is wrong.
		}
		if err := s.Tracker().Add(xptest.With(u, xptest.SeenPaused(), xptest.Version("1"))); err != nil {
			panic(err) // The test is wrong.
		}
	}
	comesBack := func(s *server, name string) { // The Restore brings an MR into quarantine.
		brings(s, name, xptest.MR("back", xptest.Annotated(xp.AnnotationExternalName, "e")))
	}
	var taken []*unstructured.Unstructured // The names of drills that begin within the next seconds.
	for n := range 5 {
		taken = append(taken, xptest.Object("velero.io/v1", "Restore", "velero", adoption.DrillName("nightly", time.Now().Add(time.Duration(n)*time.Second)),
			xptest.Field("Completed", "status", "phase")))
	}
	cases := map[string]struct {
		reason string
		noBack bool
		// listsMore brings an XR, too, whose MR does not come back.
		listsMore bool
		without   bool
		keep      bool
		phase     string
		age       time.Duration
		objects   []*unstructured.Unstructured
		want      drillRunResult
	}{
		"Passed": {reason: "What has come back is removed.", want: drillRunResult{Passed: "passed"}},
		"Kept":   {reason: "A user wants to look.", keep: true, want: drillRunResult{Passed: "passed", Left: []string{"Bucket back"}}},
		"Earlier": {
			reason: "What an earlier drill left is removed, although Velero has deleted its Restore.", objects: []*unstructured.Unstructured{claim, xr, mr},
			want: drillRunResult{Passed: "passed"},
		},
		"Labelled": {
			reason: "The Restore of the earlier drill exists.", objects: []*unstructured.Unstructured{earlier, mr}, want: drillRunResult{Passed: "passed"},
		},
		"ByHand": {
			reason: "A user made a Restore of such a name.", objects: []*unstructured.Unstructured{byHand, mr},
			want: drillRunResult{Passed: "passed", Left: []string{"Bucket b1"}},
		},
		"Edited": {
			reason: "What a user has changed stays, and so does what composes it.", objects: []*unstructured.Unstructured{claim, xr, edited},
			want: drillRunResult{Passed: "passed", Codes: []string{"DrillNotRemoved"}, Left: []string{"Bucket b1", "OrderClaim o1", "XOrder x1"}},
		},
		"Forged": {
			reason: "Any user can write the label, but not a mark.", objects: []*unstructured.Unstructured{forged},
			want: drillRunResult{Passed: "passed", Codes: []string{"DrillNotRemoved"}, Left: []string{"Bucket b2"}},
		},
		"SameSecond": {reason: "Another drill began in the same second.", objects: taken, want: drillRunResult{Passed: "passed"}},
		"Nothing": {
			reason: "Nothing of Crossplane has come back.", noBack: true, want: drillRunResult{Code: ExitProblems, Passed: "failed", Codes: []string{"NotFound"}},
		},
		"Dangling": {
			reason: "Crossplane would create another Bucket.", listsMore: true,
			want: drillRunResult{Code: ExitProblems, Passed: "failed", Codes: []string{"Dangling"}, Left: []string{"Bucket back", "XOrder lists"}},
		},
		"Failed": {
			reason: "The Restore has errors. What it brought stays for a look.", phase: "PartiallyFailed",
			want: drillRunResult{Code: ExitProblems, Passed: "failed", Codes: []string{"RestoreNotCompleted"}, Left: []string{"Bucket back"}},
		},
		"Late": {
			reason: "The Restore is not over in time.", phase: "InProgress",
			want: drillRunResult{Code: ExitTimeout, Passed: "failed", Codes: []string{"TimedOut"}, Left: []string{"Bucket back"}},
		},
		"Overdue":  {reason: "The newest backup is too old.", age: 48 * time.Hour, want: drillRunResult{Code: ExitProblems, Codes: []string{"BackupOverdue"}}},
		"NoPlugin": {reason: "Nothing would be held.", without: true, objects: []*unstructured.Unstructured{mr}, want: drillRunResult{Code: ExitFailed, Left: []string{"Bucket b1"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			back := comesBack
			switch {
			case tc.noBack:
				back = nil
			case tc.listsMore:
				back = func(s *server, name string) {
					comesBack(s, name)
					brings(s, name, xptest.XR("lists", xptest.Refs(xptest.MR("left-out"))))
				}
			}
			phase := tc.phase
			if phase == "" {
				phase = "Completed"
			}
			s := drillServer(!tc.without, phase, back, append(slices.Clone(tc.objects), nightlyBackup(tc.age))...)
			store, dir := memory{}, t.TempDir()
			got, problems := s.drill(t, store, dir, tc.keep)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s\n%s", tc.reason, diff, problems)
			}
			if tc.without {
				return
			}
			var latest report.Drill
			if err := json.Unmarshal([]byte(store["drills/nightly/latest.json"]), &latest); err != nil || latest.Passed != (got.Code == ExitFine) {
				t.Errorf("%s: the last result is %+v, %v", tc.reason, latest, err)
			}
			if _, ok := store["drills/nightly/passed.json"]; ok != latest.Passed {
				t.Errorf("%s: the file with the last that passed exists: %t", tc.reason, ok)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "drill-nightly-*")); len(files) != 3 || len(store) < 4 {
				t.Errorf("%s: the files are %v, and the bucket has %d", tc.reason, files, len(store))
			}
		})
	}
}

// drill runs a drill.
func (s *server) drill(t *testing.T, store memory, dir string, keep bool) (got drillRunResult, problems string) {
	t.Helper()
	var out, errs bytes.Buffer
	o := newOptions(Streams{Out: &out, Err: &errs})
	o.velero = "velero"
	file := filepath.Join(t.TempDir(), "restore.yaml")
	// The fake cluster has no list of what is in a backup, with which a Restore that selects by label is not compared.
	if err := os.WriteFile(file, []byte("apiVersion: velero.io/v1\nkind: Restore\nspec: {scheduleName: nightly, labelSelector: {matchLabels: {a: b}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &drillRun{
		options: o, out: output{format: printer.JSON}, file: file, maxAge: time.Hour, timeout: 10 * time.Millisecond, pause: time.Millisecond, gone: time.Second,
		keep: keep, dir: dir, bucket: storeFlags{location: "default"},
	}
	d.bucket.open = func(*velerov1.BackupStorageLocation, string, string) (reportStore, error) { return store, nil }
	if err := s.Tracker().Add(xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default")); err != nil {
		t.Fatal(err)
	}
	err := d.prepare()
	if err == nil {
		err = failed(d.run(t.Context(), live.NewCluster(s, s)))
	}
	o.printError(err)
	got.Code = codeOf(err)
	var r report.Report
	if json.Unmarshal(out.Bytes(), &r) == nil {
		for _, p := range r.Problems {
			if code := string(p.Code); !slices.Contains(got.Codes, code) {
				got.Codes = append(got.Codes, code)
			}
		}
	}
	if name := d.result.Restore; name != "" {
		got.Passed = xp.Label(s.get(t, velerov1.SchemeGroupVersion.WithResource("restores"), "velero", name), adoption.LabelDrillResult)
	}
	buckets := schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "buckets"}
	for _, gvr := range []schema.GroupVersionResource{buckets, xorders, claims} {
		list, err := s.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			got.Left = append(got.Left, list.Items[i].GetKind()+" "+list.Items[i].GetName())
		}
	}
	slices.Sort(got.Left)

	return got, errs.String() + out.String()
}

func TestDrillStatus(t *testing.T) {
	now := time.Now().UTC()
	restore := func(name, result string, age time.Duration) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", "Restore", "velero", name, xptest.Labelled(adoption.LabelDrill, "nightly"), xptest.Labelled(adoption.LabelDrillResult, result),
			xptest.Field(now.Add(-age).Format(time.RFC3339), "status", "completionTimestamp"))
	}
	running := xptest.Object("velero.io/v1", "Restore", "velero", "c", xptest.Labelled(adoption.LabelDrill, "nightly"))
	file := func(age time.Duration) string {
		return `{"restore":"a","passed":true,"ended":"` + now.Add(-age).Format(time.RFC3339) + `"}`
	}
	cases := map[string]struct {
		reason       string
		objects      []*unstructured.Unstructured
		store        memory
		code         int
		last, passed string
	}{
		"Passed":  {reason: "One has passed in time.", objects: []*unstructured.Unstructured{restore("a", "passed", time.Minute)}, last: "a", passed: "a"},
		"Failed":  {reason: "The last one has failed, and one before it has passed.", objects: []*unstructured.Unstructured{restore("a", "passed", time.Minute), restore("b", "failed", 0)}, last: "b", passed: "a"},
		"Overdue": {reason: "It is too long ago.", objects: []*unstructured.Unstructured{restore("a", "passed", 2*time.Hour)}, code: ExitProblems, last: "a", passed: "a"},
		"Running": {reason: "A drill without a result has not passed.", objects: []*unstructured.Unstructured{running}, code: ExitProblems},
		"None":    {reason: "There was none.", code: ExitProblems},
		"Bucket":  {reason: "The bucket has the result of another cluster.", store: memory{"drills/nightly/latest.json": file(0), "drills/nightly/passed.json": file(0)}, last: "a", passed: "a"},
		"Empty":   {reason: "There is nothing in the bucket.", objects: []*unstructured.Unstructured{restore("a", "passed", 0)}, store: memory{}, code: ExitProblems},
		"Broken":  {reason: "A result that can't be read is no result.", store: memory{"drills/nightly/latest.json": "{"}, code: ExitFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(slices.Clone(tc.objects), xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default"))...)
			var out bytes.Buffer
			o := newOptions(Streams{Out: &out, Err: &out})
			o.velero = "velero"
			d := &drillStatus{options: o, out: output{format: printer.JSON}, schedule: "nightly", within: time.Hour}
			if tc.store != nil {
				d.bucket.location = "default"
				d.bucket.open = func(*velerov1.BackupStorageLocation, string, string) (reportStore, error) { return tc.store, nil }
			}
			if err := failed(d.run(t.Context(), live.NewCluster(s, s))); codeOf(err) != tc.code {
				t.Fatalf("%s: exit %d, %v", tc.reason, codeOf(err), err)
			}
			var got drillState
			if err := json.Unmarshal(out.Bytes(), &got); err != nil && tc.code != ExitFailed {
				t.Fatal(err)
			}
			for what, one := range map[string]*report.Drill{tc.last: got.Last, tc.passed: got.Passed} {
				if one == nil && what != "" || one != nil && one.Restore != what {
					t.Errorf("%s: %s", tc.reason, out.String())
				}
			}
			out.Reset()
			d.out.format = printer.OpenMetrics
			if err := failed(d.run(t.Context(), live.NewCluster(s, s))); codeOf(err) != tc.code {
				t.Fatalf("%s: as metrics: exit %d, %v", tc.reason, codeOf(err), err)
			}
			overdue := map[int]string{ExitFine: "0.0", ExitProblems: "1.0"}[tc.code]
			if want := `crossplane_restore_drill_overdue{schedule="nightly"} ` + overdue; overdue != "" && !strings.Contains(out.String(), want) {
				t.Errorf("%s: want %q in the metrics, got %q", tc.reason, want, out.String())
			}
			if overdue == "" && out.Len() > 0 {
				t.Errorf("%s: metrics must be complete or absent, got %q", tc.reason, out.String())
			}
		})
	}
}

package hooks

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/guard"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestGuardStatusAndOff(t *testing.T) {
	whole := guard.Guard{Kinds: []string{"*.example.org"}, Users: []string{"u"}, CreatedBy: "alice", Since: "monday"}
	part := whole
	part.Kinds = []string{"orderclaims.example.org"}
	weak := whole.Objects("")
	weak[0] = xptest.With(weak[0], xptest.Field("Ignore", "spec", "failurePolicy"))
	broken := whole.Objects("")
	broken[0] = xptest.With(broken[0], xptest.Annotated(guard.Annotation, "no JSON"))
	let := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.XR(name, append(o, xptest.Annotated(guard.AnnotationPaused, "true"), xptest.Annotated(xp.AnnotationPaused, "true"))...)
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		code    int
		status  []string
		off     []string
	}{
		"Up":      {reason: "The guard covers every kind.", objects: whole.Objects(""), status: []string{"the API server refuses what they create", "*.example.org"}, off: []string{"The guard is down"}},
		"Down":    {reason: "Without a guard everybody can create objects.", code: ExitProblems, status: []string{"everybody can create"}, off: []string{"There is no guard."}},
		"Part":    {reason: "The guard misses one kind.", objects: part.Objects(""), code: ExitProblems, status: []string{"NOT GUARDED", "xorders.example.org", "guard on"}},
		"Weak":    {reason: "Another writer changed the guard's policy.", objects: weak, code: ExitProblems, status: []string{"CHANGED", guard.KindValidating}, off: []string{"The guard is down"}},
		"Broken":  {reason: "Another writer changed the guard's description of itself.", objects: broken, code: ExitProblems, status: []string{"CHANGED", guard.KindValidating}, off: []string{"The guard is down"}},
		"Unbound": {reason: "A policy without its binding has no effect.", objects: whole.Objects("")[:1], code: ExitProblems, status: []string{"CHANGED", guard.KindValidatingBinding}},
		"Paused": {
			reason:  "guard off must unpause what the guard let in, unless a restore holds it.",
			objects: append(whole.Objects(""), let("x"), restored(let("y"), adoption.Hold{})),
			off:     []string{"XOrder x is not paused any more", "XOrder y stays paused"},
		},
		"Restoring": {
			reason: "guard off must warn while a restore runs.",
			objects: append(whole.Objects(""), xptest.Object("velero.io/v1", "Restore", "velero", "over", xptest.Field("Completed", "status", "phase")),
				xptest.Object("velero.io/v1", "Restore", "velero", "monday", xptest.Field("InProgress", "status", "phase"))),
			off: []string{"velero/monday is still running (InProgress)", "The guard is down"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := guardedServer(false, append(tc.objects, xrdOf("example.org"))...)
			o := &options{Streams: Streams{Out: &out, Err: &out}, velero: "velero"}
			cluster := live.NewCluster(s, s)
			err := (&guardStatus{options: o, out: output{format: printer.Table}}).run(t.Context(), cluster)
			if codeOf(failed(err)) != tc.code {
				t.Errorf("%s got %v, want code %d", tc.reason, err, tc.code)
			}
			if err := o.guardOff(t.Context(), cluster, proberOf(cluster)); err != nil {
				t.Errorf("%s got %v", tc.reason, err)
			}
			for _, must := range append(tc.status, tc.off...) {
				if !strings.Contains(out.String(), must) {
					t.Errorf("%s %q is not in:\n%s", tc.reason, must, out.String())
				}
			}
			if diff := cmp.Diff(guard.Guard{}, s.up(t)); diff != "" {
				t.Errorf("The guard must be down: -want, +got:\n%s", diff)
			}
		})
	}
}

// A user who waits for the adoption must not forget the guard.
func TestWaitWithGuard(t *testing.T) {
	whole := guard.Guard{Kinds: []string{"*.example.org"}, Users: []string{"u"}, CreatedBy: "alice", Since: "monday"}
	late := &exit{code: ExitTimeout}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		old     bool
		off     bool
		err     error
		up      bool
		want    string
	}{
		"Off":     {reason: "The option must take the guard down.", objects: whole.Objects(""), off: true, want: "The guard is down"},
		"NoGuard": {reason: "The option must accept that there is no guard.", off: true, want: "There is no guard"},
		"Up":      {reason: "Without the option the command must name the guard.", objects: whole.Objects(""), up: true, want: "The guard is still up"},
		"Late":    {reason: "An object that is not adopted still needs the guard.", objects: whole.Objects(""), off: true, err: late, up: true, want: "The guard is still up"},
		"Without": {reason: "Without a guard the command must print nothing."},
		"Old":     {reason: "A cluster without admission policies can have no guard.", old: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := guardedServer(tc.old, tc.objects...)
			w := &wait{options: &options{Streams: Streams{Out: &out, Err: &out}, velero: "velero"}}
			if err := w.guarded(t.Context(), live.NewCluster(s, s), tc.off, tc.err); !errors.Is(err, tc.err) {
				t.Errorf("%s got %v, want %v", tc.reason, err, tc.err)
			}
			if tc.want == "" && out.String() != "" || !strings.Contains(out.String(), tc.want) {
				t.Errorf("%s got %q, want %q", tc.reason, out.String(), tc.want)
			}
			if up := s.up(t).CreatedBy != ""; up != tc.up {
				t.Errorf("%s up is %v", tc.reason, up)
			}
		})
	}
}

// Objects that a Restore has not created yet still need the guard.
func TestWaitForRestores(t *testing.T) {
	of := func(name, phase string) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", "Restore", "velero", name, xptest.Field(phase, "status", "phase"))
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		name    string
		want    []string
	}{
		"None":  {reason: "The cluster may have no Restore."},
		"Over":  {reason: "A finished Restore is not under way.", objects: []*unstructured.Unstructured{of("a", "Completed"), of("b", "PartiallyFailed")}},
		"Busy":  {reason: "One of the Restores is still running.", objects: []*unstructured.Unstructured{of("a", "InProgress"), of("b", "Completed")}, want: []string{"Restore velero/a: it is InProgress [RestoreRunning]"}},
		"New":   {reason: "A new Restore has not begun.", objects: []*unstructured.Unstructured{of("a", "")}, want: []string{"Restore velero/a: it is New [RestoreRunning]"}},
		"Named": {reason: "The status of other Restores must not matter.", objects: []*unstructured.Unstructured{of("a", "InProgress"), of("b", "Completed")}, name: "b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.objects...)
			w := &wait{options: &options{velero: "velero"}}
			var got []string
			for _, p := range w.restoresIn(live.NewCluster(s, s), tc.name)(t.Context()) {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateNamesGuard(t *testing.T) {
	whole := guard.Guard{Kinds: []string{"*.example.org"}, Users: []string{"u"}, CreatedBy: "alice", Since: "monday"}
	now := time.Now()
	over := map[string]report.Restore{"velero/r": {Phase: "Completed", Started: &now}}
	foreign := xptest.Object(guard.Group+"/v1", guard.KindValidating, "", guard.Name)
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		old     bool
		survey  live.Survey
		want    []report.Severity
	}{
		"Left":    {reason: "The Restore is over, and the guard is still up.", objects: whole.Objects(""), survey: live.Survey{Restores: over}, want: []report.Severity{report.Error}},
		"Before":  {reason: "The guard waits for the Restore.", objects: whole.Objects(""), survey: live.Survey{Restores: map[string]report.Restore{}}, want: []report.Severity{report.Warning}},
		"Unread":  {reason: "Without the Restores the state is unknown.", objects: whole.Objects(""), survey: live.Survey{Restores: over, Unread: errors.New("forbidden")}, want: []report.Severity{report.Warning}},
		"Foreign": {reason: "A policy of another owner is not the guard.", objects: []*unstructured.Unstructured{foreign}},
		"None":    {reason: "Without a guard there is nothing to report."},
		"Old":     {reason: "A cluster without admission policies can have no guard.", old: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := guardedServer(tc.old, tc.objects...)
			var got []report.Severity
			for _, p := range (&validation{cluster: live.NewCluster(s, s)}).guard(t.Context(), &tc.survey) {
				got = append(got, p.Severity)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGuardUsage(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Off":       {reason: "The cluster has one guard, so taking it down for one namespace would take it down for all.", args: []string{"guard", "off", "-n", "a"}, want: "there is one guard"},
		"Status":    {reason: "The cluster has one guard, so a status of one namespace would mislead.", args: []string{"guard", "status", "-n", "a"}, want: "there is one guard"},
		"Kind":      {reason: "A kind needs its group.", args: []string{"guard", "on", "--kind", "pods"}, want: "PLURAL.GROUP"},
		"Namespace": {reason: "The namespace must have a valid name.", args: []string{"guard", "on", "-n", "A"}, want: "the name is not valid"},
		"User":      {reason: "The user must have a name.", args: []string{"guard", "on", "--allow-user", ""}, want: "cannot allow the user"},
		"Unknown":   {reason: "The error must name the unknown subcommand.", args: []string{"guard", "up"}, want: "unknown command"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if r := command(t, nil, tc.args...); r.code != ExitUsage || !strings.Contains(r.err, tc.want) {
				t.Errorf("%s got code %d, %s", tc.reason, r.code, r.err)
			}
		})
	}
}

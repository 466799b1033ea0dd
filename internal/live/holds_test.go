package live

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestSurveyOfHolds(t *testing.T) {
	tree := claimed("team-a", "a")
	for i, u := range tree[:2] {
		tree[i] = xptest.With(restored(u), xptest.Labelled(xp.LabelClaimNamespace, "team-a"))
	}
	restore := xptest.Object("velero.io/v1", "Restore", "velero", "monday", xptest.JSON(`{"spec":{"backupName":"b"},"status":{"phase":"WaitingForPluginOperations"}}`))
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		change  func(s *server)
		// want are the problems, and waits is what the XR's plan waits for, "" if it has no plan.
		want  []string
		waits string
	}{
		"UnderWay": {
			reason: "The plugin reads what a held object needs.", objects: append(tree[:3:3], restore),
			want: []string{"Held OrderClaim team-a/a", "Held XOrder xa"}, waits: "CompositionRevision " + xptest.RevisionName,
		},
		"Gone": {
			reason: "A hold without its Restore is leaked.", objects: tree, want: []string{"LeakedHold OrderClaim team-a/a", "LeakedHold XOrder xa"},
			waits: "CompositionRevision " + xptest.RevisionName,
		},
		"RestoresForbidden": {
			reason: "Without the Restores the plugin can't know whether a hold is leaked.", objects: tree, change: func(s *server) { forbid(s, "restores") },
			want: []string{"Held OrderClaim team-a/a", "Held XOrder xa", "NotRead Restore *"}, waits: "CompositionRevision " + xptest.RevisionName,
		},
		"RevisionsForbidden": {
			reason: "An object without read access must not count as missing.", objects: append(tree[:3:3], restore), change: func(s *server) { forbid(s, "compositionrevisions") },
			want: []string{"Held OrderClaim team-a/a", "Held XOrder xa", "NotRead CompositionRevision *"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := surveyed(tc.objects...)
			if tc.change != nil {
				tc.change(s)
			}
			got := survey(t, s, Scope{})
			if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
				t.Errorf("%s\nproblems: -want, +got:\n%s", tc.reason, diff)
			}
			plan, planned := got.State.Plans[xp.RefTo(tree[1]).ID()]
			if waits := strings.Join(reason.Strings(plan.Waiting), "\n"); planned != (tc.waits != "") || !strings.Contains(waits, tc.waits) {
				t.Errorf("%s\ngot the plan %+v", tc.reason, plan)
			}
		})
	}
}

func forbid(s *server, resource string) {
	s.failOn("list", resource, 1<<30, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errDown))
}

func TestSurveyReadsNoSecrets(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	secret := xptest.Object("v1", "Secret", "team-a", "s", xptest.ControlledBy(x), xptest.Labelled(xp.LabelComposite, "x"),
		xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", `{"data":{"password":"x"}}`), xptest.Field(map[string]any{"password": "x"}, "data"))
	s := surveyed(xptest.With(x, xptest.Refs(secret)), secret)
	c := s.cluster()
	c.metadataPages = metadataOf(secret)
	got, err := c.Survey(context.Background(), Scope{Velero: "velero"})
	if err != nil {
		t.Fatal(err)
	}
	u := got.Get(xp.RefTo(secret))
	if u == nil || u.Object["data"] != nil || len(u.GetAnnotations()) != 0 {
		t.Errorf("a Secret must keep its owner and nothing else; got %v", u)
	}
	if p := problems(got); len(p) > 0 {
		t.Errorf("the tree must have no problems; got %v", p)
	}
	if asked := s.requests("list"); slices.ContainsFunc(asked, func(s string) bool { return strings.HasPrefix(s, "secrets") }) {
		t.Errorf("no Secret may be read; requested %v", asked)
	}
}

func TestRoots(t *testing.T) {
	objects := append(claimed("team-a", "a"), claimed("team-b", "b")...)
	cases := map[string]struct {
		reason string
		in     Places
		change func(s *server)
		want   []string
		kinds  int
		unread int
	}{
		"Everywhere": {reason: "The scope has claims and XRs, and nothing else.", want: []string{"OrderClaim team-a/a", "OrderClaim team-b/b", "XOrder xa", "XOrder xb"}, kinds: 2},
		"Namespace":  {reason: "A scope of one namespace has no cluster-scoped objects.", in: Places{Namespaces: []string{"team-a"}}, want: []string{"OrderClaim team-a/a"}, kinds: 1},
		"Cluster":    {reason: "A name without a namespace asks for cluster-scoped objects only.", in: Places{Cluster: true}, want: []string{"XOrder xa", "XOrder xb"}, kinds: 1},
		"Mixed": {
			reason: "A scope can have namespaces and cluster-scoped objects.", in: Places{Namespaces: []string{"team-b"}, Cluster: true}, want: []string{"OrderClaim team-b/b", "XOrder xa", "XOrder xb"}, kinds: 2,
		},
		"Forbidden": {
			reason: "A kind without read access does not hide the others.", change: func(s *server) { forbid(s, "xorders") }, want: []string{"OrderClaim team-a/a", "OrderClaim team-b/b"},
			kinds: 1, unread: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := surveyed(objects...)
			if tc.change != nil {
				tc.change(s)
			}
			got, err := s.cluster().Roots(context.Background(), tc.in, "")
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, u := range got.Objects {
				found = append(found, xp.String(u))
			}
			slices.Sort(found)
			if diff := cmp.Diff(tc.want, found); diff != "" || got.Kinds != tc.kinds || len(got.Unread) != tc.unread {
				t.Errorf("%s\n-want, +got:\n%s%+v", tc.reason, diff, got)
			}
		})
	}
}

func TestRestoreNamed(t *testing.T) {
	failed := xptest.Object("velero.io/v1", "Restore", "velero", "monday",
		xptest.JSON(`{"status":{"phase":"FailedValidation","errors":2,"warnings":3,"validationErrors":["no Backup","no Schedule"]}}`))
	other := xptest.Object("velero.io/v1", "Restore", "velero", "tuesday", xptest.JSON(`{"status":{"phase":"Failed","failureReason":"Velero was restarted"}}`))
	cases := map[string]struct {
		reason string
		name   string
		want   *report.Restore
	}{
		"Refused": {reason: "Velero lists what is wrong.", name: "monday", want: &report.Restore{Name: "velero/monday", Phase: "FailedValidation", Errors: 2, Warnings: 3, Failure: "no Backup; no Schedule"}},
		"Failed":  {reason: "Velero has one reason.", name: "tuesday", want: &report.Restore{Name: "velero/tuesday", Phase: "Failed", Failure: "Velero was restarted"}},
		"None":    {reason: "Nothing has the name.", name: "wednesday"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := surveyed(failed, other).cluster().RestoreNamed(t.Context(), "velero", tc.name)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s %v\n-want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

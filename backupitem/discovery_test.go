package backupitem

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// backedUpAt returns when the backups of these tests start.
func backedUpAt() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// definition returns an XRD whose kinds were served that long before the backup.
func definition(name, kind, claimKind, version string, before time.Duration) *unstructured.Unstructured {
	since := backedUpAt().Add(-before).Format(time.RFC3339)

	return xptest.XRD(name, xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"`+kind+`"},"claimNames":{"kind":"`+claimKind+`"},
		"versions":[{"name":"`+version+`","served":true}]},"status":{"conditions":[{"type":"Established","status":"True","lastTransitionTime":"`+since+`"},
		{"type":"Offered","status":"True","lastTransitionTime":"`+since+`"}]}}`))
}

// inStep is the clock of an API server that is in step with Velero's.
func inStep(own time.Time) time.Time { return own }

// A lister lists objects, and fails for one kind.
type lister struct {
	*cluster

	failing string
	err     error
}

func (l *lister) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if gvk.Kind == l.failing {
		return l.err
	}

	return l.cluster.Each(ctx, gvk, namespace, options, do)
}

func TestDiscovery(t *testing.T) {
	x, claim := xptest.XR("x"), xptest.Claim("o")
	legacy := func(before time.Duration) *unstructured.Unstructured {
		return definition("xorders.example.org", xptest.LegacyKind, xptest.ClaimKind, "v1alpha1", before)
	}
	long := func() (time.Time, error) { return backedUpAt().Add(-time.Hour), nil }
	const recent = `1 of kind OrderClaim.example.org in namespace team-a can be missing in this backup: the XRD xorders.example.org is from 11:58:00, and Velero looks for new ` +
		`kinds every 5 minutes. Back up again after 12:03:15, or restart the Velero server first [KindTooNew]`
	cases := map[string]struct {
		reason  string
		reader  *lister
		started func() (time.Time, error)
		// ahead is by how much the API server's clock is ahead of Velero's.
		ahead time.Duration
		want  []string
	}{
		"Recent": {
			reason: "Velero may have listed kinds before this XRD, and would report Completed.",
			reader: &lister{cluster: clusterOf(legacy(2*time.Minute), x, claim)}, started: long, want: []string{recent},
		},
		"VeleroAhead": {
			reason: "The clock of Velero's Pod is five minutes fast.", started: long, ahead: -5 * time.Minute,
			reader: &lister{cluster: clusterOf(legacy(7*time.Minute), claim)},
			want: []string{`1 of kind OrderClaim.example.org in namespace team-a can be missing in this backup: the XRD xorders.example.org is from 11:53:00, and Velero looks for new ` +
				`kinds every 5 minutes. Back up again after 11:58:15, or restart the Velero server first [KindTooNew]`},
		},
		"CrossplaneBehind": {
			reason: "The clock of Crossplane's Pod is five minutes slow.", started: long, want: []string{recent},
			reader: &lister{cluster: clusterOf(xptest.With(legacy(7*time.Minute), xptest.Field("2026-01-02T11:58:00Z", "metadata", "creationTimestamp")), claim)},
		},
		"Old": {
			reason: "Velero has listed kinds since the XRD's creation.", reader: &lister{cluster: clusterOf(legacy(5*time.Minute+15*time.Second), claim)}, started: long,
		},
		"JustRecent": {
			reason: "A discovery takes some time itself, so a short margin counts.", reader: &lister{cluster: clusterOf(legacy(5*time.Minute+14*time.Second), claim)}, started: long,
			want: []string{`1 of kind OrderClaim.example.org in namespace team-a can be missing in this backup: the XRD xorders.example.org is from 11:54:46, and Velero looks for ` +
				`new kinds every 5 minutes. Back up again after 12:00:01, or restart the Velero server first [KindTooNew]`},
		},
		"Restarted": {
			reason: "Velero lists kinds when it starts.", reader: &lister{cluster: clusterOf(legacy(2*time.Minute), claim)},
			started: func() (time.Time, error) { return backedUpAt().Add(-time.Minute), nil },
		},
		"NoStart": {
			reason: "Without a start time one needless warning is better than none.", reader: &lister{cluster: clusterOf(legacy(2*time.Minute), claim)},
			started: func() (time.Time, error) { return backedUpAt(), errAPI }, want: []string{recent},
		},
		"Empty": {reason: "Without claims and XRs the backup misses nothing.", reader: &lister{cluster: clusterOf(legacy(time.Minute))}, started: long},
		"Elsewhere": {
			reason: "The backup of another namespace warns of its own claims.",
			reader: &lister{cluster: clusterOf(legacy(time.Minute), xptest.Claim("o", xptest.In("b")))}, started: long,
		},
		"NoCrossplane": {
			reason: "A cluster without Crossplane has no XRs.", started: long,
			reader: &lister{cluster: clusterOf(), failing: "CompositeResourceDefinition", err: &meta.NoKindMatchError{}},
		},
		"NoXRDs": {
			reason: "A cluster that deletes Crossplane's CRDs has no XRs.", started: long,
			reader: &lister{cluster: clusterOf(), failing: "CompositeResourceDefinition", err: apierrors.NewNotFound(schema.GroupResource{}, "")},
		},
		"APIOfXRDs": {
			reason: "An unreadable XRD costs the warning, but not the Namespace.", started: long,
			reader: &lister{cluster: clusterOf(), failing: "CompositeResourceDefinition", err: errAPI},
			want:   []string{"The kinds of XRs and claims can't be read, so this backup has no warning of kinds that are too new for Velero [RelatedNotRead]"},
		},
		"APIOfClaims": {
			reason: "Unreadable claims cost the warning, but not the Namespace.", started: long,
			reader: &lister{cluster: clusterOf(legacy(time.Minute), claim), failing: xptest.ClaimKind, err: errAPI},
			want:   []string{"The kinds of XRs and claims can't be read, so this backup has no warning of kinds that are too new for Velero [RelatedNotRead]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			d := NewDiscovery(tc.reader, func(own time.Time) time.Time { return own.Add(tc.ahead) }, log)
			d.started = tc.started
			at := metav1.NewTime(backedUpAt())
			namespace := xptest.Object("v1", "Namespace", "", "team-a")
			out, items, operation, after, err := d.Execute(namespace, &velerov1.Backup{Status: velerov1.BackupStatus{StartTimestamp: &at}})
			if diff := cmp.Diff(namespace, out); diff != "" || err != nil || items != nil || operation != "" || after != nil {
				t.Errorf("the backup must have the unchanged Namespace: %v, %v, %q, %v, %v", diff, items, operation, after, err)
			}
			var got []string
			for _, e := range hook.AllEntries() {
				if e.Level != logrus.WarnLevel {
					t.Errorf("want a warning, which counts in the Backup's status; got %s", e.Level)
				}
				got = append(got, e.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A backup of a thousand namespaces reads the XRDs once, and nothing else if none is recent.
func TestDiscoveryReadsOnce(t *testing.T) {
	log, hook := logtest.NewNullLogger()
	reader := &lister{
		cluster: clusterOf(definition("xorders.example.org", xptest.LegacyKind, xptest.ClaimKind, "v1alpha1", time.Hour)),
		failing: "CompositeResourceDefinition", err: errAPI,
	}
	d := NewDiscovery(reader, inStep, log)
	d.started = func() (time.Time, error) { return time.Time{}, nil }
	for range 3 {
		if _, _, _, _, err := d.Execute(xptest.Object("v1", "Namespace", "", "team-a"), &velerov1.Backup{}); err != nil {
			t.Fatal(err)
		}
		reader.failing = ""
	}
	if len(hook.AllEntries()) != 1 || len(reader.lists) != 1 {
		t.Errorf("the plugin must remember results but not failures: %d warnings, %v", len(hook.AllEntries()), reader.lists)
	}
}

func TestServerStarted(t *testing.T) {
	started, err := serverStarted()
	if err != nil || started.After(time.Now()) || started.IsZero() {
		t.Errorf("the parent, %d, must have a start time in the past; got %v, %v", os.Getppid(), started, err)
	}
}

func TestDiscoveryHasNoOperations(t *testing.T) {
	d := NewDiscovery(nil, inStep, nil)
	if _, err := d.Progress("id", nil); err == nil {
		t.Error("want an error for an operation that was never started")
	}
	if err := d.Cancel("id", nil); err != nil {
		t.Error(err)
	}
	got, err := d.AppliesTo()
	if diff := cmp.Diff(velero.ResourceSelector{IncludedResources: []string{"namespaces"}}, got); err != nil || diff != "" {
		t.Errorf("error %v, -want, +got:\n%s", err, diff)
	}
}

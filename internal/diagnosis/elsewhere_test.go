package diagnosis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestAdoptedElsewhere(t *testing.T) {
	before, after := time.Unix(0, 0), time.Unix(200, 0)
	at := func(name string, created *time.Time, hold *report.Hold) *report.Node {
		return &report.Node{Ref: xp.Ref{APIVersion: "example.org/v1", Kind: "Order", Namespace: "team-a", Name: name}, Created: created, Hold: hold}
	}
	receipts := []adoption.Receipt{
		{Name: "receipt-1", Cluster: "other", Backup: "nightly", Restore: "again", Started: time.Unix(100, 0), Namespaces: []string{"team-a"}},
		{Name: "receipt-2", Cluster: "other", Backup: "nightly", Restore: "again", Started: time.Unix(100, 0), Namespaces: []string{"team-b"}},
	}
	trees := []*report.Node{
		at("one", &before, nil), at("two", &before, nil), at("held", &before, &report.Hold{}), at("later", &after, nil), at("absent", nil, nil),
	}
	want := []report.Problem{{
		Code: reason.AdoptedElsewhere, Severity: report.Warning, Object: trees[0].Ref, Others: []xp.Ref{trees[1].Ref},
		Reason: "the cluster other has begun to adopt it from the backup nightly, with its Restore again",
		Next: "decide which cluster should manage it, and hold and retire it in the other one; if the other one does not manage it any more, run: " +
			"velero backup delete receipt-1",
	}}
	if diff := cmp.Diff(want, AdoptedElsewhere(receipts, trees)); diff != "" {
		t.Errorf("What is held here, or is newer than the backup, is not in question: -want, +got:\n%s", diff)
	}
}

package restoreitem

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A sourceCluster is the cluster "here", which takes over.
type sourceCluster struct {
	readOnly                       bool
	uidErr, restoreErr, receiptErr error
	abortErr                       error
	// aborts are those of the source, and meanwhile those that it records before the receipt is there.
	aborts, meanwhile []adoption.Receipt
	reads             int
	// receipts are the sources and the Restores of the receipts that it was to leave.
	receipts []string
	uidReads int
}

func (c *sourceCluster) UID(context.Context) (string, error) {
	c.uidReads++

	return "here", c.uidErr
}

func (c *sourceCluster) Restore(_ context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return xptest.Object("velero.io/v1", "Restore", namespace, name), c.restoreErr
}

func (c *sourceCluster) Aborts(context.Context, string, string, *unstructured.Unstructured) ([]adoption.Receipt, error) {
	c.reads++

	return c.aborts, c.abortErr
}

func (c *sourceCluster) LeaveReceipt(_ context.Context, velero, source string, awaited bool, restore *unstructured.Unstructured) (bool, error) {
	if awaited {
		source += " (awaited)"
	}
	c.receipts = append(c.receipts, source+" "+velero+"/"+restore.GetName())
	c.aborts = append(c.aborts, c.meanwhile...)

	return !c.readOnly && c.receiptErr == nil, c.receiptErr
}

func (c *sourceCluster) Collisions(context.Context, string, string) ([]reason.Message, error) {
	return nil, nil
}

// from returns u with the note of its source.
func from(u *unstructured.Unstructured, s xp.Source) *unstructured.Unstructured {
	u = u.DeepCopy()
	xp.SetSource(u, s)

	return u
}

func TestAdoptChecksTheSource(t *testing.T) {
	mr := xptest.NamespacedMR("b")
	there := func(handover, busy string) *unstructured.Unstructured {
		return from(mr, xp.Source{Cluster: "there", Handover: handover, Busy: busy})
	}
	gone := map[string]string{setting.NameSource: "true"}
	left, awaited := []string{"there velero/monday"}, []string{"there (awaited) velero/monday"}
	aborted := []adoption.Receipt{{Source: "there", Cluster: "there", Aborted: true, Started: time.Now(), Namespaces: []string{xptest.Namespace}}}
	elsewhere := []adoption.Receipt{{Source: "there", Cluster: "there", Aborted: true, Started: time.Now(), Namespaces: []string{"another"}}}
	cases := map[string]struct {
		reason   string
		item     *unstructured.Unstructured
		cluster  sourceCluster
		settings map[string]string
		receipts []string
		// err is the code or a part of the error, and noted a part of the warning.
		err, noted string
	}{
		"Quiet": {reason: "Nothing in the source can write any more.", item: there("monday", ""), receipts: awaited},
		"Aborted": {
			reason: "The source goes on with what this backup has.", item: there("monday", ""), cluster: sourceCluster{aborts: aborted}, err: string(reason.HandoverAborted),
		},
		"AbortCureNamed": {
			reason: "The error must name both ways to go on.", item: there("monday", ""), cluster: sourceCluster{aborts: aborted}, err: setting.NameSource + `: "true"`,
		},
		"AbortedMeanwhile": {
			reason: "The source has not seen the receipt, so this cluster must see the abort.", item: there("monday", ""), cluster: sourceCluster{meanwhile: aborted},
			receipts: awaited, err: string(reason.HandoverAborted),
		},
		"AbortedElsewhere": {reason: "The handover of another namespace was aborted.", item: there("monday", ""), cluster: sourceCluster{aborts: elsewhere}, receipts: awaited},
		"AbortedAndGone":   {reason: "A lost cluster writes nothing.", item: there("monday", ""), settings: gone, cluster: sourceCluster{aborts: aborted}, receipts: left},
		"AbortUnknown":     {reason: "An abort must not be missed.", item: there("monday", ""), cluster: sourceCluster{abortErr: errAPI}, err: errAPI.Error()},
		"NotQuiet":         {reason: "Two clusters could write to its external resource.", item: there("monday", "NotHandedOver"), err: string(reason.SourceNotQuiet)},
		"CureNamed":        {reason: "The error must name both ways to go on.", item: there("monday", "NotHandedOver"), err: setting.NameSource + `: "true"`},
		"Gone":             {reason: "A lost cluster writes nothing.", item: there("monday", "NotHandedOver"), settings: gone, receipts: left},
		"Disaster":         {reason: "The source may be alive, and then it reports the receipt.", item: there("", ""), receipts: left},
		"Drill":            {reason: "A quarantine adopts nothing.", item: there("", ""), settings: map[string]string{setting.NameHold: "all"}},
		"HeldHandover": {
			reason: "A user can release it at any time, so the source must not go on.", item: there("monday", ""), settings: map[string]string{setting.NameHold: "all"}, receipts: awaited,
		},
		"HeldAborted": {
			reason: "A release would make two clusters manage it.", item: there("monday", ""), settings: map[string]string{setting.NameHold: "all"},
			cluster: sourceCluster{aborts: aborted}, err: string(reason.HandoverAborted),
		},
		"DisasterReadOnly": {
			reason: "After a disaster nobody needs the receipt.", item: there("", ""), cluster: sourceCluster{readOnly: true}, receipts: left,
		},
		"DisasterNoUID":     {reason: "Disaster recovery must not depend on it.", item: there("", ""), cluster: sourceCluster{uidErr: errAPI}},
		"DisasterNoRestore": {reason: "Disaster recovery must not depend on it.", item: there("", ""), cluster: sourceCluster{restoreErr: errAPI}},
		"Older":             {reason: "A backup of an older plugin has no note.", item: mr},
		"SameCluster":       {reason: "The handover was aborted, and this cluster is the source.", item: from(mr, xp.Source{Cluster: "here", Handover: "monday", Busy: "NotHandedOver"})},
		"NoCluster": {
			reason: "Neither cluster could see what the other does.", item: from(mr, xp.Source{Handover: "monday"}), err: "could not read which cluster it is from",
		},
		"NoClusterButGone": {
			reason: "A user says that it is gone.", item: from(mr, xp.Source{Handover: "monday"}), settings: gone,
		},
		"ReadOnly": {
			reason: "A user must learn that the source will not refuse an abort.", item: there("monday", ""), cluster: sourceCluster{readOnly: true}, receipts: awaited,
			noted: "the BackupStorageLocation is read-only here [ReceiptMissing]",
		},
		"NoReceipt": {
			reason: "A receipt that fails must not stop a restore.", item: there("monday", ""), cluster: sourceCluster{receiptErr: errAPI}, receipts: awaited,
			noted: errAPI.Error() + " [ReceiptMissing]",
		},
		"NoUID":     {reason: "The item may be of another cluster.", item: there("monday", ""), cluster: sourceCluster{uidErr: errAPI}, err: errAPI.Error()},
		"NoRestore": {reason: "A temporary API error must not lose the receipt.", item: there("monday", ""), cluster: sourceCluster{restoreErr: errAPI}, err: errAPI.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live()
			c.config = tc.settings
			log, hook := logtest.NewNullLogger()
			out, err := NewAdopt(Crossplane(), c, nil, log, WithSource(&tc.cluster)).Execute(inputFor(tc.item, restoreOf(nil)))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(string(reason.CodeOf(err))+err.Error(), tc.err) {
				t.Fatalf("%s\nerror %v, not one with %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.receipts, tc.cluster.receipts); diff != "" {
				t.Errorf("%s\nreceipts: -want, +got:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			var noted []string
			for _, e := range hook.AllEntries() {
				if strings.Contains(e.Message, string(reason.ReceiptMissing)) {
					noted = append(noted, e.Message)
				}
			}
			if !strings.Contains(strings.Join(noted, "\n"), tc.noted) || tc.noted == "" && len(noted) > 0 {
				t.Errorf("%s\nthe warnings are %q, not one with %q", tc.reason, noted, tc.noted)
			}
			if out.UpdatedItem == nil {
				return // The action has not changed the item.
			}
			if got := xp.SourceOf(&unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}); got != (xp.Source{}) {
				t.Errorf("%s\nthe note of the backup is restored: %+v", tc.reason, got)
			}
		})
	}
}

// A restore of thousands of items leaves one receipt, also if the first attempt has failed.
func TestAdoptLeavesOneReceipt(t *testing.T) {
	for name, c := range map[string]*sourceCluster{"left": {}, "failed": {receiptErr: errAPI}, "read-only": {readOnly: true}} {
		log, _ := logtest.NewNullLogger()
		a := NewAdopt(Crossplane(), live(), nil, log, WithSource(c))
		for range 3 {
			if _, err := a.Execute(inputFor(from(xptest.NamespacedMR("b"), xp.Source{Cluster: "there", Handover: "monday"}), restoreOf(nil))); err != nil {
				t.Fatal(err)
			}
		}
		if len(c.receipts) != 1 || c.uidReads != 1 || c.reads != 2 {
			t.Errorf("%s: %d receipts after %d reads of the UID, %d of the aborts", name, len(c.receipts), c.uidReads, c.reads)
		}
	}
}

// A restore that refuses thousands of items looks for aborts once.
func TestAdoptReadsAbortsOnce(t *testing.T) {
	c := &sourceCluster{aborts: []adoption.Receipt{{Source: "there", Cluster: "there", Aborted: true, Started: time.Now()}}}
	log, _ := logtest.NewNullLogger()
	a := NewAdopt(Crossplane(), live(), nil, log, WithSource(c))
	for range 3 {
		if _, err := a.Execute(inputFor(from(xptest.NamespacedMR("b"), xp.Source{Cluster: "there", Handover: "monday"}), restoreOf(nil))); err == nil {
			t.Fatal("it is restored")
		}
	}
	if c.reads != 1 || len(c.receipts) > 0 {
		t.Errorf("%d reads, receipts %v", c.reads, c.receipts)
	}
}

// A restore in which everything is refused leaves no receipt: it adopts nothing.
func TestAdoptLeavesNoReceiptForARefusal(t *testing.T) {
	c := &sourceCluster{}
	log, _ := logtest.NewNullLogger()
	item := from(xptest.NamespacedMR("b"), xp.Source{Cluster: "there", Handover: "monday", Busy: "HoldRemoved"})
	if _, err := NewAdopt(Crossplane(), live(), nil, log, WithSource(c)).Execute(inputFor(item, restoreOf(nil))); err == nil || len(c.receipts) > 0 {
		t.Errorf("error %v, receipts %v", err, c.receipts)
	}
}

package backupitem

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	uidOfXR    = "0a0a0a0a-1111-4222-8333-444444444444"
	uidOfClaim = "0b0b0b0b-1111-4222-8333-444444444444"
	uidAbove   = "0c0c0c0c-1111-4222-8333-444444444444"
)

// A restored XR has another UID, so the backup notes whose UIDs a composed object has in it, and
// warns where a restore can't carry it over.
func TestTreeNotesUIDs(t *testing.T) {
	claim := xptest.Claim("o", xptest.UID(uidOfClaim), xptest.OfXR(xptest.XR("y")))
	above := xptest.XR("y", xptest.UID(uidAbove), xptest.ClaimedBy(claim))
	x := xptest.XR("x", xptest.UID(uidOfXR), xptest.ControlledBy(above))
	mr := xptest.MR("b", xptest.ControlledBy(x))
	type want struct {
		Noted []string
		Warns []string
	}
	for name, tc := range map[string]struct {
		reason string
		item   *unstructured.Unstructured
		want   want
	}{
		"Published": {reason: "A name inside the cluster is carried over.", item: xptest.With(mr, xptest.PublishesTo("infra", uidOfXR)), want: want{Noted: []string{"XOrder x " + uidOfXR}}},
		"Above":     {reason: "The XR above is noted, too.", item: xptest.With(mr, xptest.PublishesTo("infra", uidAbove)), want: want{Noted: []string{"XOrder y " + uidAbove}}},
		"Claim": {
			reason: "The claim comes after its tree, so its UID is not known in time.", item: xptest.With(mr, xptest.PublishesTo("infra", uidOfClaim)),
			want: want{Noted: []string{"OrderClaim o " + uidOfClaim}, Warns: []string{"Bucket b has a UID in its spec.writeConnectionSecretToRef.name"}},
		},
		"Identity": {
			reason: "Another external-name is another external resource.", item: xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "db-"+uidOfXR)),
			want: want{Noted: []string{"XOrder x " + uidOfXR}, Warns: []string{"Bucket b has a UID in its metadata.annotations[crossplane.io/external-name]"}},
		},
		"OfAnother": {reason: "The UID of something else stays.", item: xptest.With(mr, xptest.Annotated(xp.AnnotationExternalName, "0d0d0d0d-1111-4222-8333-444444444444"))},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, clusterOf(above, claim, x, tc.item))
			var got want
			for _, o := range xp.UIDOwners(s.take(tc.item, &velerov1.Backup{}).Stored) {
				got.Noted = append(got.Noted, o.String()+" "+string(o.UID))
			}
			for _, e := range s.log.AllEntries() {
				if text, _, ok := strings.Cut(e.Message, ":"); ok && e.Data["reason"] == "UIDInIdentity" {
					got.Warns = append(got.Warns, text)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The selector of a Deployment can't be changed. Many of them share a warning.
func TestTreeWarnsOfUIDsInSelectors(t *testing.T) {
	for _, count := range []int{1, 30} {
		x := xptest.XR("x", xptest.UID(uidOfXR))
		c := clusterOf()
		var composed []*unstructured.Unstructured
		for n := range count {
			composed = append(composed, xptest.Object("v1", "PersistentVolumeClaim", "team-a", fmt.Sprint("d", n), xptest.ControlledBy(x), xptest.JSON(`{"spec":{"volumeName":"`+uidOfXR+`"}}`)))
		}
		x = xptest.With(x, xptest.Refs(composed...))
		for _, u := range append(composed, x) {
			c.objects[xp.RefTo(u).ID()] = u
		}
		s := newSession(t, c)
		s.take(x, &velerov1.Backup{})
		warned := 0
		for _, e := range s.log.AllEntries() {
			if e.Data["reason"] == "UIDInImmutable" && e.Level.String() == "warning" {
				warned++
			}
		}
		if want := min(count, mostAtRisk+1); warned != want {
			t.Errorf("%d objects have %d warnings, want %d", count, warned, want)
		}
	}
}

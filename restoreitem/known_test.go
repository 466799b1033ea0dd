package restoreitem

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The rule of a kind names an MR of a backup without the plugin, unless a setting or another MR
// contradicts it.
func TestAdoptKnowsKinds(t *testing.T) {
	vpc := xptest.JSON(`{"apiVersion":"ec2.aws.upbound.io/v1beta1","kind":"VPC"}`)
	id := xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"},"conditions":[{"type":"Synced","status":"True"}]}}`)
	subnet := xptest.JSON(`{"apiVersion":"network.azure.upbound.io/v1beta2","kind":"Subnet","status":{"atProvider":{"id":"/subscriptions/1/subnets/default"}}}`)
	policy := xptest.JSON(`{"apiVersion":"iam.aws.upbound.io/v1beta1","kind":"Policy"}`)
	other := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR("o", append([]xptest.Option{vpc, xptest.Annotated(xp.AnnotationExternalName, "vpc-1")}, o...)...)
	}
	named := returned{Name: "vpc-1", Logged: []string{"info"}}
	held := returned{
		Op: "VPC.v1beta1.ec2.aws.upbound.io//b", Identity: xp.Recoverable, Paused: true, Asks: true, Status: []string{"atProvider"}, Logged: []string{"warning"},
	}
	heldPolicy, heldBeside := held, held
	heldPolicy.Op, heldBeside.Logged = "Policy.v1beta1.iam.aws.upbound.io//b", []string{"warning", "warning"}
	runReturns(t, map[string]returnCase{
		"Known":    {reason: "The id of a VPC is its external-name.", item: unnamed(vpc, id), want: named},
		"Part":     {reason: "The last part of a subnet's id is its external-name.", item: unnamed(subnet), want: returned{Name: "default", Logged: []string{"info"}}},
		"NotKnown": {reason: "For some kinds the external-name does not follow from the id.", item: unnamed(policy, id), want: heldPolicy},
		"Off":      {reason: "The setting turns the table off.", item: unnamed(vpc, id), config: map[string]string{"external-name-from-id": "none"}, want: held},
		"OffForTheKind": {
			reason: "The setting turns the table off for this kind.", item: unnamed(vpc, id), config: map[string]string{"external-name-from-id": "-VPC.ec2.aws.upbound.io"}, want: held,
		},
		"Unnamed": {
			reason: "The setting names the kind as one without external-names.", item: unnamed(vpc, id), config: map[string]string{"without-external-name": "VPC.ec2.aws.upbound.io"},
			want: returned{},
		},
		"Doubted": {
			reason: "Other MRs in the backup contradict the table.", item: unnamed(vpc, id, xptest.Field(true, "metadata", xp.FieldDoubted)), want: held,
		},
		"DoubtedButChosen": {
			reason: "A user has chosen the kind, which overrides the doubt.", item: unnamed(vpc, id, xptest.Field(true, "metadata", xp.FieldDoubted)),
			config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io"}, want: named,
		},
		"Taken": {
			reason: "Two MRs must not manage one external resource.", item: unnamed(vpc, id), live: []*unstructured.Unstructured{other()}, want: heldBeside,
		},
		"TakenByUnnamed": {
			reason: "The other MR has lost its external-name, but manages the same external resource.", want: heldBeside, item: unnamed(vpc, id),
			live: []*unstructured.Unstructured{other(id, xptest.Without("metadata", "annotations"))},
		},
		"ObservedByAnother": {
			reason: "An MR that only observes is safe.", item: unnamed(vpc, id), live: []*unstructured.Unstructured{other(policies(`["Observe"]`))}, want: named,
		},
		"OtherAccount": {
			reason: "The same id in another account is another external resource.", item: unnamed(vpc, id),
			live: []*unstructured.Unstructured{other(xptest.JSON(`{"spec":{"providerConfigRef":{"name":"another"}}}`))}, want: named,
		},
		"CreatePending": {
			reason: "The id is from before the pending creation.", item: unnamed(vpc, id, xptest.Annotated(xp.AnnotationCreatePending, created)),
			want: returned{Op: "VPC.v1beta1.ec2.aws.upbound.io//b", Identity: xp.CreatePending, Paused: true, Logged: []string{"warning"}},
		},
	})
}

// A note has the source of an external-name, and why one was not taken.
func TestAdoptNamesTheSourceOfAName(t *testing.T) {
	item := unnamed(xptest.JSON(`{"apiVersion":"ec2.aws.upbound.io/v1beta1","kind":"VPC","status":{"atProvider":{"id":"vpc-1"}}}`))
	out := adopt(t, live(), item, restoreOf(nil))
	if len(out.logged) != 1 || !strings.Contains(out.logged[0], "as its external-name, as is known of its kind from provider-upjet-aws v1.0.0 to v") {
		t.Errorf("got log %v", out.logged)
	}
	other := xptest.With(item, xptest.JSON(`{"metadata":{"name":"o"}}`), xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))
	out = adopt(t, live(other), item, restoreOf(nil))
	if len(out.logged) != 2 || !strings.Contains(out.logged[0], "VPC b is held: its external-name would be vpc-1, as is known of its kind from provider-upjet-aws") {
		t.Errorf("got log %v", out.logged)
	}
}

// A copy of a live MR is one too if both have lost their names.
func TestAdoptKnowsCopies(t *testing.T) {
	item := xptest.NamespacedMR("b", xptest.Without("metadata", "annotations"), xptest.JSON(`{"apiVersion":"ec2.aws.m.upbound.io/v1beta1","kind":"VPC",`+
		`"status":{"atProvider":{"id":"vpc-1"}}}`))
	mapped := restoreOf(map[string]string{item.GetNamespace(): "elsewhere"})
	out := adopt(t, live(item), item, mapped)
	if out.err != nil || out.object == nil || !xp.IsPaused(out.object) || out.OperationID == "" {
		t.Errorf("the copy must be held: got %+v, error %v", out.object, out.err)
	}
	out = adopt(t, live(), item, mapped)
	if out.err != nil || xp.IsPaused(out.object) || out.object.GetAnnotations()[xp.AnnotationExternalName] != "vpc-1" {
		t.Errorf("without its original the MR must get the external-name: got %+v, error %v", out.object, out.err)
	}
}

package backupitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// The rule of a kind names an MR, unless a setting or another MR contradicts it.
func TestTreeKnowsKinds(t *testing.T) {
	type want struct {
		// Name is the external-name of the stored copy, and Warns are parts of the warnings.
		// Doubted means that the copy records that the rule does not count, and Unnamed that it
		// needs no name.
		Name             string
		Warns            []string
		Doubted, Unnamed bool
	}
	const (
		known  = "The backup has it from status.atProvider.id, as is known of its kind from provider-upjet-"
		unsure = "may be another name: "
		subnet = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/default"
	)
	vpc := xptest.JSON(`{"apiVersion":"ec2.aws.upbound.io/v1beta1","kind":"VPC"}`)
	local := xptest.JSON(`{"apiVersion":"ec2.aws.m.upbound.io/v1beta1","kind":"VPC","metadata":{"namespace":"team-a"}}`)
	azure := xptest.JSON(`{"apiVersion":"network.azure.upbound.io/v1beta2","kind":"Subnet"}`)
	policy := xptest.JSON(`{"apiVersion":"iam.aws.upbound.io/v1beta1","kind":"Policy"}`)
	cases := map[string]struct {
		reason   string
		mr       *unstructured.Unstructured
		others   []*unstructured.Unstructured
		settings map[string]string
		want     want
	}{
		"Known":      {reason: "The id of a VPC is its external-name.", mr: unnamed("vpc-1", vpc), want: want{Name: "vpc-1", Warns: []string{known + "aws"}}},
		"Namespaced": {reason: "The id of a namespaced VPC is its external-name too.", mr: unnamed("vpc-1", local), want: want{Name: "vpc-1", Warns: []string{known + "aws"}}},
		"Part":       {reason: "The last part of a subnet's id is its external-name.", mr: unnamed(subnet, azure), want: want{Name: "default", Warns: []string{known + "azure"}}},
		"OtherForm": {
			reason: "An id of another form gives no external-name.", mr: unnamed("default", azure), want: want{Warns: []string{unsure + "no other MR of its kind"}},
		},
		"NotKnown": {
			reason: "For some kinds the external-name does not follow from the id.", mr: unnamed("arn:aws:iam::1:policy/p", policy),
			want: want{Warns: []string{unsure + "no other MR of its kind has an external-name to compare with, and the plugin has no rule for the kind"}},
		},
		"Off": {
			reason: "The setting turns the table off.", mr: unnamed("vpc-1", vpc), settings: fromID("none"), want: want{Warns: []string{unsure + "no other MR of its kind"}},
		},
		"OffForTheKind": {
			reason: "The setting turns the table off for one kind.", mr: unnamed("vpc-1", vpc), settings: fromID("-VPC.ec2.aws.upbound.io"), want: want{Warns: []string{unsure + "no other MR of its kind"}},
		},
		"OffButChosen": {
			reason: "A kind that the setting names counts despite none.", mr: unnamed("vpc-1", vpc), settings: fromID("none,VPC.ec2.aws.upbound.io"),
			want: want{Name: "vpc-1", Warns: []string{"as the setting external-name-from-id has for its kind"}},
		},
		"Chosen": {
			reason: "The user's choice overrides the table.", mr: unnamed(subnet, azure), settings: fromID("Subnet.network.azure.upbound.io"),
			want: want{Name: subnet, Warns: []string{"as the setting external-name-from-id has for its kind"}},
		},
		"Unreadable": {
			reason: "Unreadable settings may turn the table off.", mr: unnamed("vpc-1", vpc), settings: fromID("vpcs"),
			want: want{Warns: []string{"cannot read the ConfigMap of settings", unsure + "no other MR of its kind"}},
		},
		"PeerDiffers": {
			reason: "Another MR contradicts the table, perhaps because of the provider's version.", mr: unnamed("vpc-1", vpc), others: []*unstructured.Unstructured{named("o", "vpc-2", "arn:vpc-2", vpc)},
			want: want{Warns: []string{unsure + "VPC o has an external-name that differs from its id"}, Doubted: true},
		},
		"PartPeers": {
			reason: "Subnets of other networks can have the same name.", mr: unnamed(subnet, azure), want: want{Name: "default", Warns: []string{known + "azure"}},
			others: []*unstructured.Unstructured{named("o", "default", strings.Replace(subnet, "/n/", "/m/", 1), azure)},
		},
		"PartTaken": {
			reason: "Two MRs must not manage one external resource.", mr: unnamed(subnet, azure), others: []*unstructured.Unstructured{named("o", "default", subnet, azure)},
			want: want{Warns: []string{unsure + "another MR of its kind has that"}, Doubted: true},
		},
		"PartUnclear": {
			reason: "The network of the other subnet is unknown.", mr: unnamed(subnet, azure), want: want{Warns: []string{unsure + "another MR of its kind has that"}, Doubted: true},
			others: []*unstructured.Unstructured{xptest.MR("o", azure, xptest.Annotated(xp.AnnotationExternalName, "default"))},
		},
		"Twice": {
			reason: "Two MRs have one id, so a user must choose which manages it.", mr: unnamed("vpc-1", vpc),
			others: []*unstructured.Unstructured{unnamed("vpc-1", vpc, xptest.JSON(`{"metadata":{"name":"o"}}`))},
			want:   want{Warns: []string{unsure + "another MR of its kind has the same id"}, Doubted: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := clusterOf(append(tc.others, tc.mr)...)
			c.settings = tc.settings
			s := newSession(t, c)
			u := s.take(tc.mr, &velerov1.Backup{}).Stored
			got := want{
				Name: u.GetAnnotations()[xp.AnnotationExternalName], Warns: s.said(tc.want.Warns), Doubted: xp.HasFlag(u, xp.FieldDoubted),
				Unnamed: xp.HasFlag(u, xp.FieldUnnamed),
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

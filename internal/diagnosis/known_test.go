package diagnosis

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// An MR without an external-name is a warning only if a restore can derive the name. The message
// states the source.
func TestInspectKnowsKinds(t *testing.T) {
	vpc := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{
			xptest.JSON(`{"apiVersion":"ec2.aws.upbound.io/v1beta1","kind":"VPC","status":{"atProvider":{"id":"vpc-1"}}}`), xptest.Without("metadata", "annotations"),
		}, o...)...)
	}
	const problem, warning = "problem IdentityMissing: ", "warning IdentityMissing: "
	const known = "it has no external-name, and a restore gives it vpc-1, as is known of its kind from provider-upjet-aws v"
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    string
	}{
		"Known": {reason: "The id of a VPC is its external-name.", objects: []*unstructured.Unstructured{vpc("b")}, want: warning + known},
		"Taken": {
			reason: "Another MR has that external-name, so the id is ambiguous.", objects: []*unstructured.Unstructured{vpc("b"), vpc("o", xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))},
			want: problem + "it has no external-name, so its external resource is unknown",
		},
		"Doubted": {
			reason: "The backup notes that the id is doubtful.", objects: []*unstructured.Unstructured{vpc("b", xptest.Field(true, "metadata", xp.FieldDoubted))},
			want: problem + "it has no external-name, so its external resource is unknown",
		},
		"NotKnown": {
			reason: "For some kinds the id may not be the external-name.", want: problem + "it has no external-name, so its external resource is unknown",
			objects: []*unstructured.Unstructured{vpc("b", xptest.JSON(`{"apiVersion":"iam.aws.upbound.io/v1beta1","kind":"Policy"}`))},
		},
		"InFlight": {
			reason: "During a create the id may be of an earlier external resource.", objects: []*unstructured.Unstructured{vpc("b", xptest.Annotated(xp.AnnotationCreatePending, ago(0)))},
			want: "problem CreatePending: its external resource was being created",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var said []string
			for _, p := range Inspect(objectsOf(tc.objects...)) {
				if p.Code == reason.IdentityMissing || p.Code == reason.CreatePending {
					said = append(said, string(p.Severity)+" "+string(p.Code)+": "+p.Reason)
				}
			}
			got := strings.Join(said, "\n")
			if strings.HasPrefix(got, tc.want) && len(said) == 1 {
				got = tc.want
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// In a backup an MR that upjet has not observed is a warning, and an observed one is not.
func TestInspectNamesUnfound(t *testing.T) {
	upjets := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.MR(name, append([]xptest.Option{xptest.JSON(`{"spec":{"initProvider":{}}}`)}, o...)...)
	}
	objects := []*unstructured.Unstructured{
		upjets("unfound"), upjets("found", xptest.JSON(`{"status":{"atProvider":{"id":"found"}}}`)), xptest.MR("other"),
	}
	var said []string
	for _, p := range Inspect(objectsOf(objects...)) {
		if p.Code == reason.NotObserved {
			said = append(said, string(p.Severity)+" "+p.Object.Name)
		}
	}
	if diff := cmp.Diff([]string{"warning unfound"}, said); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

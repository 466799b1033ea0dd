package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const bucketForNetwork = `{"spec":{"of":{"apiVersion":"cloud.example.org/v1","kind":"Bucket","resourceRef":{"name":"b"}},
	"by":{"apiVersion":"cloud.example.org/v1","kind":"Network","resourceRef":{"name":"n"}}}}`

func TestClearUsage(t *testing.T) {
	const protection, legacy = "protection.crossplane.io/v1beta1", "apiextensions.crossplane.io/v1beta1"
	cases := map[string]struct {
		reason               string
		apiVersion, kind, in string
		options              []xptest.Option
		want                 string
	}{
		"Namespaced": {
			reason:     "With the composite label on the Usage, Crossplane would wait for the user of the used object.",
			apiVersion: protection, kind: "Usage", in: "team-a",
			want: "kubectl label Usage.v1beta1.protection.crossplane.io u -n team-a crossplane.io/composite- && kubectl delete Usage.v1beta1.protection.crossplane.io u -n team-a",
		},
		"Deleting": {
			reason: "A terminating Usage goes as soon as Crossplane stops waiting.", apiVersion: legacy, kind: "Usage",
			options: []xptest.Option{xptest.Deleting()}, want: "kubectl label Usage.v1beta1.apiextensions.crossplane.io u crossplane.io/composite-",
		},
		"Replays": {
			reason: "The Usage must not replay the deletion of the object that it protects.", apiVersion: legacy, kind: "Usage",
			options: []xptest.Option{xptest.Deleting(), xptest.Field(true, "spec", "replayDeletion")},
			want: "kubectl annotate Bucket.v1.cloud.example.org b usage.crossplane.io/deletion-attempt-with-policy- && " +
				"kubectl label Usage.v1beta1.apiextensions.crossplane.io u crossplane.io/composite-",
		},
		"Option": {
			reason: "With the name --all kubectl would remove the annotation from all objects of the kind.", apiVersion: legacy, kind: "Usage",
			options: []xptest.Option{xptest.Deleting(), xptest.Field(true, "spec", "replayDeletion"), xptest.Field("--all", "spec", "of", "resourceRef", "name")},
			want: "kubectl annotate -- Bucket.v1.cloud.example.org --all usage.crossplane.io/deletion-attempt-with-policy- && " +
				"kubectl label Usage.v1beta1.apiextensions.crossplane.io u crossplane.io/composite-",
		},
		"Kinds": {
			reason: "kubectl reads a kind with a comma as two kinds.", apiVersion: legacy, kind: "Usage",
			options: []xptest.Option{xptest.Deleting(), xptest.Field(true, "spec", "replayDeletion"), xptest.Field("Bucket,Secret", "spec", "of", "kind")},
			want: "kubectl annotate KIND NAME usage.crossplane.io/deletion-attempt-with-policy- && kubectl label Usage.v1beta1.apiextensions.crossplane.io u " +
				"crossplane.io/composite- (kubectl does not take what is written there for the kind and name of one object, so there is no command to copy)",
		},
	}
	for name, tc := range cases {
		u := xptest.Object(tc.apiVersion, tc.kind, tc.in, "u", append([]xptest.Option{xptest.JSON(bucketForNetwork)}, tc.options...)...)
		if diff := cmp.Diff(tc.want, xp.ClearUsage(u)); diff != "" {
			t.Errorf("%s: %s\n-want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

func TestProtected(t *testing.T) {
	for name, tc := range map[string]struct{ document, want string }{
		"For":      {document: bucketForNetwork, want: "Bucket team-a/b for Network team-a/n"},
		"Reason":   {document: `{"spec":{"of":{"apiVersion":"v1","kind":"Secret","resourceRef":{"name":"s","namespace":"team-b"}},"reason":"r"}}`, want: "Secret team-b/s"},
		"Selector": {document: `{"spec":{"of":{"apiVersion":"v1","kind":"Secret","resourceSelector":{}}}}`, want: "what its selector finds"},
		"None":     {document: `{}`, want: "what its selector finds"},
	} {
		u := xptest.Object("protection.crossplane.io/v1beta1", "Usage", "team-a", "u", xptest.JSON(tc.document))
		if got := xp.Protected(u); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

package xp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestActivates(t *testing.T) {
	cases := map[string]struct {
		reason string
		policy string
		want   bool
	}{
		"Exact":     {reason: "A name activates the MRD of exactly that name.", policy: `["other","buckets.cloud.example.org"]`, want: true},
		"All":       {reason: "The policy of Crossplane's chart activates all MRDs.", policy: `["*"]`, want: true},
		"Prefix":    {reason: "A wildcard can stand for the start of a name.", policy: `["*.cloud.example.org"]`, want: true},
		"Another":   {reason: "Another name does not activate the MRD.", policy: `["queues.cloud.example.org"]`},
		"Malformed": {reason: "A malformed pattern matches no MRD.", policy: `["[",7]`},
		"Forged":    {reason: "A string instead of a list has no names.", policy: `"*"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := xptest.ActivationPolicy("p", xptest.JSON(`{"spec":{"activate":`+tc.policy+`}}`))
			if diff := cmp.Diff(tc.want, xp.Activates(policy, "buckets.cloud.example.org")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestManagedDefinition(t *testing.T) {
	mrd := xptest.ManagedDefinition("buckets", xptest.MR("b"))
	if xp.IsActivationPolicy(mrd) || !xp.IsActivationPolicy(xptest.ActivationPolicy("p")) {
		t.Error("MRDs and policies differ by their kinds")
	}
	if diff := cmp.Diff(schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"}, xp.ManagedKind(mrd)); diff != "" {
		t.Error(diff)
	}
	for state, want := range map[string]bool{`"Active"`: false, `"Inactive"`: true, `null`: true, `7`: true} {
		if got := xp.IsInactive(xptest.With(mrd, xptest.JSON(`{"spec":{"state":`+state+`}}`))); got != want {
			t.Errorf("%s: got %v", state, got)
		}
	}
}

func TestHowToActivate(t *testing.T) {
	const command = `"kubectl patch managedresourcedefinition --type=merge -p '{"spec":{"state":"Active"}}' buckets.cloud.example.org"`
	if got := xp.HowToActivate("buckets.cloud.example.org"); !strings.Contains(got, command) {
		t.Errorf("got %s", got)
	}
	if got := xp.HowToActivate("$(reboot)"); !strings.Contains(got, `'$(reboot)'`) {
		t.Errorf("the name must be one word for the shell: %s", got)
	}
}

package diagnosis

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero alone restores a Secret of a secret store with the old UID of its owner.
func TestValidateSaysHowToPublishInASecretStoreAgain(t *testing.T) {
	const message = "cannot publish connection details: cannot write to secret store: cannot apply secret: existing secret is not owned by UID \"new\""
	const mend = "correct that; its Events have more: kubectl describe"
	refused := xptest.Synced("False", "ReconcileError", message)
	cases := map[string]struct {
		reason string
		option xptest.Option
		want   string
	}{
		"Refused": {
			reason: "Only a changed owner label lets the XR publish to the Secret again.", option: xptest.StoresTo("default", "s"),
			want: "if the Secret s in which it publishes belongs to it, as after a restore without this plugin, set the Secret's label " +
				"secret.crossplane.io/owner-uid to new",
		},
		"NoStore": {reason: "The XR publishes to no store.", option: xptest.PublishesTo("infra", "s"), want: mend},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var next []string
			for _, p := range Validate(objectsOf(xptest.XR("x", xptest.UID("new"), refused, tc.option)), ClusterState{Now: now}) {
				next = append(next, p.Next)
			}
			if diff := cmp.Diff([]string{tc.want}, next); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

package diagnosis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func objectsOf(objects ...*unstructured.Unstructured) *Objects {
	o := NewObjects()
	for _, u := range objects {
		o.Add(u)
	}

	return o
}

// summaries returns the problems as "severity code object".
func summaries(problems []report.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, string(p.Severity)+" "+string(p.Code)+" "+p.Object.String())
	}

	return all
}

// cases are objects, and the problems that a diagnosis finds in them.
type cases map[string]struct {
	reason  string
	objects []*unstructured.Unstructured
	change  func(o *Objects)
	want    []string
}

func (c cases) check(t *testing.T, diagnose func(o *Objects) []report.Problem) {
	t.Helper()
	for name, tc := range c {
		t.Run(name, func(t *testing.T) {
			o := objectsOf(tc.objects...)
			if tc.change != nil {
				tc.change(o)
			}
			if diff := cmp.Diff(tc.want, summaries(diagnose(o))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func validated(o *Objects) []report.Problem { return Validate(o, ClusterState{Now: now}) }

// now is the time of the diagnosis, long after the objects were written.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }

// changed sets the time of the last write to an object.
func changed(d time.Duration) xptest.Option {
	return xptest.Field([]any{map[string]any{"manager": "m", "operation": "Update", "time": ago(d)}}, "metadata", "managedFields")
}

func ready(status string) xptest.Option {
	return xptest.Field([]any{
		map[string]any{"type": xp.ConditionSynced, "status": "True", "reason": "ReconcileSuccess"},
		map[string]any{"type": xp.ConditionReady, "status": status, "reason": "Available"},
	}, "status", "conditions")
}

func deleted(d time.Duration) xptest.Option {
	return xptest.Field(ago(d), "metadata", "deletionTimestamp")
}

func held(u *unstructured.Unstructured) *unstructured.Unstructured {
	return heldAs(u, hold.Hold{})
}

func quarantined(u *unstructured.Unstructured) *unstructured.Unstructured {
	return heldAs(u, hold.Hold{Quarantine: true})
}

func heldAs(u *unstructured.Unstructured, h hold.Hold) *unstructured.Unstructured {
	u = u.DeepCopy()
	h.Restore, h.Since = "velero/r", ago(time.Hour)
	if _, err := hold.Put(u, h); err != nil {
		panic(err) // The test is wrong.
	}

	return u
}

func TestNothingWrong(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	mr := xptest.MR("b", xptest.ControlledBy(x), ready("True"))
	nested := xptest.XR("n", xptest.ControlledBy(x), xptest.Reconciled())
	deep := xptest.MR("d", xptest.ControlledBy(nested), xptest.Labelled(xp.LabelComposite, "x"), ready("True"))
	usage := xptest.Object(xp.GroupProtection+"/v1beta1", "ClusterUsage", "", "u", xptest.ControlledBy(x))
	claim := xptest.Claim("c", xptest.OfXR(x), xptest.Reconciled())
	tree := []*unstructured.Unstructured{
		claim, mr, deep, usage, xptest.With(nested, xptest.Refs(deep)), xptest.With(x, xptest.Refs(mr, nested, usage), xptest.ClaimedBy(claim)),
	}
	m := xptest.XRV2("m", xptest.Reconciled())
	namespaced := xptest.NamespacedMR("b", xptest.ControlledBy(m), ready("True"))
	cases{
		"Legacy": {reason: "The tree is complete in Crossplane v1.", objects: tree},
		"Modern": {reason: "The tree is complete in Crossplane v2.", objects: []*unstructured.Unstructured{xptest.With(m, xptest.Refs(namespaced)), namespaced}},
		"Alone":  {reason: "An MR can exist without an XR.", objects: []*unstructured.Unstructured{xptest.MR("b", ready("True"))}},
		"Paused": {
			reason: "A user paused the objects, so neither Crossplane nor the provider acts on them.",
			objects: []*unstructured.Unstructured{
				xptest.XR("x", xptest.Annotated(xp.AnnotationPaused, "true")), xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true"), xptest.SeenPaused()),
				xptest.MR("c", xptest.JSON(`{"spec":{"managementPolicies":[]}}`), xptest.SeenPaused()),
			},
		},
		"Observed": {
			reason: "An MR that only observes shares its external resource with another MR.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "i-1"), ready("True")),
				xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "i-1"), xptest.JSON(`{"spec":{"managementPolicies":["Observe","LateInitialize"]}}`), ready("True")),
			},
		},
		"Creating": {
			reason: "The provider is creating the external resource, so the MR has no external-name yet.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreatePending, ago(30*time.Second)), changed(30*time.Second)),
				xptest.MR("b", xptest.Without("metadata", "annotations"), xptest.Annotated(xp.AnnotationCreateSucceeded, ago(30*time.Second)), changed(30*time.Second)),
			},
		},
		"Young": {
			reason: "A controller needs a moment to reconcile a change.",
			objects: []*unstructured.Unstructured{
				xptest.XR("x", changed(time.Second)), xptest.XR("y", xptest.Reconciled(), xptest.Generation(3), xptest.OfGeneration(2), changed(time.Second)),
				xptest.XR("z", xptest.SeenPaused(), changed(time.Second)),
			},
		},
		"DeletedTree": {
			reason: "In a tree that is being deleted the XR disappears before its composed resources.",
			objects: []*unstructured.Unstructured{
				xptest.With(claim, deleted(time.Hour)), xptest.With(mr, deleted(time.Hour)), xptest.With(deep, deleted(time.Hour)),
				xptest.With(nested, xptest.Refs(deep, xptest.MR("gone")), deleted(time.Hour)), xptest.With(usage, deleted(time.Second)),
			},
		},
		"Dropped": {
			reason: "Crossplane deletes a dropped resource before it removes the reference.",
			objects: []*unstructured.Unstructured{
				xptest.With(x, xptest.Refs(mr)), xptest.With(mr, xptest.Without("metadata", "ownerReferences"), deleted(time.Hour)),
			},
		},
		"Mirrored": {
			reason: "A controller can copy the labels of a composed resource to its own objects.",
			objects: []*unstructured.Unstructured{
				xptest.With(m, xptest.Refs(xptest.Object("v1", "Service", xptest.Namespace, "s"))), xptest.Object("v1", "Service", xptest.Namespace, "s", xptest.ControlledBy(m)),
				xptest.Object("discovery.k8s.io/v1", "EndpointSlice", xptest.Namespace, "s-1", xptest.Labelled(xp.LabelComposite, "m"),
					xptest.ControlledBy(xptest.Object("v1", "Service", xptest.Namespace, "s"))),
			},
		},
		"SameName": {
			reason: "Objects of two namespaces can have the same name, and so the same external-name.",
			objects: []*unstructured.Unstructured{
				xptest.MR("b", xptest.In("team-a"), ready("True")), xptest.MR("b", xptest.In("team-b"), ready("True")),
			},
		},
		"Accounts": {
			reason: "External resources of two accounts can have the same name.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.In("team-a"), database("team-a"), ready("True")), xptest.MR("b", xptest.In("team-b"), database("team-b"), ready("True")),
			},
		},
		"Subnets": {
			reason: "Subnets of two networks can have the same name.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "default"), xptest.JSON(`{"spec":{"forProvider":{"virtualNetworkName":"n1"}}}`), ready("True")),
				xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "default"), xptest.JSON(`{"spec":{"forProvider":{"virtualNetworkName":"n2"}}}`), ready("True")),
			},
		},
		"OrphanPolicy": {
			reason: "An MR with the policy Orphan can be replaced by another MR.",
			objects: []*unstructured.Unstructured{
				xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "i-1"), xptest.Field("Orphan", "spec", "deletionPolicy"), deleted(time.Hour)),
				xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "i-1"), ready("True")),
			},
		},
	}.check(t, validated)
}

// database has an external-name that its user chose, and a ProviderConfig of its namespace.
func database(namespace string) xptest.Option {
	return func(u *unstructured.Unstructured) {
		xptest.Annotated(xp.AnnotationExternalName, "db")(u)
		xptest.JSON(`{"spec":{"providerConfigRef":{"kind":"ProviderConfig","name":"default"}},"status":{"atProvider":{"arn":"arn:` + namespace + `:db","id":"db"}}}`)(u)
	}
}

func TestHolds(t *testing.T) {
	x := held(xptest.XR("x"))
	cases := map[string]struct {
		reason   string
		restores map[string]string
		want     []string
	}{
		"UnderWay": {reason: "Velero continues the Restore.", restores: map[string]string{"velero/r": "WaitingForPluginOperations"}, want: []string{"problem Held XOrder x"}},
		"Ended":    {reason: "A Restore that ended lifts no hold.", restores: map[string]string{"velero/r": "PartiallyFailed"}, want: []string{"problem LeakedHold XOrder x"}},
		"Gone":     {reason: "A deleted Restore lifts no hold.", restores: map[string]string{}, want: []string{"problem LeakedHold XOrder x"}},
		"Unread":   {reason: "Without the Restore the state of the hold is unknown.", restores: map[string]string{"velero/r": PhaseUnread}, want: []string{"problem Held XOrder x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, summaries(Validate(objectsOf(x), ClusterState{Restores: tc.restores}))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The phases are those of velero pkg/apis/velero/v1/restore_types.go.
func TestIsUnderWay(t *testing.T) {
	for phase, want := range map[string]bool{
		"": true, "New": true, "InProgress": true, "WaitingForPluginOperations": true, "WaitingForPluginOperationsPartiallyFailed": true,
		"Finalizing": true, "FinalizingPartiallyFailed": true, // Velero has not recorded the result yet.
		"Completed": false, "PartiallyFailed": false, "Failed": false, "FailedValidation": false, PhaseUnread: false,
	} {
		if got := IsUnderWay(phase); got != want {
			t.Errorf("%q: got %v, want %v", phase, got, want)
		}
	}
}

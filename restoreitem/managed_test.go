package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const created = "2026-01-02T03:04:05Z"

func unnamed(o ...xptest.Option) *unstructured.Unstructured {
	return xptest.MR("b", append([]xptest.Option{xptest.Without("metadata", "annotations")}, o...)...)
}

func policies(p string) xptest.Option {
	return xptest.JSON(`{"spec":{"managementPolicies":` + p + `}}`)
}

// returned is how an MR is restored.
type returned struct {
	Op       string
	Identity xp.Identity
	Observes bool
	// Own are the policies in the hold, and Policies those of the restored MR.
	Own, Policies []string
	Status        []string
	// Asks means that Velero is to restore its status.
	Asks, Paused bool
	Name, Clone  string
	Logged       []string
}

func returnedBy(t *testing.T, out adopted) returned {
	t.Helper()
	h, u := out.hold(t), out.object
	if u == nil {
		u = out.item
	}
	got := returned{
		Op: out.OperationID, Paused: xp.IsPaused(u), Name: u.GetAnnotations()[xp.AnnotationExternalName], Asks: u.GetAnnotations()[xp.AnnotationRestoreStatus] == "true",
	}
	got.Policies, _ = xp.ManagementPolicies(u)
	if h != nil {
		got.Identity, got.Observes, got.Own, got.Status, got.Clone = h.Identity, h.Observes, h.Policies, h.Status, h.Clone
	}
	for _, line := range out.logged {
		got.Logged = append(got.Logged, strings.SplitN(line, ":", 2)[0])
	}

	return got
}

func runReturns(t *testing.T, cases map[string]adoptCase[returned]) {
	t.Helper()
	runAdopts(t, cases, returnedBy)
}

const bucketOp = "Bucket.v1alpha1.cloud.example.org//b"

// An MR that could create a second external resource is held, and has its known name.
func TestAdoptHoldsUnsafe(t *testing.T) {
	x := xptest.XR("x", xptest.UID("new"), xptest.Refs(xptest.MR("b")))
	composed := xptest.ControlledBy(xptest.XR("x", xptest.UID("old")))
	id := xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"},"conditions":[{"type":"Synced","status":"True"}]}}`)
	pending, failed := xptest.Annotated(xp.AnnotationCreatePending, created), xptest.Annotated(xp.AnnotationCreateFailed, created)
	pause := xptest.Annotated(xp.AnnotationPaused, "true")
	setting := map[string]string{"external-name-from-id": "Bucket.cloud.example.org"}
	nameless := map[string]string{"without-external-name": "Bucket.cloud.example.org"}
	holds := func(i xp.Identity) returned {
		return returned{Op: bucketOp, Identity: i, Paused: true, Logged: []string{"warning"}}
	}
	heldWithStatus := holds(xp.Recoverable)
	heldWithStatus.Status, heldWithStatus.Asks = []string{"atProvider"}, true
	composedOne := holds(xp.Unknown)
	composedOne.Op = ""
	heldNamed := holds(xp.CreatePending)
	heldNamed.Name = "b"
	runReturns(t, map[string]adoptCase[returned]{
		"Named":              {reason: "An MR with an external-name comes back unchanged.", item: xptest.MR("b"), want: returned{Name: "b"}},
		"NeverCreated":       {reason: "The provider creates the external resource, which never existed.", item: unnamed(failed), want: returned{}},
		"Unknown":            {reason: "Without an external-name the provider could create a second external resource.", item: unnamed(), want: holds(xp.Unknown)},
		"CreatePending":      {reason: "The external resource of a pending creation may exist.", item: unnamed(pending), want: holds(xp.CreatePending)},
		"CreatePendingNamed": {reason: "A pending creation is unclear even with an external-name.", item: xptest.MR("b", pending), want: heldNamed},
		"Recoverable":        {reason: "The restore must keep the id in the status.", item: unnamed(id), want: heldWithStatus},
		"Composed":           {reason: "The operation of the XR also releases its composed MR.", item: unnamed(composed), live: live(heldWith(x)), want: composedOne},
		"Setting": {
			reason: "The setting derives the external-name from the id for this kind.", item: unnamed(id), config: setting, want: returned{Name: "vpc-1", Logged: []string{"info"}},
		},
		"SettingOfAnother": {
			reason: "The setting names another kind.", item: unnamed(id), config: map[string]string{"external-name-from-id": "Bucket.example.org"}, want: heldWithStatus,
		},
		"Unnamed":              {reason: "The setting names the kind as one without external-names.", item: unnamed(), config: nameless, want: returned{}},
		"UnnamedCreatePending": {reason: "Even for a kind without external-names a pending creation is unclear.", item: unnamed(pending), config: nameless, want: holds(xp.CreatePending)},
		"UnnamedPaused":        {reason: "A paused MR of a kind without external-names needs no warning.", item: unnamed(pause), config: nameless, want: returned{Paused: true}},
		"UnnamedInTheBackup": {
			reason: "The source's setting names the kind as one without external-names.", item: unnamed(xptest.Field(true, "metadata", xp.FieldUnnamed)), want: returned{},
		},
		"SettingCreatePending": {reason: "The id is from before the pending creation.", item: unnamed(id, pending), config: setting, want: holds(xp.CreatePending)},
		"UnnamedID":            {reason: "The setting for kinds without external-names takes precedence over the id.", item: unnamed(id), config: nameless, want: returned{}},
		"SettingNamed":         {reason: "The setting does not change an existing external-name.", item: xptest.MR("b", id), config: setting, want: returned{Name: "b"}},
		"OwnPause": {
			reason: "A paused MR is not reconciled, and a user must name it before they resume it.", item: unnamed(pause), want: returned{Paused: true, Logged: []string{"warning"}},
		},
		"OwnPauseCreatePending": {reason: "The provider itself refuses to go on after a pending creation.", item: unnamed(pause, pending), want: returned{Paused: true}},
		"Observes": {
			reason: "An MR that only observes creates no external resource.", item: unnamed(policies(`["Observe"]`)), want: returned{Policies: []string{"Observe"}, Logged: []string{"warning"}},
		},
		"HeldBefore": {reason: "The pause in the backup is the plugin's hold, not a user's pause.", item: marked(unnamed()), want: holds(xp.Unknown)},
		"HeldBeforeAndNamed": {
			reason: "A user has named the MR since, so the operation releases the hold.", item: marked(xptest.MR("b")), want: returned{Op: bucketOp, Paused: true, Name: "b"},
		},
		"ForgedPause": {
			reason: "A forged mark that records a user's pause keeps the MR paused.", want: returned{Op: bucketOp, Paused: true},
			item: unnamed(xptest.Annotated(hold.Annotation, `{"paused":"true"}`)),
		},
		"ForgedPolicies": {
			reason: "Policies that differ from the hold's belong to the MR.", want: holds(xp.Unknown),
			item: unnamed(xptest.Annotated(hold.Annotation, `{"observes":true,"managementPolicies":["Observe"]}`)),
		},
	})
}

// Observe-first changes only policies that allow writes, and keeps the others.
func TestAdoptObservesFirst(t *testing.T) {
	first := map[string]string{"observe-first": "true"}
	x := xptest.XR("x", xptest.UID("new"), xptest.Refs(xptest.MR("b")))
	observe := []string{"Observe"}
	all := returned{Op: bucketOp, Observes: true, Policies: observe, Paused: true, Name: "b"}
	own := all
	own.Own = []string{"Observe", "Create"}
	composed := all
	composed.Op = ""
	unsafe := all
	unsafe.Identity, unsafe.Name, unsafe.Logged = xp.Unknown, "", []string{"warning"}
	before := held(xptest.MR("b", policies(`["Observe","Create"]`)), hold.Hold{Observes: true})
	upjets := xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"zone":"z"},"conditions":[]}}`)
	state := all
	state.Status, state.Asks = []string{"atProvider"}, true
	runReturns(t, map[string]adoptCase[returned]{
		"Upjet": {reason: "Upjet can create a second external resource despite an external-name (upjet 561).", item: xptest.MR("b", upjets), want: state},
		"UpjetOff": {
			reason: "A user who excludes a second creation can turn the wait off.", item: xptest.MR("b", upjets), config: map[string]string{"observe-first": "false"},
			want: returned{Op: bucketOp, Status: []string{"atProvider"}, Asks: true, Paused: true, Name: "b"},
		},
		"UpjetNotHeld": {
			reason: "The setting turns off all holds that are not necessary.", item: xptest.MR("b", upjets), config: map[string]string{"hold": "none", "restore-status": "none"},
			want: returned{Name: "b", Logged: []string{"warning"}},
		},
		"Off":  {reason: "The setting is off by default.", item: xptest.MR("b", policies(`["*"]`)), want: returned{Name: "b", Policies: []string{"*"}}},
		"None": {reason: "An MR without policies may do everything, so it observes first.", item: xptest.MR("b"), config: first, want: all},
		"Own":  {reason: "The mark keeps the MR's own policies.", item: xptest.MR("b", policies(`["Observe","Create"]`)), config: first, want: own},
		"Composed": {
			reason: "The XR waits for its composed MR.", item: xptest.MR("b", xptest.ControlledBy(xptest.XR("x"))), live: live(heldWith(x)), config: first, want: composed,
		},
		"Unsafe":   {reason: "An MR without an external-name observes once it has one.", item: unnamed(), config: first, want: unsafe},
		"Observes": {reason: "The MR already observes only.", item: xptest.MR("b", policies(`["Observe"]`)), config: first, want: returned{Name: "b", Policies: observe}},
		"Paused":   {reason: "An MR without any policy is not reconciled.", item: xptest.MR("b", policies(`[]`)), config: first, want: returned{Name: "b"}},
		"OwnPause": {
			reason: "A paused MR is not reconciled.", item: xptest.MR("b", xptest.Annotated(xp.AnnotationPaused, "true")), config: first, want: returned{Name: "b", Paused: true},
		},
		"NeverCreated": {
			reason: "An MR that was never created has no external resource to observe.", item: unnamed(xptest.Annotated(xp.AnnotationCreateFailed, created)), config: first, want: returned{},
		},
		"AgainOff": {reason: "The MR's own policies come back even with the setting off.", item: before, want: own},
		"Recovered": {
			reason: "An external-name from an id may be wrong, so the MR observes first.", item: unnamed(xptest.JSON(`{"status":{"atProvider":{"id":"b"}}}`)),
			config: map[string]string{"observe-first": "true", "external-name-from-id": "Bucket.cloud.example.org"},
			want:   returned{Op: bucketOp, Observes: true, Policies: observe, Paused: true, Name: "b", Logged: []string{"info"}},
		},
	})
}

// Velero restores status that functions read and no controller writes again.
func TestAdoptRequestsStatus(t *testing.T) {
	x := xptest.XR("x", xptest.UID("new"), xptest.Refs(xptest.MR("b")))
	composed := xptest.ControlledBy(xptest.XR("x"))
	failing := xptest.JSON(`{"status":{"atProvider":{"id":"b"},"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"False"}]}}`)
	both := []string{"atProvider", "conditions"}
	runReturns(t, map[string]adoptCase[returned]{
		"XR": {
			reason: "A function wrote the XR's status, so the restore keeps it.", item: xptest.XR("x", xptest.JSON(`{"status":{"address":"a","conditions":[]}}`)),
			want: returned{Op: operation, Status: []string{"address"}, Asks: true, Paused: true},
		},
		"XRWithout": {reason: "The XR has no status to restore, so the plugin saves a call.", item: xptest.XR("x", xptest.Reconciled()), want: returned{Op: operation, Paused: true}},
		"Failing": {
			reason: "A failing provider may not write the status again.", item: xptest.MR("b", composed, failing), live: live(heldWith(x)),
			want: returned{Status: both, Asks: true, Paused: true, Name: "b"},
		},
		"FailingAlone": {reason: "No function reads the status of an MR without an XR.", item: xptest.MR("b", failing), want: returned{Name: "b"}},
		"Conditions": {
			reason: "The provider writes the conditions again.", item: xptest.MR("b", composed, xptest.Reconciled()), live: live(heldWith(x)), want: returned{Name: "b"},
		},
		"OwnPause": {
			reason: "No provider writes the status of a paused MR, and functions read it.", item: xptest.MR("b", composed, xptest.Annotated(xp.AnnotationPaused, "true"), failing),
			live: live(heldWith(x)), want: returned{Status: both, Asks: true, Paused: true, Name: "b"},
		},
	})
}

// The conditions in the backup are in the mark, and not on the live object.
func TestAdoptKeepsConditions(t *testing.T) {
	mr := xptest.MR("b", xptest.Reconciled())
	x := xptest.XR("x", xptest.Refs(mr))
	xp.SetSavedConditions(x, []*unstructured.Unstructured{mr})
	out := adopt(t, live(), x, restoreOf(nil))
	h := out.hold(t)
	if h == nil || !cmp.Equal(h.ComposedConditions, []xp.TrueConditions{"Synced"}) || xp.HasBackupMetadata(out.object) {
		t.Errorf("got hold %+v, object %v", h, out.object)
	}
}

// A copy may do no more than its clone setting allows, whatever hold it had at backup time.
func TestAdoptCopiesOfUnsafe(t *testing.T) {
	const op = "Bucket.v1alpha1.cloud.example.org/copy/b"
	// lost is live and has lost its name; stored is its copy in the backup, which has the name.
	lost := unnamed(xptest.In(xptest.Namespace), xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`))
	stored := xptest.With(lost, xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))
	free := xptest.With(stored, policies(`["*"]`))
	observing, mapped := held(free, hold.Hold{Observes: true}), restoreOf(toCopy())
	observe, one := []string{"Observe"}, []string{"warning"}
	both := []string{"info", "warning"}
	runReturns(t, map[string]adoptCase[returned]{
		"Held": {
			reason: "The original manages the external resource, although it has lost its external-name.", item: stored, live: live(lost), restore: mapped,
			config: set("hold"), want: returned{Op: op, Paused: true, Name: "vpc-1", Clone: "Bucket team-a/b", Logged: one},
		},
		"ObservesFirst": {
			reason: "The copy keeps observing, so the plugin stores no policies for later.", item: free, live: live(lost), restore: mapped,
			config: map[string]string{"clone": "observe", "observe-first": "true"}, want: returned{Policies: observe, Name: "vpc-1", Logged: one},
		},
		"ObservedBefore": {
			reason: "The copy must not get the policies from before its hold.", item: observing, live: live(lost), restore: mapped, config: set("observe"),
			want: returned{Op: op, Policies: observe, Name: "vpc-1", Paused: true, Logged: one},
		},
		"NewAfterAHold": {
			reason: "The copy creates its own external resource with its own policies.", item: observing, live: live(lost), restore: mapped, config: set("new"),
			want: returned{Policies: []string{"*"}, Logged: one},
		},
		"NamedBySetting": {
			reason: "The setting gives the external-name before the check for copies.", item: lost, live: live(lost), restore: mapped,
			config: map[string]string{"clone": "hold", "external-name-from-id": "Bucket.cloud.example.org"},
			want:   returned{Op: op, Paused: true, Name: "vpc-1", Clone: "Bucket team-a/b", Logged: both},
		},
		"Unnamed": {
			reason: "The external-name is unknown, so the copy is held for that.", item: lost, live: live(lost), restore: mapped, config: set("new"),
			want: returned{Op: op, Identity: xp.Recoverable, Status: []string{"atProvider"}, Asks: true, Paused: true, Logged: one},
		},
	})
}

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
	runReturns(t, map[string]adoptCase[returned]{
		"Known":    {reason: "The id of a VPC is its external-name.", item: unnamed(vpc, id), want: named},
		"Part":     {reason: "The last part of a subnet's id is its external-name.", item: unnamed(subnet), want: returned{Name: "default", Logged: []string{"info"}}},
		"NotKnown": {reason: "For some kinds the external-name does not follow from the id.", item: unnamed(policy, id), want: heldPolicy},
		"Off":      {reason: "The setting turns the table off.", item: unnamed(vpc, id), config: map[string]string{"external-name-from-id": "none"}, want: held},
		"Doubted":  {reason: "Other MRs in the backup contradict the table.", item: unnamed(vpc, id, xptest.Field(true, "metadata", xp.FieldDoubted)), want: held},
		"DoubtedButChosen": {
			reason: "A user has chosen the kind, which overrides the doubt.", item: unnamed(vpc, id, xptest.Field(true, "metadata", xp.FieldDoubted)),
			config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io"}, want: named,
		},
		"Taken": {reason: "Two MRs must not manage one external resource.", item: unnamed(vpc, id), live: live(other()), want: heldBeside},
		"TakenByUnnamed": {
			reason: "The other MR has lost its external-name, but manages the same external resource.", want: heldBeside, item: unnamed(vpc, id),
			live: live(other(id, xptest.Without("metadata", "annotations"))),
		},
		"ObservedByAnother": {reason: "An MR that only observes is safe.", item: unnamed(vpc, id), live: live(other(policies(`["Observe"]`))), want: named},
		"OtherAccount": {
			reason: "The same id in another account is another external resource.", item: unnamed(vpc, id),
			live: live(other(xptest.JSON(`{"spec":{"providerConfigRef":{"name":"another"}}}`))), want: named,
		},
	})
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

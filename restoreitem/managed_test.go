package restoreitem

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
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
	Name         string
	Logged       []string
}

func returnedBy(t *testing.T, out adopted, item *unstructured.Unstructured) returned {
	t.Helper()
	if out.err != nil {
		t.Fatal(out.err)
	}
	u := out.object
	if u == nil {
		u = item
	}
	h, err := adoption.HoldOf(u)
	if err != nil {
		t.Fatal(err)
	}
	got := returned{
		Op: out.OperationID, Paused: xp.IsPaused(u), Name: u.GetAnnotations()[xp.AnnotationExternalName], Asks: u.GetAnnotations()[xp.AnnotationRestoreStatus] == "true",
	}
	got.Policies, _ = xp.ManagementPolicies(u)
	if h != nil {
		got.Identity, got.Observes, got.Own, got.Status = h.Identity, h.Observes, h.Policies, h.Status
	}
	for _, line := range out.logged {
		got.Logged = append(got.Logged, strings.SplitN(line, ":", 2)[0])
	}

	return got
}

type returnCase struct {
	reason string
	item   *unstructured.Unstructured
	live   []*unstructured.Unstructured
	config map[string]string
	want   returned
}

func runReturns(t *testing.T, cases map[string]returnCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live(tc.live...)
			c.config = tc.config
			got := returnedBy(t, adopt(t, c, tc.item, restoreOf(nil)), tc.item)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
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
	held := func(i xp.Identity) returned {
		return returned{Op: bucketOp, Identity: i, Paused: true, Logged: []string{"warning"}}
	}
	heldWithStatus := held(xp.Recoverable)
	heldWithStatus.Status, heldWithStatus.Asks = []string{"atProvider"}, true
	composedOne := held(xp.Unknown)
	composedOne.Op = ""
	heldNamed := held(xp.CreatePending)
	heldNamed.Name = "b"
	runReturns(t, map[string]returnCase{
		"Named": {reason: "An MR with an external-name comes back unchanged.", item: xptest.MR("b"), want: returned{Name: "b"}},
		"NamedOtherwise": {
			reason: "The external-name stays the same to the letter.", item: xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "prod/Other Name:7")), want: returned{Name: "prod/Other Name:7"},
		},
		"NeverCreated":       {reason: "The provider creates the external resource, which never existed.", item: unnamed(failed), want: returned{}},
		"NeverCreatedAgain":  {reason: "A second attempt at a creation that failed is safe too.", item: unnamed(failed, pending), want: returned{}},
		"Unknown":            {reason: "Without an external-name the provider could create a second external resource.", item: unnamed(), want: held(xp.Unknown)},
		"CreatePending":      {reason: "The external resource of a pending creation may exist.", item: unnamed(pending), want: held(xp.CreatePending)},
		"CreatePendingNamed": {reason: "A pending creation is unclear even with an external-name.", item: xptest.MR("b", pending), want: heldNamed},
		"Recoverable":        {reason: "The restore must keep the id in the status.", item: unnamed(id), want: heldWithStatus},
		"Composed":           {reason: "The operation of the XR also releases its composed MR.", item: unnamed(composed), live: []*unstructured.Unstructured{heldWith(x)}, want: composedOne},
		"ComposedByUnheld": {
			reason: "An XR that is not held has no operation, so the MR needs one.", item: unnamed(composed), live: []*unstructured.Unstructured{x}, want: held(xp.Unknown),
		},
		"Setting": {
			reason: "The setting derives the external-name from the id for this kind.", item: unnamed(id), config: setting, want: returned{Name: "vpc-1", Logged: []string{"info"}},
		},
		"SettingOfAnother": {
			reason: "The setting names another kind.", item: unnamed(id), config: map[string]string{"external-name-from-id": "Bucket.example.org"}, want: heldWithStatus,
		},
		"Unnamed":              {reason: "The setting names the kind as one without external-names.", item: unnamed(), config: nameless, want: returned{}},
		"UnnamedID":            {reason: "The setting for kinds without external-names takes precedence over the id.", item: unnamed(id), config: nameless, want: returned{}},
		"UnnamedCreatePending": {reason: "Even for a kind without external-names a pending creation is unclear.", item: unnamed(pending), config: nameless, want: held(xp.CreatePending)},
		"UnnamedOfAnother":     {reason: "The setting names another kind.", item: unnamed(), config: map[string]string{"without-external-name": "Bucket.example.org"}, want: held(xp.Unknown)},
		"UnnamedPaused":        {reason: "A paused MR of a kind without external-names needs no warning.", item: unnamed(pause), config: nameless, want: returned{Paused: true}},
		"UnnamedInTheBackup": {
			reason: "The source's setting names the kind as one without external-names.", item: unnamed(xptest.Field(true, "metadata", xp.FieldUnnamed)), want: returned{},
		},
		"SettingUnknown":       {reason: "Without an id the setting cannot derive an external-name.", item: unnamed(), config: setting, want: held(xp.Unknown)},
		"SettingCreatePending": {reason: "The id is from before the pending creation.", item: unnamed(id, pending), config: setting, want: held(xp.CreatePending)},
		"SettingNamed":         {reason: "The setting does not change an existing external-name.", item: xptest.MR("b", id), config: setting, want: returned{Name: "b"}},
		"OwnPause": {
			reason: "A paused MR is not reconciled, and a user must name it before they resume it.", item: unnamed(pause), want: returned{Paused: true, Logged: []string{"warning"}},
		},
		"OwnPauseCreatePending": {reason: "The provider itself refuses to go on after a pending creation.", item: unnamed(pause, pending), want: returned{Paused: true}},
		"Observes": {
			reason: "An MR that only observes creates no external resource.", item: unnamed(policies(`["Observe"]`)), want: returned{Policies: []string{"Observe"}, Logged: []string{"warning"}},
		},
		"NoPolicies": {reason: "An MR without any policy creates no external resource.", item: unnamed(policies(`[]`)), want: returned{Logged: []string{"warning"}}},
		"HeldBefore": {
			reason: "The pause in the backup is the plugin's hold, not a user's pause.", item: marked(unnamed()), want: held(xp.Unknown),
		},
		"HeldBeforeAndNamed": {
			reason: "A user has named the MR since, so the operation releases the hold.", item: marked(xptest.MR("b")), want: returned{Op: bucketOp, Paused: true, Name: "b"},
		},
		"ForgedPause": {
			reason: "A forged mark that records a user's pause keeps the MR paused.", want: returned{Op: bucketOp, Paused: true},
			item: unnamed(xptest.Annotated(adoption.AnnotationHold, `{"paused":"true"}`)),
		},
		"ForgedPolicies": {
			reason: "Policies that differ from the hold's belong to the MR.", want: held(xp.Unknown),
			item: unnamed(xptest.Annotated(adoption.AnnotationHold, `{"observes":true,"managementPolicies":["Observe"]}`)),
		},
	})
}

// The reason in the mark has the next step.
func TestAdoptReasonsOfHolds(t *testing.T) {
	item := unnamed(xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`))
	out := adopt(t, live(), item, restoreOf(nil))
	h, err := adoption.HoldOf(out.object)
	if err != nil || h == nil || !strings.Contains(h.Reason, `"vpc-1"`) || !strings.Contains(h.Reason, xp.AnnotationExternalName) {
		t.Errorf("got hold %+v, error %v", h, err)
	}
	if len(out.logged) != 1 || !strings.HasPrefix(out.logged[0], "warning: Restored and held: Bucket b: restored from a backup; it has no external-name") {
		t.Errorf("got log %v", out.logged)
	}
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
	secret := xptest.PublishesTo("infra", "s")
	before := xptest.MR("b", policies(`["Observe","Create"]`))
	if _, err := adoption.Put(before, adoption.Hold{Observes: true}); err != nil {
		t.Fatal(err)
	}
	upjets := xptest.JSON(`{"spec":{"initProvider":{}},"status":{"atProvider":{"zone":"z"},"conditions":[]}}`)
	state := all
	state.Status, state.Asks = []string{"atProvider"}, true
	runReturns(t, map[string]returnCase{
		"Upjet": {reason: "Upjet can create a second external resource despite an external-name (upjet 561).", item: xptest.MR("b", upjets), want: state},
		"UpjetOff": {
			reason: "A user who excludes a second creation can turn the wait off.", item: xptest.MR("b", upjets), config: map[string]string{"observe-first": "false"},
			want: returned{Op: bucketOp, Status: []string{"atProvider"}, Asks: true, Paused: true, Name: "b"},
		},
		"UpjetNotHeld": {
			reason: "The setting turns off all holds that are not necessary.", item: xptest.MR("b", upjets), config: map[string]string{"hold": "none", "restore-status": "none"},
			want: returned{Name: "b", Logged: []string{"warning"}},
		},
		"Off":       {reason: "The setting is off by default.", item: xptest.MR("b", policies(`["*"]`)), want: returned{Name: "b", Policies: []string{"*"}}},
		"None":      {reason: "An MR without policies may do everything, so it observes first.", item: xptest.MR("b"), config: first, want: all},
		"Own":       {reason: "The mark keeps the MR's own policies.", item: xptest.MR("b", policies(`["Observe","Create"]`)), config: first, want: own},
		"Publishes": {reason: "One hold covers both reasons.", item: xptest.MR("b", secret), config: first, want: all},
		"Composed": {
			reason: "The XR waits for its composed MR.", item: xptest.MR("b", xptest.ControlledBy(xptest.XR("x"))), live: []*unstructured.Unstructured{heldWith(x)}, config: first, want: composed,
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
		"Again":    {reason: "A backup of an MR that observed first still restores the MR's own policies.", item: before, config: first, want: own},
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
	runReturns(t, map[string]returnCase{
		"XR": {
			reason: "A function wrote the XR's status, so the restore keeps it.", item: xptest.XR("x", xptest.JSON(`{"status":{"address":"a","conditions":[]}}`)),
			want: returned{Op: operation, Status: []string{"address"}, Asks: true, Paused: true},
		},
		"XRWithout": {reason: "The XR has no status to restore, so the plugin saves a call.", item: xptest.XR("x", xptest.Reconciled()), want: returned{Op: operation, Paused: true}},
		"Failing": {
			reason: "A failing provider may not write the status again.", item: xptest.MR("b", composed, failing), live: []*unstructured.Unstructured{heldWith(x)},
			want: returned{Status: both, Asks: true, Paused: true, Name: "b"},
		},
		"FailingAlone": {reason: "No function reads the status of an MR without an XR.", item: xptest.MR("b", failing), want: returned{Name: "b"}},
		"Conditions": {
			reason: "The provider writes the conditions again.", item: xptest.MR("b", composed, xptest.Reconciled()), live: []*unstructured.Unstructured{heldWith(x)}, want: returned{Name: "b"},
		},
		"OwnPause": {
			reason: "No provider writes the status of a paused MR, and functions read it.", item: xptest.MR("b", composed, xptest.Annotated(xp.AnnotationPaused, "true"), failing),
			live: []*unstructured.Unstructured{heldWith(x)}, want: returned{Status: both, Asks: true, Paused: true, Name: "b"},
		},
	})
}

// The conditions in the backup are in the mark, and not on the live object.
func TestAdoptKeepsConditions(t *testing.T) {
	mr := xptest.MR("b", xptest.Reconciled())
	x := xptest.XR("x", xptest.Refs(mr))
	xp.SetSavedConditions(x, []*unstructured.Unstructured{mr})
	out := adopt(t, live(), x, restoreOf(nil))
	h, err := adoption.HoldOf(out.object)
	if err != nil || h == nil || !cmp.Equal(h.ComposedConditions, []xp.TrueConditions{"Synced"}) || xp.HasBackupMetadata(out.object) {
		t.Errorf("got hold %+v, error %v, object %v", h, err, out.object)
	}
}

// A copy may do no more than its clone setting allows, whatever hold it had at backup time.
func TestAdoptCopiesOfUnsafe(t *testing.T) {
	id := xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`)
	// lost is live and has lost its name; stored is its copy in the backup, which has the name.
	lost := unnamed(xptest.In(xptest.Namespace), id)
	stored := xptest.With(lost, xptest.Annotated(xp.AnnotationExternalName, "vpc-1"))
	observing := xptest.With(stored, policies(`["*"]`))
	if _, err := adoption.Put(observing, adoption.Hold{Observes: true}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, clone string
		item          *unstructured.Unstructured
		config        map[string]string
		want          returned
		clones        string
	}{
		"Held": {
			"The original manages the external resource, although it has lost its external-name.", "hold", stored, nil,
			returned{Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Paused: true, Name: "vpc-1", Logged: []string{"warning"}},
			"Bucket team-a/b",
		},
		"Observes": {"The copy only observes.", "observe", xptest.With(stored, policies(`["*"]`)), nil, returned{Policies: []string{"Observe"}, Name: "vpc-1", Logged: []string{"warning"}}, ""},
		"ObservesFirst": {
			"The copy keeps observing, so the plugin stores no policies for later.", "observe", xptest.With(stored, policies(`["*"]`)),
			map[string]string{"observe-first": "true"},
			returned{Policies: []string{"Observe"}, Name: "vpc-1", Logged: []string{"warning"}},
			"",
		},
		"ObservedBefore": {
			"The copy must not get the policies from before its hold.", "observe", observing, nil,
			returned{Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Policies: []string{"Observe"}, Name: "vpc-1", Paused: true, Logged: []string{"warning"}},
			"",
		},
		"New":           {"The copy creates its own external resource.", "new", stored, nil, returned{Logged: []string{"warning"}}, ""},
		"NewAfterAHold": {"The copy creates its own external resource with its own policies.", "new", observing, nil, returned{Policies: []string{"*"}, Logged: []string{"warning"}}, ""},
		"NamedBySetting": {
			"The setting gives the external-name before the check for copies.", "hold", lost,
			map[string]string{"external-name-from-id": "Bucket.cloud.example.org"},
			returned{Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Paused: true, Name: "vpc-1", Logged: []string{"info", "warning"}},
			"Bucket team-a/b",
		},
		"Unnamed": {
			"The external-name is unknown, so the copy is held for that.", "new", lost, nil,
			returned{
				Op: "Bucket.v1alpha1.cloud.example.org/copy/b", Identity: xp.Recoverable, Status: []string{"atProvider"}, Asks: true, Paused: true,
				Logged: []string{"warning"},
			},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := live(lost)
			c.config = set(tc.clone)
			maps.Copy(c.config, tc.config)
			out := adopt(t, c, tc.item, restoreOf(toCopy()))
			got := returnedBy(t, out, tc.item)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if h, _ := adoption.HoldOf(out.object); h != nil && h.Clone != tc.clones || h == nil && tc.clones != "" {
				t.Errorf("%s\ngot hold %+v", tc.reason, h)
			}
		})
	}
}

// A live MR is left as it is, and an earlier restore's hold on it continues.
func TestAdoptLeavesLiveMRs(t *testing.T) {
	update := restoreOf(nil)
	update.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	for name, tc := range map[string]struct {
		reason string
		item   *unstructured.Unstructured
		config map[string]string
		op     string
	}{
		"Named":        {reason: "The MR was not held.", item: xptest.MR("b")},
		"Unknown":      {reason: "An earlier restore holds the MR.", item: unnamed(), op: bucketOp},
		"ObserveFirst": {reason: "An earlier restore holds the MR to observe first.", item: xptest.MR("b"), config: map[string]string{"observe-first": "true"}, op: bucketOp},
	} {
		c := live(xptest.MR("b"))
		c.config = tc.config
		out := adopt(t, c, tc.item, update)
		if out.err != nil || !out.SkipRestore || out.OperationID != tc.op {
			t.Errorf("%s: %s\ngot %+v", name, tc.reason, out)
		}
	}
}

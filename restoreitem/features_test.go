package restoreitem

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func enabled(features ...string) func() []string {
	return func() []string { return features }
}

// An item that Velero links has no owner yet when it is created. It does not differ otherwise.
func TestVeleroFeatures(t *testing.T) {
	old := xptest.XR("x", xptest.UID("old"))
	mr := xptest.MR("b", xptest.ControlledBy(old))
	publisher := xptest.MR("p", xptest.ControlledBy(old), xptest.PublishesTo("infra", "s"))
	child := xptest.XR("child", xptest.ControlledBy(old))
	x := heldWith(xptest.XR("x", xptest.UID("new"), xptest.Refs(mr, publisher, child)))
	local := xptest.XRV2("x", xptest.UID("old"))
	namespaced := xptest.NamespacedMR("b", xptest.ControlledBy(local))
	modern := xptest.XRV2("x", xptest.UID("new"), xptest.Refs(namespaced))
	type want struct {
		Owners, Held, Operation, Skip bool
		// Old means that an owner's old UID is left anywhere.
		Old bool
		// Logged is how often the log has that Velero writes owners, and Doubted that they may
		// differ.
		Logged, Doubted int
	}
	cases := map[string]struct {
		reason   string
		features func() []string
		live     *cluster
		item     *unstructured.Unstructured
		want     want
	}{
		"Off":          {reason: "Velero restores no owner references by default.", features: enabled(), live: live(x), item: mr, want: want{Owners: true}},
		"None":         {reason: "A dry run has no Velero server with features.", live: live(x), item: mr, want: want{Owners: true}},
		"Another":      {reason: "Other features of Velero do not matter.", features: enabled("EnableCSI"), live: live(x), item: mr, want: want{Owners: true}},
		"MR":           {reason: "Velero restores the owner reference, so the plugin must not.", features: enabled("EnableCSI", FeatureRelink), live: live(x), item: mr, want: want{Logged: 1}},
		"NamespacedMR": {reason: "Velero restores owner references of namespaced MRs too.", features: enabled(FeatureRelink), live: live(modern), item: namespaced, want: want{Logged: 1}},
		"Secret": {
			reason: "Velero restores owner references of connection secrets too.", features: enabled(FeatureRelink), live: live(xptest.With(publisher, xptest.UID("new"))),
			item: xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publisher)), want: want{Logged: 1},
		},
		"Publisher": {
			reason: "A publishing MR stays held, and the XR's operation releases it.", features: enabled(FeatureRelink), live: live(x), item: publisher,
			want: want{Held: true, Logged: 1},
		},
		"ComposedXR": {
			reason: "A composed XR is held and has an operation.", features: enabled(FeatureRelink), live: live(x), item: child,
			want: want{Held: true, Operation: true, Logged: 1},
		},
		"XR": {reason: "The XR has no owner, so Velero restores no reference.", features: enabled(FeatureRelink), live: live(), item: old, want: want{Held: true, Operation: true}},
		"ControlledByAnother": {
			reason: "Velero compares UIDs and ignores the XR's list, so the plugin reports the mismatch.", features: enabled(FeatureRelink),
			live: live(heldWith(xptest.XR("x", xptest.UID("new")))), item: mr, want: want{Logged: 1, Doubted: 1},
		},
		"Reconciled": {
			reason: "A reconciled XR does not list the MR, so the MR stays out.", features: enabled(FeatureRelink), live: live(xptest.XR("x", xptest.UID("new"))), item: mr,
			want: want{Skip: true, Logged: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			log, hook := logtest.NewNullLogger()
			out, err := NewAdopt(Crossplane(), tc.live, nil, log, Shared{Features: tc.features}).Execute(inputFor(tc.item, restoreOf(nil)))
			if err != nil {
				t.Fatal(err)
			}
			got := want{Operation: out.OperationID != "" && !noteText(out.OperationID, &velero.OperationProgress{}), Skip: out.SkipRestore}
			if out.UpdatedItem != nil {
				u := &unstructured.Unstructured{Object: out.UpdatedItem.UnstructuredContent()}
				h, err := adoption.HoldOf(u)
				if err != nil {
					t.Fatal(err)
				}
				for _, ref := range u.GetOwnerReferences() {
					got.Old = got.Old || ref.UID == "old"
				}
				got.Owners, got.Held = len(u.GetOwnerReferences()) > 0, h != nil && xp.IsPaused(u)
			}
			for _, e := range hook.AllEntries() {
				if strings.Contains(e.Message, "Velero writes the owner references") {
					got.Logged++
				}
				if strings.Contains(e.Message, "Velero may restore an owner") {
					got.Doubted++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A restore has thousands of items and several actions in one process. Each poll is another
// process, and writes no owners.
func TestVeleroFeaturesLogOnce(t *testing.T) {
	old := xptest.XR("x", xptest.UID("old"))
	mr := xptest.MR("b", xptest.ControlledBy(old))
	log, hook := logtest.NewNullLogger()
	shared := Shared{Requested: &RequestedItems{}, Features: enabled(FeatureRelink)}
	for range 2 {
		a := NewAdopt(Crossplane(), live(xptest.XR("x", xptest.UID("new"), xptest.Refs(mr))), nil, log, shared)
		for range 2 {
			if _, err := a.Execute(inputFor(mr, restoreOf(nil))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if told := len(hook.AllEntries()); told != 1 {
		t.Errorf("the log has %d lines, want one", told)
	}
}

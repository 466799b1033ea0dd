package restoreitem

import (
	"errors"
	"strings"
	"testing"

	"github.com/sirupsen/logrus/hooks/test"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// Velero applies resource modifiers after all actions. One that removes a hold is found before the
// item is created.
func TestAdoptChecksModifiers(t *testing.T) {
	rule := func(group, what string) string {
		return "version: v1\nresourceModifierRules:\n- conditions:\n    groupResource: \"" + group + "\"\n  " + what + "\n"
	}
	const (
		all       = `patches: [{operation: remove, path: /metadata/annotations}]`
		replaces  = `patches: [{operation: replace, path: /metadata/annotations, value: "{\"a\": \"b\"}"}]`
		unpauses  = `patches: [{operation: replace, path: /metadata/annotations/crossplane.io~1paused, value: "false"}]`
		removes   = `patches: [{operation: remove, path: /metadata/annotations/velero.crossplane.x-k8s.io~1hold}]`
		merges    = `mergePatches: [{patchData: "metadata: {annotations: null}"}]`
		strategic = `strategicPatches: [{patchData: "{\"metadata\":{\"annotations\":{\"crossplane.io/paused\":null}}}"}]`
		adds      = `patches: [{operation: add, path: /metadata/annotations/team, value: a}, {operation: replace, path: /spec/region, value: us}]`
		tests     = `patches: [{operation: test, path: /metadata/name, value: other}, {operation: remove, path: /metadata/annotations}]`
	)
	xr, mr := xptest.XRV2("x"), xptest.MR("b")
	held := xptest.MR("b", xptest.Without("metadata", "annotations", xp.AnnotationExternalName), xptest.Reconciled())
	cases := map[string]struct {
		reason  string
		item    *unstructured.Unstructured
		rule    string
		err     error
		refused bool
		unnamed bool
	}{
		"RemovesAll":          {reason: "The rule removes all annotations, and the hold with them.", item: xr, rule: rule("orders.example.org", all), refused: true},
		"ReplacesAll":         {reason: "The rule replaces all annotations, and the hold with them.", item: xr, rule: rule("*.example.org", replaces), refused: true},
		"Unpauses":            {reason: "The rule takes the pause off, so Crossplane would reconcile the XR.", item: xr, rule: rule("orders.example.org", unpauses), refused: true},
		"RemovesMark":         {reason: "Without the mark no operation releases the XR.", item: xr, rule: rule("orders.example.org", removes), refused: true},
		"Merges":              {reason: "A null in a merge patch removes the annotations.", item: xr, rule: rule("orders.example.org", merges), refused: true},
		"Strategic":           {reason: "For custom resources a strategic merge patch works like a merge patch.", item: xr, rule: rule("orders.example.org", strategic), refused: true},
		"HeldMR":              {reason: "The provider would create a second external resource.", item: held, rule: rule("buckets.cloud.example.org", all), refused: true},
		"Adds":                {reason: "The rule leaves the hold as it is.", item: xr, rule: rule("orders.example.org", adds)},
		"Tests":               {reason: "The rule's test does not match this XR.", item: xr, rule: rule("orders.example.org", tests)},
		"OtherKind":           {reason: "The rule is for another kind.", item: xr, rule: rule("widgets.example.org", all)},
		"NotHeld":             {reason: "The item is not held, so the rule cannot remove a hold.", item: mr, rule: rule("buckets.cloud.example.org", all)},
		"None":                {reason: "The Restore names no resource modifiers.", item: xr, rule: rule("orders.example.org", all), unnamed: true},
		"CannotBeRead":        {reason: "Unreadable rules may remove the hold.", item: xr, err: errors.New("not now"), refused: true},
		"CannotBeReadNotHeld": {reason: "An item without a hold comes back as with Velero alone.", item: mr, err: errors.New("not now")},
		"NoRules":             {reason: "Rules that the plugin cannot parse may remove the hold.", item: xr, rule: "?", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live()
			c.configMap = map[string]string{"rules": tc.rule}
			restore := restoreOf(nil)
			if !tc.unnamed {
				restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "changes"}
			}
			c.modifierErr = tc.err
			out := adopt(t, c, tc.item, restore)
			if (out.err != nil) != tc.refused {
				t.Errorf("%s\ngot %v", tc.reason, out.err)
			}
			if tc.refused && !strings.Contains(out.err.Error(), "velero/changes") {
				t.Errorf("the error must name the ConfigMap: %v", out.err)
			}
		})
	}
}

// Velero will have resource modifiers that no Restore names.
func TestAdoptChecksDefaultModifiers(t *testing.T) {
	const strips = "version: v1\nresourceModifierRules:\n- conditions: {groupResource: \"*.example.org\"}\n  patches: [{operation: remove, path: /metadata/annotations}]\n"
	absent := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "cni")
	cases := map[string]struct {
		reason          string
		of, rules       string
		named           bool
		skips           any
		err, restoreErr error
		refused         bool
	}{
		"Strips":        {reason: "The server's rules apply to each Restore that names none.", of: "cni", rules: strips, refused: true},
		"None":          {reason: "The server has no rules.", rules: strips},
		"Skipped":       {reason: "The Restore skips the server's rules.", of: "cni", rules: strips, skips: true},
		"NotSkipped":    {reason: "The Restore asks for the server's rules.", of: "cni", rules: strips, skips: false, refused: true},
		"Named":         {reason: "A Restore's own rules replace the server's.", of: "cni", rules: "version: v1", named: true},
		"Absent":        {reason: "Velero continues without the missing ConfigMap.", of: "cni", err: absent},
		"Unreadable":    {reason: "Velero continues without rules that it cannot parse.", of: "cni", rules: "?"},
		"Unknown":       {reason: "Unreadable rules may remove the hold.", of: "cni", err: errors.New("not now"), refused: true},
		"UnreadRestore": {reason: "An unreadable Restore may use the server's rules.", of: "cni", rules: strips, restoreErr: errors.New("not now"), refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := live()
			c.configMap, c.modifierErr, c.restoreErr = map[string]string{"rules": tc.rules}, tc.err, tc.restoreErr
			c.restore = map[string]any{"spec": map[string]any{"skipDefaultResourceModifier": tc.skips}}
			restore := restoreOf(nil)
			if tc.named {
				restore.Spec.ResourceModifier = &corev1.TypedLocalObjectReference{Kind: "ConfigMap", Name: "mine"}
			}
			log, _ := test.NewNullLogger()
			a := NewAdopt(Crossplane(), c, nil, log, Shared{Modifiers: func() string { return tc.of }})
			_, err := a.Execute(inputFor(xptest.XRV2("x"), restore))
			if (err != nil) != tc.refused || err != nil && !strings.Contains(err.Error(), "velero/cni") {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}

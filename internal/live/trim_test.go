package live

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestTrim(t *testing.T) {
	x := xptest.XR("x", xptest.Field(map[string]any{"deep": "yes"}, "spec", "parameters"), xptest.Field("ready", "status", "phase"))
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.PublishesTo("infra", "s"))
	managedBy := func(fields string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":[{"manager":"kubectl","fieldsV1":` + fields + `}]}}`)
	}
	all := managedBy(`{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{},"f:other":{}}},"f:spec":{"f:managementPolicies":{},"f:parameters":{}}}`)
	large := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(u, all, xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"))
	}
	some := managedBy(`{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}},"f:spec":{"f:managementPolicies":{}}}`)
	held := xptest.With(mr, xptest.Annotated(adoption.AnnotationHold, "{}"), xptest.Field("id", "status", "atProvider", "id"))
	refreshed := xptest.JSON(`{"metadata":{"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{"f:parameters":{}}}},
		{"manager":"` + adoption.FieldManager + `","fieldsV1":{"f:metadata":{"f:labels":{"f:velero.io/restore-name":{}}}}}]}}`)
	freed := xptest.With(mr, xptest.Annotated(adoption.AnnotationHold, `{"freed":true}`))
	cases := map[string]struct {
		reason     string
		slim, want *unstructured.Unstructured
	}{
		"XR":       {reason: "Functions can write any status.", slim: x, want: xptest.With(x, some)},
		"Claim":    {reason: "The settings of a claim can be in any field.", slim: xptest.Claim("o", xptest.OfXR(x)), want: xptest.Claim("o", xptest.OfXR(x), some)},
		"Revision": {reason: "The pipeline of a revision names what it needs.", slim: xptest.Revision("r", x), want: xptest.Revision("r", x)},
		"Held":     {reason: "The hold can restore any field.", slim: held, want: xptest.With(held, some)},
		"Refreshed": {
			reason: "The release of a refreshed object writes all managedFields.", slim: xptest.With(held, refreshed), want: xptest.With(held, refreshed),
		},
		"Released": {reason: "A release writes all managedFields back.", slim: freed, want: xptest.With(freed, all)},
		"MR": {
			reason: "Only the provider needs the settings and state of the external resource.", want: xptest.With(mr, xptest.Field(map[string]any{}, "spec", "forProvider")),
			slim: xptest.With(mr, xptest.Field("large", "spec", "forProvider", "policy"), xptest.Field("id", "status", "atProvider", "id")),
		},
		"Secret": {
			reason: "The plugin must not keep secret data.", want: xptest.Secret("s", xptest.ControlledBy(mr)),
			slim: xptest.Secret("s", xptest.ControlledBy(mr), xptest.Field(map[string]any{"key": "dmFsdWU="}, "data")),
		},
		"UncontrolledSecret": {
			reason: "The managedFields of data and type name the publisher of a Secret without a controller.",
			want:   xptest.Secret("s", managedBy(`{"f:data":{".":{},"f:key":{}},"f:type":{}}`)),
			slim:   xptest.Secret("s", managedBy(`{"f:data":{".":{},"f:key":{}},"f:immutable":{},"f:type":{}}`)),
		},
		"Native": {
			reason: "The plugin does not need the spec of Kubernetes' own kinds.", slim: xptest.Object("apps/v1", "Deployment", "team-a", "d", xptest.Field(int64(3), "spec", "replicas")),
			want: xptest.Object("apps/v1", "Deployment", "team-a", "d", xptest.Field(map[string]any{}, "spec")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			whole := large(tc.slim)
			if fields, ok, _ := unstructured.NestedSlice(tc.slim.Object, "metadata", "managedFields"); ok {
				xptest.Field(fields, "metadata", "managedFields")(whole)
			}
			got := trim(whole)
			// Removing the only annotation leaves an empty map.
			if len(got.GetAnnotations()) == 0 {
				got.SetAnnotations(nil)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Trimmed objects have the same plans.
func TestTrimChangesNoPlan(t *testing.T) {
	objects, _, _, _ := restoredTree()
	restoredUsage := restored(xptest.Object("v1", "ConfigMap", "team-a", "c", xptest.ControlledBy(xptest.XR("n"))))
	native := restored(xptest.XR("n", xptest.Refs(restoredUsage)))
	nameless := restored(xptest.MR("unnamed", xptest.PublishesTo("infra", "s"), xptest.Without("metadata", "annotations")))
	objects = append(objects, native, restoredUsage, nameless, restored(xptest.Secret("s", xptest.In("infra"))))
	for name, change := range map[string]xptest.Option{
		"AsRestored": func(*unstructured.Unstructured) {},
		"SeenPaused": xptest.SeenPaused(),
		"Reconciled": xptest.Reconciled(),
		"Failing":    xptest.Synced("False", "ReconcileError", "no"),
		"Deleting":   xptest.Deleting(),
	} {
		t.Run(name, func(t *testing.T) {
			whole, slimmed := adoption.NewSnapshot(adoption.Unverified), adoption.NewSnapshot(adoption.Unverified)
			for _, u := range objects {
				u = xptest.With(u, change)
				whole.AddRestored(u)
				slimmed.AddRestored(trim(u))
			}
			if diff := cmp.Diff(whole.Subjects(), slimmed.Subjects()); diff != "" {
				t.Errorf("subjects: -whole, +trimmed:\n%s", diff)
			}
			if diff := cmp.Diff(whole.Needs(whole.Subjects()), slimmed.Needs(whole.Subjects())); diff != "" {
				t.Errorf("needs: -whole, +trimmed:\n%s", diff)
			}
			for _, u := range objects {
				r := xp.RefTo(u)
				a, b := adoption.Next(whole, r), adoption.Next(slimmed, r)
				byName := cmp.Comparer(func(a, b *unstructured.Unstructured) bool {
					return a == b || a != nil && b != nil && xp.RefTo(a) == xp.RefTo(b)
				})
				if diff := cmp.Diff(a, b, byName); diff != "" {
					t.Errorf("%s: -whole, +trimmed:\n%s", r, diff)
				}
			}
		})
	}
}

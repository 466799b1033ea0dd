package xp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	oldUID = types.UID("0a0a0a0a-1111-4222-8333-444444444444")
	newUID = types.UID("0b0b0b0b-1111-4222-8333-444444444444")
)

func TestUIDFields(t *testing.T) {
	type field struct {
		Path                      string
		Carried, Secret, Identity bool
	}
	byPipeline := xptest.JSON(`{"metadata": {"managedFields": [{"manager": "apiextensions.crossplane.io/composed/1a2b", "fieldsV1": {
		"f:metadata": {"f:annotations": {"f:note": {}}}, "f:spec": {"f:forProvider": {"f:tags": {}}, "f:initProvider": {"f:id": {}}}}}]}}`)
	named := xptest.JSON(`{"metadata": {"managedFields": [{"manager": "apiextensions.crossplane.io/composed/1a2b", "fieldsV1": {
		"f:metadata": {"f:annotations": {"f:crossplane.io/external-name": {}}}}}]}}`)
	cases := map[string]struct {
		reason string
		u      *unstructured.Unstructured
		want   []field
	}{
		"Fragment": {reason: "A part of a UID proves nothing.", u: xptest.MR("b", xptest.JSON(`{"spec": {"forProvider": {"name": "0a0a0a0a"}}}`))},
		"Crossplanes": {
			reason: "Owner references, resourceRefs, the status and Crossplane's own annotations are rewritten by their writers.",
			u: xptest.XR("x", xptest.ControlledBy(xptest.XR("y", xptest.UID(oldUID))), xptest.JSON(`{
				"metadata": {"labels": {"crossplane.io/composite": "`+string(oldUID)+`"}, "annotations": {"velero.crossplane.x-k8s.io/hold": "`+string(oldUID)+`"}},
				"spec": {"resourceRefs": [{"name": "`+string(oldUID)+`"}]}, "status": {"id": "`+string(oldUID)+`"}}`)),
		},
		"Published": {
			reason: "The documented pattern of Crossplane v1 is a name inside the cluster.", u: xptest.MR("b", xptest.PublishesTo("infra", string(oldUID)+"-db")),
			want: []field{{Path: "spec.writeConnectionSecretToRef.name", Carried: true, Secret: true}},
		},
		"Read": {
			reason: "Providers read Secrets by names inside the cluster.",
			u: xptest.MR("b", xptest.JSON(`{"spec": {"forProvider": {"passwordSecretRef": {"namespace": "n", "name": "p-`+string(oldUID)+`"},
				"more": [{"keySecretRefs": [{"name": "`+string(oldUID)+`"}]}]}}}`)),
			want: []field{
				{Path: "spec.forProvider.more[0].keySecretRefs[0].name", Carried: true, Secret: true},
				{Path: "spec.forProvider.passwordSecretRef.name", Carried: true, Secret: true},
			},
		},
		"Identity": {
			reason: "An external-name or a field of the external resource may be its identity.",
			u: xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "db-"+string(oldUID)),
				xptest.JSON(`{"spec": {"forProvider": {"tags": {"`+string(oldUID)+`": "owned"}}, "initProvider": {"id": "`+string(oldUID)+`"}}}`)),
			want: []field{
				{Path: "metadata.annotations[crossplane.io/external-name]", Identity: true},
				{Path: "spec.forProvider.tags." + string(oldUID), Identity: true},
				{Path: "spec.initProvider.id", Identity: true},
			},
		},
		"Manifest": {
			reason: "What provider-kubernetes applies is the external resource.",
			u:      xptest.MR("b", xptest.JSON(`{"spec": {"forProvider": {"manifest": {"spec": {"secretRef": {"name": "`+string(oldUID)+`"}}}}}}`)),
			want:   []field{{Path: "spec.forProvider.manifest.spec.secretRef.name", Identity: true}},
		},
		"Selected": {
			reason: "An MR finds another by labels, which change together.",
			u: xptest.MR("b", xptest.Labelled("net", string(oldUID)), xptest.Annotated("note", string(oldUID)),
				xptest.JSON(`{"spec": {"forProvider": {"vpcIdSelector": {"matchLabels": {"net": "`+string(oldUID)+`"}}}}}`)),
			want: []field{
				{Path: "metadata.annotations[note]", Carried: true},
				{Path: "metadata.labels[net]", Carried: true},
				{Path: "spec.forProvider.vpcIdSelector.matchLabels.net", Carried: true},
			},
		},
		"XR": {
			reason: "Its Composition makes names from the spec of a composed XR.",
			u:      xptest.XR("x", xptest.JSON(`{"spec": {"parameters": {"id": "`+string(oldUID)+`"}}}`), byPipeline),
			want:   []field{{Path: "spec.parameters.id", Carried: true}},
		},
		"Named": {
			reason: "A pipeline composes an object under the name that it has, which the provider has copied.", u: xptest.MR(string(oldUID), byPipeline,
				xptest.JSON(`{"spec": {"forProvider": {"name": "`+string(oldUID)+`"}}}`)),
			want: []field{{Path: "metadata.annotations[crossplane.io/external-name]"}, {Path: "metadata.name"}, {Path: "spec.forProvider.name"}},
		},
		"ByPipeline": {
			reason: "A pipeline writes the external-name.", u: xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "db-"+string(oldUID)), named),
			want: []field{{Path: "metadata.annotations[crossplane.io/external-name]", Identity: true}},
		},
		"Kubernetes": {
			reason: "Selectors of Kubernetes objects can be immutable.",
			u: xptest.Object("apps/v1", "Deployment", "n", "d", byPipeline, xptest.JSON(`{"spec": {"selector": {"matchLabels": {"i": "`+string(oldUID)+`"}},
				"template": {"spec": {"containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "`+string(oldUID)+`"}}}]}]}}}}`)),
			want: []field{
				{Path: "spec.template.spec.containers[0].env[0].valueFrom.secretKeyRef.name", Carried: true, Secret: true},
				{Path: "spec.selector.matchLabels.i"},
			},
		},
		"Many": {
			reason: "A tenant can write any number of them.",
			u: xptest.Object("v1", "ConfigMap", "n", "c", byPipeline, xptest.JSON(`{"data": {"a": "`+string(oldUID)+`", "b": "`+string(oldUID)+`", "c": "`+string(oldUID)+
				`", "d": "`+string(oldUID)+`", "e": "`+string(oldUID)+`", "f": "`+string(oldUID)+`"}}`)),
			want: []field{{Path: "data.a"}, {Path: "data.b"}, {Path: "data.c"}, {Path: "data.d"}, {Path: "data.e"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.u.DeepCopy()
			if got := xp.HasUID(tc.u); got != (len(tc.want) > 0) {
				t.Errorf("%s\nIt has a UID: %v", tc.reason, got)
			}
			var got []field
			for _, f := range xp.UIDFields(tc.u, oldUID, "short") {
				got = append(got, field{Path: f.Path, Secret: f.NamesSecret(), Identity: f.IsIdentity(tc.u)})
			}
			if diff := cmp.Diff(before, tc.u); diff != "" {
				t.Errorf("%s\nIt was changed: -before, +after:\n%s", tc.reason, diff)
			}
			xp.ReplaceUIDs(tc.u, map[types.UID]types.UID{oldUID: newUID})
			carried := xp.UIDFields(tc.u, newUID)
			for n := range got {
				got[n].Carried = slices.ContainsFunc(carried, func(f xp.UIDField) bool { return f.Path == got[n].Path })
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A tenant can write keys of any length and nest them deeply. Paths get into marks and messages.
func TestUIDFieldsShortensPaths(t *testing.T) {
	var v any = string(oldUID)
	for range 9000 {
		v = map[string]any{"k": v}
	}
	u := xptest.MR("b")
	u.Object["spec"] = map[string]any{"forProvider": map[string]any{strings.Repeat("k", 1<<20): string(oldUID), "deep": v}}
	fields := xp.UIDFields(u, oldUID)
	if len(fields) != 2 {
		t.Fatalf("got %d fields", len(fields))
	}
	for _, f := range fields {
		if len(f.Path) > 210 || !strings.HasPrefix(f.Path, "spec.forProvider.") || !f.IsIdentity(u) {
			t.Errorf("got %d bytes: %.300s", len(f.Path), f.Path)
		}
	}
}

func TestUIDFieldsAllocatesNothing(t *testing.T) {
	u := xptest.MR("b", xptest.PublishesTo("infra", "s"), xptest.Labelled("a", "b"), xptest.JSON(`{"spec": {"forProvider": {"tags": {"a": "b"}, "list": [1, "x", {"y": "z"}]}}}`))
	if n := testing.AllocsPerRun(100, func() { xp.UIDFields(u, oldUID) }); n > 3 {
		t.Errorf("a backup of many MRs allocates %v times for each", n)
	}
}

func TestIsRenamed(t *testing.T) {
	for name, tc := range map[string]struct {
		reason          string
		current, former string
		want            bool
	}{
		"Renamed":   {reason: "Only the UID differs.", current: "a-" + string(newUID) + "-b", former: "a-" + string(oldUID) + "-b", want: true},
		"Same":      {reason: "The same name is no other.", current: string(newUID), former: string(newUID)},
		"OtherRest": {reason: "Another name with a UID is another Secret.", current: string(newUID) + "-a", former: string(oldUID) + "-b"},
		"NotAUID":   {reason: "What the UID replaces must be a UID.", current: string(newUID), former: "0a0a0a0a-1111-4222-8333-44444444444_"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := xp.IsRenamed(tc.current, tc.former, newUID); got != tc.want {
				t.Errorf("%s\ngot %v", tc.reason, got)
			}
		})
	}
}

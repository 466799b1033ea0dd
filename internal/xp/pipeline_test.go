package xp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestPipelineInputsOf(t *testing.T) {
	const selects = "the step env selects objects of the kind EnvironmentConfig.apiextensions.crossplane.io by labels"
	cases := map[string]struct {
		reason string
		step   string
		want   *xp.PipelineInputs
	}{
		"Named": {
			reason: "The step names the EnvironmentConfigs that the function reads.", want: &xp.PipelineInputs{Environments: []string{"a", "b"}},
			step: `{"input":{"spec":{"environmentConfigs":[{"type":"Reference","ref":{"name":"b"}},{"ref":{"name":"a"}},{"ref":{"name":"a"}}]}}}`,
		},
		"Selected": {
			reason: "The selected EnvironmentConfig depends on the XR.", want: &xp.PipelineInputs{Others: []string{selects}},
			step: `{"input":{"spec":{"environmentConfigs":[{"type":"Selector","selector":{"matchLabels":[{"key":"a","type":"Value","value":"b"}]}}]}}}`,
		},
		"Extra": {
			reason: "A function can read objects of any kind.", step: `{"input":{"spec":{"extraResources":[{"apiVersion":"example.org/v1","kind":"XCluster","into":"c","ref":{"name":"main"}},` +
				`{"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"EnvironmentConfig","ref":{"name":"e"}}]}}}`,
			want: &xp.PipelineInputs{Environments: []string{"e"}, Others: []string{"the step env reads main of the kind XCluster.example.org"}},
		},
		"Required": {
			reason: "Crossplane v2 lists the required resources in the step.", step: `{"requirements":{"requiredResources":[{"requirementName":"r","apiVersion":"v1","kind":"ConfigMap","namespace":"n","name":"c"},` +
				`{"requirementName":"e","apiVersion":"apiextensions.crossplane.io/v1beta1","kind":"EnvironmentConfig","name":"e"},` +
				`{"requirementName":"s","apiVersion":"apiextensions.crossplane.io/v1beta1","kind":"EnvironmentConfig","matchLabels":{"a":"b"}}]}}`,
			want: &xp.PipelineInputs{Environments: []string{"e"}, Others: []string{"the step env reads n/c of the kind ConfigMap", selects}},
		},
		"Elsewhere": {
			reason: "Any function can have such a field, at any depth.", step: `{"input":{"a":[{"b":{"environmentConfigs":[{"ref":{"name":"e"}}]}}]}}`,
			want: &xp.PipelineInputs{Environments: []string{"e"}},
		},
		"Impossible": {reason: "No object can have such a name.", want: &xp.PipelineInputs{}, step: `{"input":{"environmentConfigs":[{"ref":{"name":"../x"}}]}}`},
		"Malformed": {
			reason: "A malformed step requires nothing.", want: &xp.PipelineInputs{},
			step: `{"input":{"environmentConfigs":"x","extraResources":[1,{"ref":1},{"kind":1}]},"requirements":{"requiredResources":{}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			revision := xptest.Revision("r", xptest.XR("x"), xptest.JSON(`{"spec":{"pipeline":[{"step":"env"},`+tc.step+`]}}`))
			pipeline := revision.Object["spec"].(map[string]any)["pipeline"].([]any) //nolint:forcetypeassert // The test fails.
			pipeline[1].(map[string]any)["step"] = "env"                             //nolint:forcetypeassert // The test fails.
			if diff := cmp.Diff(tc.want, xp.PipelineInputsOf(revision), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := xp.PipelineInputsOf(xptest.Revision("r", xptest.XR("x"), xptest.JSON(`{"spec":{"pipeline":[1,"x"]}}`))); len(got.Environments)+len(got.Others) > 0 {
		t.Errorf("a malformed step reads nothing; got %v", got)
	}
}

func TestRequired(t *testing.T) {
	revision := xptest.Revision("r", xptest.XR("x"), xptest.JSON(`{"spec":{"pipeline":[1,`+
		`{"step":"b","requirements":{"requiredSchemas":[{}],"requiredResources":[]}},`+
		`{"step":"a","requirements":{"requiredResources":[{}]}},{"step":"c","requirements":"x"},{"step":"d"}]}}`))
	if diff := cmp.Diff([]string{"requiredResources of the step a", "requiredSchemas of the step b"}, xp.Required(revision)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := xp.Required(xptest.XR("x")); got != nil {
		t.Errorf("an object without a pipeline requires nothing; got %v", got)
	}
}

func TestSavedEnvironments(t *testing.T) {
	xr := xptest.XR("x", xptest.RestoreFirst("compositions.apiextensions.crossplane.io//c", "environmentconfigs.apiextensions.crossplane.io//e"))
	if diff := cmp.Diff([]string{"e"}, xp.SavedEnvironments(xr)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, u := range []string{`{"metadata":{"velero.crossplane.io/restore-first":[1]}}`, `{}`} {
		if got := xp.SavedEnvironments(xptest.XR("x", xptest.JSON(u))); got != nil {
			t.Errorf("a malformed list has no entries; got %v", got)
		}
	}
}

func TestFunctions(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[string, []string]{
		"Pipeline": {
			Reason: "The result has each Function once, in the order of its first step.",
			In:     `{"spec":{"pipeline":[{"functionRef":{"name":"b"}},{"functionRef":{"name":"a"}},{"functionRef":{"name":"b"}}]}}`, Want: []string{"b", "a"},
		},
		"Native":    {Reason: "A Composition in native mode calls no Functions.", In: `{"spec":{"resources":[{"name":"bucket"}]}}`},
		"Malformed": {Reason: "A malformed step calls no Function.", In: `{"spec":{"pipeline":["a",{"functionRef":"b"},{"functionRef":{"name":7}}]}}`},
	}, func(in string) []string {
		return xp.Functions(xptest.Revision("r", xptest.XR("x"), xptest.JSON(in)))
	})
}

func TestComposedNames(t *testing.T) {
	revision := xptest.Revision("r", xptest.XR("x"), xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"a"},{"name":7},{},7]}},{"input":7},7,`+
		`{"input":{"resources":[{"name":"b","base":{"apiVersion":"cloud.example.org/v1","kind":"Bucket"}}]}}]}}`))
	want := map[string]schema.GroupKind{"a": {}, "b": {Group: "cloud.example.org", Kind: "Bucket"}}
	if diff := cmp.Diff(want, xp.ComposedNames(revision)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

package monitoring

import (
	"slices"
	"strings"
	"testing"

	"github.com/vmware-tanzu/velero/config/crd/v1/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// stateResource is what kube-state-metrics makes of a kind. Its decoder refuses unknown fields, and
// so does this one.
type stateResource struct {
	GroupVersionKind struct{ Group, Version, Kind string } `json:"groupVersionKind"`
	MetricNamePrefix string                                `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string                   `json:"labelsFromPath"`
	Metrics          []struct {
		Name string `json:"name"`
		Help string `json:"help"`
		Each struct {
			Type  string `json:"type"`
			Gauge *struct {
				Path      []string `json:"path"`
				NilIsZero bool     `json:"nilIsZero"`
			} `json:"gauge"`
			StateSet *struct {
				LabelName string   `json:"labelName"`
				Path      []string `json:"path"`
				List      []string `json:"list"`
			} `json:"stateSet"`
		} `json:"each"`
	} `json:"metrics"`
}

func stateMetrics(t *testing.T) []stateResource {
	t.Helper()
	var config struct {
		Kind string `json:"kind"`
		Spec struct {
			Resources []stateResource `json:"resources"`
		} `json:"spec"`
	}
	if err := yaml.UnmarshalStrict(read(t, example+"kube-state-metrics.yaml"), &config); err != nil {
		t.Fatal(err)
	}
	if config.Kind != "CustomResourceStateMetrics" {
		t.Fatalf("got kind %q", config.Kind)
	}

	return config.Spec.Resources
}

// field returns the schema of a field, nil if there is none.
func field(schema *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	for _, name := range path {
		next, ok := schema.Properties[name]
		if !ok {
			return nil
		}
		schema = &next
	}

	return schema
}

// TestStateMetrics looks for the fields in Velero's own CRD of Restores. Of metadata an API server
// has more than a CRD says.
func TestStateMetrics(t *testing.T) {
	i := slices.IndexFunc(crds.CRDs, func(c *apiextensionsv1.CustomResourceDefinition) bool { return c.Spec.Names.Kind == "Restore" })
	schema := crds.CRDs[i].Spec.Versions[0].Schema.OpenAPIV3Schema
	checked := 0
	for _, r := range stateMetrics(t) {
		if r.GroupVersionKind.Kind != "Restore" {
			continue
		}
		for label, path := range r.LabelsFromPath {
			if path[0] != "metadata" && field(schema, path) == nil {
				t.Errorf("the label %s reads %s, which a Restore does not have", label, strings.Join(path, "."))
			}
		}
		for _, m := range r.Metrics {
			checked++
			if s := m.Each.StateSet; s != nil {
				phases := sets.New[string]()
				for _, v := range field(schema, s.Path).Enum {
					phases.Insert(strings.Trim(string(v.Raw), `"`))
				}
				if !phases.Equal(sets.New(s.List...)) {
					t.Errorf("%s lists %v, but the phases of a Restore are %v", m.Name, s.List, sets.List(phases))
				}

				continue
			}
			got := field(schema, m.Each.Gauge.Path)
			if got == nil || got.Type != "integer" && got.Format != "date-time" {
				t.Errorf("%s reads %s, which is no number or time of a Restore: %v", m.Name, strings.Join(m.Each.Gauge.Path, "."), got)
			}
		}
	}
	if checked == 0 {
		t.Error("the file has no metric of Restores")
	}
}

package xp

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindEnvironment is the kind of EnvironmentConfigs, which functions read.
var KindEnvironment = schema.GroupVersionKind{Group: GroupAPIExtensions, Version: "v1beta1", Kind: "EnvironmentConfig"}

// ResourceEnvironment is the resource of EnvironmentConfigs.
var ResourceEnvironment = schema.GroupResource{Group: GroupAPIExtensions, Resource: "environmentconfigs"}

// PipelineInputs are what the functions of a pipeline read beside composed resources, as far as a
// Composition or its revision names it.
type PipelineInputs struct {
	// Environments are the names of EnvironmentConfigs.
	Environments []string
	// Others are clauses for a message: one for each selector by labels, and for each object of
	// another kind.
	Others []string
}

// PipelineInputsOf reads the inputs of a pipeline. It knows these fields, for any function:
//   - environmentConfigs (function-environment-configs),
//   - extraResources (function-extra-resources),
//   - the requirements of a step.
//
// A function can also ask for objects while it runs, as a template can. Crossplane keeps these
// requests in memory only (crossplane internal/controller/apiextensions/composite).
func PipelineInputsOf(revision *unstructured.Unstructured) *PipelineInputs {
	r := &PipelineInputs{}
	field, _, _ := unstructured.NestedFieldNoCopy(revision.Object, "spec", "pipeline")
	pipeline, _ := field.([]any)
	for _, step := range pipeline {
		m, _ := step.(map[string]any)
		name, _ := m["step"].(string)
		r.input(name, m["input"])
		required, _, _ := unstructured.NestedFieldNoCopy(m, "requirements", "requiredResources")
		r.entries(name, required, schema.GroupVersionKind{})
	}
	slices.Sort(r.Environments)
	r.Environments = slices.Compact(r.Environments)
	slices.Sort(r.Others)
	r.Others = slices.Compact(r.Others)

	return r
}

// Required returns, for messages, the requirements that the steps of a pipeline have, such as
// requiredSchemas. An older Crossplane does not know some of them, and its CRD drops them.
func Required(revision *unstructured.Unstructured) []string {
	field, _, _ := unstructured.NestedFieldNoCopy(revision.Object, "spec", "pipeline")
	pipeline, _ := field.([]any)
	var required []string
	for _, step := range pipeline {
		m, _ := step.(map[string]any)
		name, _ := m["step"].(string)
		requirements, _ := m["requirements"].(map[string]any)
		for kind, v := range requirements {
			if entries, _ := v.([]any); len(entries) > 0 {
				required = append(required, fmt.Sprintf("%s of the step %s", kind, name))
			}
		}
	}
	slices.Sort(required)

	return slices.Compact(required)
}

// input finds the fields at any depth.
func (r *PipelineInputs) input(step string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			switch name {
			case "environmentConfigs":
				r.entries(step, value, KindEnvironment)
			case "extraResources":
				r.entries(step, value, schema.GroupVersionKind{})
			default:
				r.input(step, value)
			}
		}
	case []any:
		for _, entry := range v {
			r.input(step, entry)
		}
	}
}

// entries reads a list of inputs of a function. gvk is the kind of entries without a kind.
func (r *PipelineInputs) entries(step string, v any, gvk schema.GroupVersionKind) {
	list, _ := v.([]any)
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		of := gvk
		if kind, _ := m["kind"].(string); kind != "" {
			version, _ := m["apiVersion"].(string)
			of = schema.FromAPIVersionAndKind(version, kind)
		}
		name, _, _ := unstructured.NestedString(m, "ref", "name")
		if name == "" {
			name, _ = m["name"].(string)
		}
		switch {
		case of.Kind == "":
		case name == "":
			r.Others = append(r.Others, fmt.Sprintf("the step %s selects objects of the kind %s by labels", step, of.GroupKind()))
		case of.GroupKind() == KindEnvironment.GroupKind():
			if IsValidName("", name) {
				r.Environments = append(r.Environments, name)
			}
		default:
			namespace, _ := m["namespace"].(string)
			r.Others = append(r.Others, fmt.Sprintf("the step %s reads %s of the kind %s", step, Ref{Namespace: namespace, Name: name}.Path(), of.GroupKind()))
		}
	}
}

// String returns Others for a message, the first few.
func (r *PipelineInputs) String() string {
	const few = 5
	text := strings.Join(r.Others[:min(few, len(r.Others))], "; ")
	if more := len(r.Others) - few; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}

	return text
}

// SavedEnvironments returns the names of the EnvironmentConfigs that must come back before an XR,
// from the backup's copy of it: those that its pipeline names and that were live at the backup.
func SavedEnvironments(xr *unstructured.Unstructured) []string {
	items, _, err := RestoreFirst(xr)
	if err != nil {
		return nil
	}
	var names []string
	for _, i := range items {
		if i.GroupResource == ResourceEnvironment {
			names = append(names, i.Name)
		}
	}

	return names
}

package xp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// steps returns the steps in the pipeline of a Composition or its revision.
func steps(revision *unstructured.Unstructured) []any {
	return Get[[]any](revision.Object, "spec", "pipeline")
}

// Functions returns the names of the Functions in the pipeline of a Composition or its revision,
// without duplicates.
func Functions(revision *unstructured.Unstructured) []string {
	var names []string
	for _, step := range steps(revision) {
		if name := Get[string](step, "functionRef", "name"); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	return names
}

// ComposedNames returns the composition-resource-names in the inputs of a pipeline, as
// function-patch-and-transform has them, with the kind of each. The kind is zero if the base has
// none. The names that other functions choose are stored nowhere.
func ComposedNames(revision *unstructured.Unstructured) map[string]schema.GroupKind {
	names := map[string]schema.GroupKind{}
	for _, step := range steps(revision) {
		for _, r := range Get[[]any](step, "input", "resources") {
			if name := Get[string](r, "name"); name != "" {
				names[name] = schema.FromAPIVersionAndKind(Get[string](r, "base", "apiVersion"), Get[string](r, "base", "kind")).GroupKind()
			}
		}
	}

	return names
}

// Required returns, for messages, the requirements that the steps of a pipeline have, such as
// requiredSchemas. An older Crossplane does not know some of them, and its CRD drops them.
func Required(revision *unstructured.Unstructured) []string {
	var required []string
	for _, step := range steps(revision) {
		for kind, entries := range Get[map[string]any](step, "requirements") {
			if list, _ := entries.([]any); len(list) > 0 {
				required = append(required, fmt.Sprintf("%s of the step %s", kind, Get[string](step, "step")))
			}
		}
	}
	slices.Sort(required)

	return slices.Compact(required)
}

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
	for _, step := range steps(revision) {
		name := Get[string](step, "step")
		r.input(name, Get[any](step, "input"))
		r.entries(name, Get[any](step, "requirements", "requiredResources"), schema.GroupVersionKind{})
	}
	slices.Sort(r.Environments)
	r.Environments = slices.Compact(r.Environments)
	slices.Sort(r.Others)
	r.Others = slices.Compact(r.Others)

	return r
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
		of := gvk
		if kind := Get[string](entry, "kind"); kind != "" {
			of = schema.FromAPIVersionAndKind(Get[string](entry, "apiVersion"), kind)
		}
		switch name := cmp.Or(Get[string](entry, "ref", "name"), Get[string](entry, "name")); {
		case of.Kind == "":
		case name == "":
			r.Others = append(r.Others, fmt.Sprintf("the step %s selects objects of the kind %s by labels", step, of.GroupKind()))
		case of.GroupKind() != KindEnvironment.GroupKind():
			read := Ref{Namespace: Get[string](entry, "namespace"), Name: name}
			r.Others = append(r.Others, fmt.Sprintf("the step %s reads %s of the kind %s", step, read.Path(), of.GroupKind()))
		case IsValidName("", name):
			r.Environments = append(r.Environments, name)
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

// IsActive reports whether the package manager runs this package revision.
func IsActive(revision *unstructured.Unstructured) bool {
	return Get[string](revision.Object, "spec", "desiredState") == "Active"
}

// Endpoint returns the address of the Function of an active revision, "" if it does not run yet.
func Endpoint(revision *unstructured.Unstructured) string {
	return Get[string](revision.Object, "status", "endpoint")
}

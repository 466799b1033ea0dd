package guard

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// maxBy limits the length of the user name in the message, in bytes.
const maxBy = 200

// CEL expressions. Only the probe is in the group "".
const (
	celProbe  = `request.resource.group == ""`
	celCreate = `request.operation != "CREATE"`
	celUpdate = `request.operation != "UPDATE" || !(` + celMarked + `) || (`
	celMarked = `oldObject.metadata.?annotations[?"` + AnnotationPaused + `"].hasValue()`
	celStays  = `object.metadata.?annotations[?"` + AnnotationPaused + `"].hasValue()`
	celPaused = `object.metadata.?annotations[?"` + xp.AnnotationPaused + `"].orValue("") == "true"`
)

// Objects returns the objects of the guard, which must be valid. mutating is the served version of
// MutatingAdmissionPolicy; it is used only if Paused is set. The objects contain the API server's
// defaults, so Differs finds only changes by users.
func (g Guard) Objects(mutating string) []*unstructured.Unstructured {
	objects := []*unstructured.Unstructured{
		g.object("v1", KindValidating, g.validating()),
		g.object("v1", KindValidatingBinding, map[string]any{"policyName": Name, "validationActions": []any{"Deny"}}),
	}
	if g.Paused {
		objects = append(objects, g.object(mutating, KindMutating, g.mutating()), g.object(mutating, KindMutatingBinding, map[string]any{"policyName": Name}))
	}

	return objects
}

func (g Guard) object(version, kind string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": Group + "/" + version, "kind": kind, "spec": spec}}
	u.SetName(Name)
	u.SetLabels(map[string]string{labelManager: xp.Program, labelExclude: "true"})
	asked, _ := json.Marshal(g) //nolint:errchkjson // It is strings.
	u.SetAnnotations(map[string]string{Annotation: string(asked)})

	return u
}

// Differs returns the kinds of the guard's objects that are missing from live or changed; live is
// by kind.
func (g Guard) Differs(live map[string]*unstructured.Unstructured) []string {
	var kinds []string
	for _, want := range g.Objects("v1") {
		u := live[want.GetKind()]
		if u == nil || !equality.Semantic.DeepEqual(want.Object["spec"], u.Object["spec"]) {
			kinds = append(kinds, want.GetKind())
		}
	}

	return kinds
}

// validating returns the spec that rejects what others create, or what they create without a pause.
func (g Guard) validating() map[string]any {
	validations := []any{g.validation("false")}
	operations := []any{"CREATE"}
	if g.Paused {
		operations = append(operations, "UPDATE")
		validations = []any{
			g.validation(celCreate + " || " + celPaused),
			g.validation(celUpdate + celPaused + " && " + celStays + ")"),
		}
	}

	return map[string]any{
		"failurePolicy": "Fail", "matchConstraints": g.matching(operations), "matchConditions": g.conditions(), "validations": validations,
	}
}

func (g Guard) validation(expression string) map[string]any {
	return map[string]any{"expression": expression, "message": g.Message(), "reason": "Forbidden"}
}

// mutating returns the spec that pauses what others create.
func (g Guard) mutating() map[string]any {
	patch := func(annotation string) string {
		return `JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("` + annotation + `"), value: "true"}`
	}
	expression := `(has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) + [` +
		patch(xp.AnnotationPaused) + ", " + patch(AnnotationPaused) + "]"

	return map[string]any{
		"failurePolicy": "Fail", "reinvocationPolicy": "IfNeeded",
		"matchConstraints": g.matching([]any{"CREATE"}), "matchConditions": g.conditions(),
		"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": expression}}},
	}
}

// matching returns the requests that the policies decide on: the guarded kinds, and the probe that
// shows whether the guard is in force. The probe is an Event with the guard's name, which no other
// client creates.
func (g Guard) matching(operations []any) map[string]any {
	byGroup := map[string][]any{}
	for _, kind := range g.Kinds {
		r, _ := ParseKind(kind) // The guard is valid.
		byGroup[r.Group] = append(byGroup[r.Group], r.Resource)
	}
	var rules []any
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		resources := byGroup[group]
		if slices.Contains(resources, any("*")) {
			resources = []any{"*"} // The API server rejects other resources beside it.
		}
		rules = append(rules, map[string]any{
			"apiGroups": []any{group}, "apiVersions": []any{"*"}, "operations": operations, "resources": resources, "scope": "*",
		})
	}
	rules = append(rules, map[string]any{
		"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"events"}, "resourceNames": []any{Name},
		"scope": "Namespaced",
	})

	return map[string]any{"matchPolicy": "Exact", "namespaceSelector": map[string]any{}, "objectSelector": map[string]any{}, "resourceRules": rules}
}

// conditions exclude the guard's users and other namespaces. They compare names, which a user can't
// choose: a tenant may be able to label a namespace or what they create.
func (g Guard) conditions() []any {
	conditions := []any{map[string]any{
		"name": "not-by-velero-or-crossplane", "expression": celProbe + " || !(request.userInfo.username in " + celList(g.Users) + ")",
	}}
	if len(g.Namespaces) > 0 {
		conditions = append(conditions, map[string]any{
			"name": "in-a-guarded-namespace", "expression": celProbe + ` || !has(request.namespace) || request.namespace in ` + celList(g.Namespaces),
		})
	}

	return conditions
}

// celList returns a CEL list of strings; CEL and Go have the same string literals.
func celList(of []string) string {
	quoted := make([]string, 0, len(of))
	for _, s := range of {
		quoted = append(quoted, strconv.Quote(s))
	}

	return "[" + strings.Join(quoted, ", ") + "]"
}

// Message returns the message of a rejected request.
func (g Guard) Message() string {
	by := strings.Map(func(r rune) rune {
		if isPrintable(string(r)) {
			return r
		}

		return '?'
	}, g.CreatedBy)
	if len(by) > maxBy {
		by = strings.ToValidUTF8(by[:maxBy], "") + "..."
	}
	what := "only Velero and Crossplane can create claims and XRs of Crossplane"
	if g.Paused {
		what = "claims and XRs of Crossplane stay paused, unless Velero or Crossplane creates them"
	}

	return reason.GuardUp.Messagef(`A restore comes first: until it is over, %s. This object is not wrong: apply it again afterwards. `+
		`This is the guard of %s, put up by %s at %s. The administrators of this cluster take it down with "%s guard off".`,
		what, xp.Program, cmp.Or(by, "an administrator"), g.Since, xp.Program).String()
}

package xptest

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Huge returns objects of about the given number of bytes of JSON, by what fills them. A tenant, or
// a user who can write to the bucket, can write them.
func Huge(size int) map[string]*unstructured.Unstructured { //nolint:funlen // It is one table.
	// list returns entries that have together the size.
	list := func(entry func(n int) any, each int) []any {
		all := make([]any, size/each)
		for n := range all {
			all[n] = entry(n)
		}

		return all
	}
	refTo := func(kind, namespace string) func(n int) any {
		return func(n int) any {
			r := map[string]any{"apiVersion": "cloud.example.org/v1alpha1", "kind": kind, "name": fmt.Sprint("b", n)}
			if namespace != "" {
				r["namespace"] = namespace
			}

			return r
		}
	}
	const perRef = 72
	long := strings.Repeat("x", size-2048)
	controls := strings.Repeat("\x1b[2J\n", size/16)
	owner := func(kind, version string) func(n int) any {
		return func(n int) any {
			return map[string]any{"apiVersion": version, "kind": kind, "name": fmt.Sprint("b", n), "uid": fmt.Sprint("u", n)}
		}
	}
	const perOwner = 90
	text := func(format string) func(n int) any { return func(n int) any { return fmt.Sprintf(format, n) } }
	metadata := func(name string, value any) Option { return Field(value, "metadata", name) }
	composed := func(u *unstructured.Unstructured) {
		Labelled(xp.LabelComposite, "x")(u)
		Annotated(xp.AnnotationResourceName, "b")(u)
	}
	secrets := func(namespace string) []any {
		return list(func(n int) any { return map[string]any{"name": fmt.Sprint("s", n), "namespace": namespace} }, 36)
	}
	manager := func(name string, fields any) map[string]any {
		return map[string]any{"manager": name, "operation": "Update", "apiVersion": LegacyVersion, "fieldsType": "FieldsV1", "fieldsV1": fields}
	}
	named := func(prefix string) func(n int) any {
		return func(n int) any { return map[string]any{"name": fmt.Sprint(prefix, n), "namespace": fmt.Sprint("n", n)} }
	}
	fields := map[string]any{}
	for n := range size / 18 {
		fields[fmt.Sprint("f:", n)] = map[string]any{}
	}
	annotations, labels := map[string]any{}, map[string]any{}
	for n := range 250_000 / 14 {
		annotations[fmt.Sprint("a", n)] = "x"
	}
	for n := range size / 14 {
		labels[fmt.Sprint("a", n)] = "x"
	}
	empty := list(func(int) any { return map[string]any{} }, 3)
	mark := func(composed string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, err := w.Write([]byte(composed))
		must(err)
		must(w.Close())

		return `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"r","composed":"` + base64.RawStdEncoding.EncodeToString(b.Bytes()) + `"}`
	}
	const hold = "velero.crossplane.x-k8s.io/hold"
	bomb := Annotated(hold, mark(`{"resourceRefs":[`+strings.Repeat("{},", 2_790_000)+`{}]}`))
	conditions := list(func(n int) any { return map[string]any{"type": fmt.Sprint("T", n), "status": "True", "message": "m"} }, 48)
	usage := func(of map[string]any) *unstructured.Unstructured {
		return Object(xp.GroupProtection+"/v1beta1", "Usage", Namespace, "u", Field(of, "spec", "of"))
	}

	return map[string]*unstructured.Unstructured{
		"MarkOfXR":    XR("x", bomb),
		"MarkOfClaim": Claim("o", bomb),
		"MarkOfMR":    MR("b", bomb),
		"MarkListed":  MR("b", Annotated(hold, `{"inputs":[`+strings.Repeat("{},", 80_000)+`{}]}`)),
		"Refs":        XR("x", Field(list(refTo("Bucket", ""), perRef), "spec", "resourceRefs")),
		"RefsV2":      XRV2("x", Field(list(refTo("Bucket", ""), perRef), "spec", "crossplane", "resourceRefs")),
		"RefsShort":   XR("x", Field(list(func(int) any { return map[string]any{"apiVersion": "v1", "kind": "A", "name": "a"} }, 42), "spec", "resourceRefs")),
		"RefsUnserved": XRV2("x", Field(list(func(n int) any {
			return map[string]any{"apiVersion": fmt.Sprintf("g%d.org/v1", n), "kind": "K", "name": "n"}
		}, 56), "spec", "crossplane", "resourceRefs")),
		"RefsKinds": XR("x", Field(list(func(n int) any {
			return map[string]any{"apiVersion": "many.example.org/v1", "kind": fmt.Sprint("K", n%300), "name": fmt.Sprint("b", n)}
		}, 64), "spec", "resourceRefs")),
		"RefsEmpty":    XR("x", Field(empty, "spec", "resourceRefs")),
		"RefsLong":     XR("x", Field([]any{map[string]any{"apiVersion": "cloud.example.org/v1alpha1", "kind": "Bucket", "name": long}}, "spec", "resourceRefs")),
		"RefsControls": XR("x", Field([]any{map[string]any{"apiVersion": "cloud.example.org/v1alpha1", "kind": "Bucket", "name": controls}}, "spec", "resourceRefs")),
		"Environments": XRV2("x", Field(list(func(n int) any { return map[string]any{"name": fmt.Sprint("e", n)} }, 20), "spec", "crossplane",
			"environmentConfigRefs")),
		"Owners":      MR("b", composed, metadata("ownerReferences", list(owner("Bucket", "cloud.example.org/v1alpha1"), perOwner))),
		"OwnersOfOne": MR("b", composed, metadata("ownerReferences", list(func(int) any { return owner("Bucket", "cloud.example.org/v1alpha1")(1) }, perOwner))),
		"OwnersPaths": MR("b", composed, metadata("ownerReferences", list(func(n int) any {
			return map[string]any{"apiVersion": "cloud.example.org/v1alpha1", "kind": "Bucket", "name": fmt.Sprint("../b", n), "uid": "u"}
		}, perOwner))),
		"OwnersNew": NamespacedMR("b", composed, metadata("ownerReferences",
			list(func(n int) any { return owner("K", fmt.Sprintf("g%d.example.org/v1", n))(n) }, perOwner))),
		"OwnersSecret": Secret("s", metadata("ownerReferences", list(owner("Secret", "v1"), 60))),
		"OwnersOut":    NamespacedMR("b", composed, metadata("ownerReferences", list(owner("Bucket", "cloud.example.org/v1alpha1"), perOwner))),
		"Inputs":       MR("b", Field(secrets("team-a"), "spec", "forProvider", "passwordSecretRefs")),
		"InputsOut":    MR("b", Field(list(named("s"), 36), "spec", "forProvider", "passwordSecretRefs")),
		"Settings":     MR("b", Field(empty, "spec", "forProvider", "settings")),
		"Annotations":  XR("x", metadata("annotations", annotations)),
		"Labels":       NamespacedMR("b", metadata("labels", labels)),
		"ExternalName": MR("b", Annotated(xp.AnnotationExternalName, long)),
		"ProviderID":   MR("b", Without("metadata", "annotations", xp.AnnotationExternalName), Field(long, "status", "atProvider", "id")),
		"LastApplied":  XR("x", Annotated(xp.AnnotationLastApplied, long)),
		"Finalizers":   XR("x", metadata("finalizers", append(list(text("example.org/f%d"), 20), xp.FinalizerComposite))),
		"ManagedFields": XR("x", metadata("managedFields", list(func(n int) any {
			return map[string]any{"manager": fmt.Sprint("m", n), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}
		}, 96))),
		"ManagedFields1": XR("x", metadata("managedFields", []any{manager("m", map[string]any{"f:spec": fields})})),
		"ManagedMR": MR("b", Without("metadata", "annotations", xp.AnnotationExternalName),
			metadata("managedFields", []any{manager("m", map[string]any{"f:spec": fields})})),
		"Conditions": XR("x", Field(conditions, "status", "conditions")),
		"Message": XR("x", Field([]any{map[string]any{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": long}},
			"status", "conditions")),
		"Status":       XR("x", Field(labels, "status")),
		"StatusOfMR":   MR("b", composed, ControlledBy(XR("x")), Field(labels, "status")),
		"UsedSelector": usage(map[string]any{"apiVersion": "v1", "kind": "Secret", "resourceSelector": map[string]any{"matchLabels": labels}}),
		"UsedName":     usage(map[string]any{"apiVersion": "v1", "kind": "Secret", "resourceRef": map[string]any{"name": long}}),
		"ClaimRef":     Claim("o", Field(map[string]any{"apiVersion": LegacyVersion, "kind": LegacyKind, "name": long}, "spec", "resourceRef")),
		"PublishesTo":  MR("b", PublishesTo("team-a", long)),
		"Revision":     XRV2("x", Field(map[string]any{"name": long}, "spec", "crossplane", "compositionRevisionRef")),
		"Policies":     MR("b", Field(list(text("P%d"), 9), "spec", "managementPolicies")),
		"Nested":       MR("b", Field(nested(9000), "spec", "forProvider")),

		"First":      XR("x", metadata(xp.FieldRestoreFirst, list(text("buckets.cloud.example.org//b%d"), 34))),
		"FirstPaths": XR("x", metadata(xp.FieldRestoreFirst, list(text("buckets.cloud.example.org//..%%%d"), 36))),
		"FirstLong":  Claim("o", metadata(xp.FieldRestoreFirst, []any{"buckets.cloud.example.org//" + long})),
		"FirstOfMR":  MR("b", metadata(xp.FieldRestoreFirst, list(text("buckets.cloud.example.org//b%d"), 34))),
		"FirstElse":  XRV2("x", metadata(xp.FieldRestoreFirst, list(text("secrets/n%[1]d/b%[1]d"), 24))),
		"FirstKinds": XR("x", metadata(xp.FieldRestoreFirst, list(text("k%[1]d.g%[1]d.org//b"), 20))),
		"Unresolved": XR("x", metadata(xp.FieldUnresolvedRefs, list(refTo("Bucket", ""), perRef))),
		"ConditionsOf": XR("x", metadata(xp.FieldConditions, list(func(n int) any {
			m, _ := refTo("Bucket", "")(n).(map[string]any)
			m["conditions"] = "Ready"

			return m
		}, 92))),
		"NotedInputs": MR("b", metadata(xp.FieldInputs, list(func(n int) any {
			return map[string]any{
				"namespace": "n", "name": fmt.Sprint("s", n),
				"exists": true,
			}
		}, 50))),
		"Format":        XR("x", metadata(xp.FieldFormat, long)),
		"FormatList":    XR("x", metadata(xp.FieldFormat, empty)),
		"DeletionOfUse": MR("b", Annotated(xp.AnnotationDeletionAttempt, long)),
	}
}

// nested returns objects in objects.
func nested(depth int) any {
	var v any = "x"
	for range depth {
		v = map[string]any{"a": v}
	}

	return v
}

package xptest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Field sets a field to a value as JSON decodes it.
func Field(value any, path ...string) Option {
	return func(u *unstructured.Unstructured) {
		must(unstructured.SetNestedField(u.Object, value, path...))
	}
}

// Without removes a field.
func Without(path ...string) Option {
	return func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, path...) }
}

// JSON merges a document into the object.
func JSON(document string) Option {
	return func(u *unstructured.Unstructured) {
		var patch map[string]any
		must(json.Unmarshal([]byte(document), &patch))
		u.Object = Merge(u, patch).Object
	}
}

// In sets the namespace.
func In(namespace string) Option {
	return func(u *unstructured.Unstructured) { u.SetNamespace(namespace) }
}

// UID sets the UID.
func UID(uid types.UID) Option { return func(u *unstructured.Unstructured) { u.SetUID(uid) } }

// Version sets the resourceVersion.
func Version(v string) Option { return func(u *unstructured.Unstructured) { u.SetResourceVersion(v) } }

// Finalizers sets the finalizers.
func Finalizers(f ...string) Option { return func(u *unstructured.Unstructured) { u.SetFinalizers(f) } }

// Annotated adds an annotation.
func Annotated(key, value string) Option {
	return func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		a[key] = value
		u.SetAnnotations(a)
	}
}

// Labelled adds a label.
func Labelled(key, value string) Option {
	return func(u *unstructured.Unstructured) {
		l := u.GetLabels()
		if l == nil {
			l = map[string]string{}
		}
		l[key] = value
		u.SetLabels(l)
	}
}

// Deleting marks the object as being deleted.
func Deleting() Option { return Field("2026-01-02T03:04:05Z", "metadata", "deletionTimestamp") }

// RestoreFirst sets the note of what must be restored first, as "resource.group/namespace/name".
func RestoreFirst(items ...string) Option {
	list := make([]any, 0, len(items))
	for _, i := range items {
		list = append(list, i)
	}

	return Field(list, "metadata", xp.FieldRestoreFirst)
}

// Published sets the note that the backup has the object's connection secret.
func Published() Option { return Field(true, "metadata", xp.FieldPublished) }

// UnresolvedRefs sets the note of refs that a restore does not wait for.
func UnresolvedRefs(to ...*unstructured.Unstructured) Option {
	list := make([]any, 0, len(to))
	for _, t := range to {
		list = append(list, ref(t, true))
	}

	return Field(list, "metadata", xp.FieldUnresolvedRefs)
}

// Refs sets the resourceRefs of an XR at the path of its schema.
func Refs(to ...*unstructured.Unstructured) Option {
	return func(u *unstructured.Unstructured) {
		list := make([]any, 0, len(to))
		for _, t := range to {
			list = append(list, ref(t, xp.CompositeFrom(u).GetNamespace() == ""))
		}
		Field(list, fieldOf(u, "resourceRefs")...)(u)
	}
}

// Policy sets the composition update policy at the path of the schema.
func Policy(policy string) Option {
	return func(u *unstructured.Unstructured) { Field(policy, fieldOf(u, "compositionUpdatePolicy")...)(u) }
}

// NeverComposed removes what Crossplane has chosen and composed.
func NeverComposed() Option {
	return func(u *unstructured.Unstructured) {
		Without(fieldOf(u, "compositionRevisionRef")...)(u)
		Without(fieldOf(u, "resourceRefs")...)(u)
	}
}

// Unpaused is the option of a held object that its controller may reconcile.
func Unpaused() Option { return Without("metadata", "annotations", xp.AnnotationPaused) }

// ManagementPolicies sets the policies of an MR, in JSON.
func ManagementPolicies(p string) Option { return JSON(`{"spec":{"managementPolicies":` + p + `}}`) }

// Created sets the time at which an object was created.
func Created(at string) Option { return Field(at, "metadata", "creationTimestamp") }

// Managed adds an entry with the fields at the paths to managedFields.
func Managed(manager, operation, at string, paths ...[]string) Option {
	return func(u *unstructured.Unstructured) {
		fields := map[string]any{}
		for _, path := range paths {
			names := make([]string, 0, len(path))
			for _, name := range path {
				names = append(names, "f:"+name)
			}
			_ = unstructured.SetNestedMap(fields, map[string]any{}, names...) // No path is below another.
		}
		list, _, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
		list = append(list, map[string]any{
			"manager": manager, "operation": operation, "apiVersion": u.GetAPIVersion(), "time": at,
			"fieldsType": "FieldsV1", "fieldsV1": fields,
		})
		Field(list, "metadata", "managedFields")(u)
	}
}

// ClaimedBy sets an XR's claimRef.
func ClaimedBy(claim *unstructured.Unstructured) Option {
	return func(u *unstructured.Unstructured) { Field(ref(claim, true), "spec", "claimRef")(u) }
}

// OfXR sets a claim's resourceRef.
func OfXR(xr *unstructured.Unstructured) Option {
	return func(u *unstructured.Unstructured) { Field(ref(xr, false), "spec", "resourceRef")(u) }
}

// ControlledBy makes owner the controller of the object. If owner is an XR, the object gets the
// label and annotation of a composed resource. Another controller is replaced.
func ControlledBy(owner *unstructured.Unstructured) Option {
	return func(u *unstructured.Unstructured) {
		u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return ptr.Deref(o.Controller, false) }))
		OwnedBy(metav1.OwnerReference{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
			Controller: ptr.To(true),
		})(u)
		if xp.IsComposite(owner) && u.GetKind() != "Secret" {
			Labelled(xp.LabelComposite, cmp.Or(xp.Label(owner, xp.LabelComposite), owner.GetName()))(u)
			Annotated(xp.AnnotationResourceName, u.GetName())(u)
		}
	}
}

// OwnedBy adds an owner reference.
func OwnedBy(o metav1.OwnerReference) Option {
	return func(u *unstructured.Unstructured) { u.SetOwnerReferences(append(u.GetOwnerReferences(), o)) }
}

// PublishesTo sets the Secret for connection details. The namespace is "" for a schema without one.
func PublishesTo(namespace, name string) Option {
	m := map[string]any{"name": name}
	if namespace != "" {
		m["namespace"] = namespace
	}

	return Field(m, "spec", "writeConnectionSecretToRef")
}

// Synced sets the only condition, Synced.
func Synced(status, reason, message string) Option {
	return Field([]any{map[string]any{"type": xp.ConditionSynced, "status": status, "reason": reason, "message": message}}, "status", "conditions")
}

// OfGeneration sets the observedGeneration of all conditions.
func OfGeneration(n int64) Option {
	return func(u *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, entry := range list {
			if c, ok := entry.(map[string]any); ok {
				c["observedGeneration"] = n
			}
		}
		Field(list, "status", "conditions")(u)
	}
}

// Generation sets the generation.
func Generation(n int64) Option { return func(u *unstructured.Unstructured) { u.SetGeneration(n) } }

// SeenPaused sets the condition of an object whose controller has observed the pause.
func SeenPaused() Option { return Synced("False", xp.ReasonReconcilePaused, "") }

// Reconciled sets the condition of an object that its controller has reconciled.
func Reconciled() Option { return Synced("True", "ReconcileSuccess", "") }

// With returns a changed copy of u.
func With(u *unstructured.Unstructured, o ...Option) *unstructured.Unstructured {
	c := u.DeepCopy()
	for _, option := range o {
		option(c)
	}

	return c
}

// Stored returns u as the API server does: without empty annotations, and with a new
// resourceVersion.
func Stored(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	u.SetResourceVersion("")
	if len(u.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
	}
	u.SetGeneration(0)

	return u
}

// Merge returns u with a JSON merge patch (RFC 7386) applied, as the API server returns it.
func Merge(u *unstructured.Unstructured, patch map[string]any) *unstructured.Unstructured {
	b, err := json.Marshal(merge(u.DeepCopy().Object, patch))
	must(err)
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(b); err != nil {
		panic(fmt.Sprintf("cannot decode %s: %v", b, err)) // The test is wrong.
	}

	return out
}

func merge(target any, patch map[string]any) map[string]any {
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			out[key] = merge(out[key], v)
		default:
			out[key] = v
		}
	}

	return out
}

func fieldOf(u *unstructured.Unstructured, name string) []string {
	if _, isV2, _ := unstructured.NestedMap(u.Object, "spec", "crossplane"); isV2 {
		return []string{"spec", "crossplane", name}
	}

	return []string{"spec", name}
}

func ref(u *unstructured.Unstructured, namespaced bool) map[string]any {
	m := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName()}
	if namespaced && u.GetNamespace() != "" {
		m["namespace"] = u.GetNamespace()
	}

	return m
}

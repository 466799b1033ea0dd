package xptest

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// HostileObjects returns one object of each kind that the plugin handles, as they are in one
// cluster. They refer to each other.
func HostileObjects() []*unstructured.Unstructured {
	const hold = "velero.crossplane.x-k8s.io/hold"
	const mark = `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"r","paused":"false","pinned":true,"compositionUpdatePolicy":"Automatic",` +
		`"resourceRefs":[{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","namespace":"team-b","name":"b"}],"composedConditions":["Ready,Synced"],` +
		`"status":["a"]}`
	const managedMark = `{"restore":"velero/monday","since":"2026-01-02T03:04:05Z","reason":"r","identity":"unknown","observes":true,` +
		`"managementPolicies":["*"],"status":["atProvider"],"restoreStatus":"x"}`
	claim, xr := Claim("o"), XR("x")
	modern, bucket, local := XRV2("m"), MR("b"), NamespacedMR("l", PublishesTo("", "s"))
	usage := func(kind, namespace string) *unstructured.Unstructured {
		of := func(u *unstructured.Unstructured) map[string]any {
			return map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "resourceRef": map[string]any{"name": u.GetName()}}
		}

		return Object(xp.GroupProtection+"/v1beta1", kind, namespace, "u", Field(of(local), "spec", "of"), Field(of(modern), "spec", "by"),
			Field(true, "spec", "replayDeletion"))
	}
	conditions := Field([]any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-02T03:04:05Z"},
		map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": int64(1)},
	}, "status", "conditions")
	pipeline := Field([]any{map[string]any{"step": "a", "functionRef": map[string]any{"name": "f"}}}, "spec", "pipeline")
	version := map[string]any{"name": "v1alpha1", "served": true}

	return []*unstructured.Unstructured{
		With(claim, OfXR(xr), PublishesTo("", "s"), conditions),
		With(xr, ClaimedBy(claim), Refs(bucket), Policy("Automatic"), conditions, Field("v", "status", "a")),
		With(modern, Refs(local), conditions, RestoreFirst("buckets.cloud.example.org//b")),
		With(bucket, ControlledBy(xr), conditions, Field(map[string]any{"id": "id-of-b"}, "status", "atProvider")),
		With(local, ControlledBy(modern), conditions, Annotated(xp.AnnotationDeletionAttempt, "Background")),
		Secret("s", ControlledBy(local), Field("aHVzaA==", "data", "password")),
		XRV2("held", Refs(local), SeenPaused(), Annotated(hold, mark), Annotated(xp.AnnotationPaused, "true")),
		Claim("held", OfXR(xr), Annotated(hold, mark), Annotated(xp.AnnotationPaused, "true")),
		NamespacedMR("held", Annotated(hold, managedMark), Annotated(xp.AnnotationPaused, "true"), Field([]any{"Observe"}, "spec", "managementPolicies")),
		NamespacedMR("unnamed", Without("metadata", "annotations", xp.AnnotationExternalName), Field(map[string]any{"id": "i"}, "status", "atProvider")),
		NamespacedMR("inflight", Annotated(xp.AnnotationCreatePending, "2026-01-02T03:04:05Z")),
		usage("Usage", Namespace), usage("ClusterUsage", ""),
		Revision(RevisionName, xr, pipeline, Field(int64(7), "spec", "revision")), Composition(CompositionName, xr, pipeline),
		XRD("xorders.example.org", Field("example.org", "spec", "group"), Field(map[string]any{"kind": LegacyKind, "plural": "xorders"}, "spec", "names"),
			Field(map[string]any{"kind": ClaimKind, "plural": "orderclaims"}, "spec", "claimNames"), Field([]any{version}, "spec", "versions"),
			Field([]any{map[string]any{"type": "Established", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}}, "status", "conditions")),
		Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default", Field(map[string]any{"namespace": "infra", "name": "key"}, "spec",
			"credentials", "secretRef")),
		Object(xp.GroupPackage+"/v1", "FunctionRevision", "", "f-1", Labelled(xp.LabelPackage, "f"), Field("Active", "spec", "desiredState"),
			Field("https://f:9443", "status", "endpoint")),
		Object(xp.GroupPackage+"/v1", "Function", "", "f", Field("Manual", "spec", "revisionActivationPolicy")),
		Object(xp.GroupOperations+"/v1alpha1", "CronOperation", "", "nightly"),
		Object("apps/v1", "Deployment", "crossplane-system", "crossplane", Labelled("app.kubernetes.io/part-of", "crossplane"),
			Field([]any{map[string]any{"image": "xpkg.crossplane.io/crossplane/crossplane:v2.3.4"}}, "spec", "template", "spec", "containers"),
			Field(int64(1), "status", "readyReplicas")),
		Object("v1", "ConfigMap", Namespace, "c", Labelled(xp.LabelComposite, "m"), Field("v", "data", "k")),
		Object("example.org/v1", "Thing", Namespace, "t", Field("x", "spec", "a")),
		Object("v1", "ResourceQuota", Namespace, "limits"),
		Object("v1", "Namespace", "", "team-b"),
	}
}

// Hostile returns JSON merge patches that make an object malformed, or hostile to this plugin.
func Hostile() []string {
	ref := func(namespace, name string) string {
		return `{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","namespace":"` + namespace + `","name":"` + name + `"}`
	}
	patches := []string{
		`{}`, `{"spec":"x"}`, `{"spec":[]}`, `{"spec":7}`, `{"status":"x"}`, `{"status":{"conditions":{}}}`, `{"status":{"conditions":[7,{"type":7}]}}`,
		`{"status":{"atProvider":"x"}}`, `{"status":{"atProvider":{"id":7}}}`,
		`{"spec":{"resourceRefs":{}}}`, `{"spec":{"crossplane":"x"}}`, `{"spec":{"crossplane":{"resourceRefs":"x"}}}`,
		`{"spec":{"resourceRefs":[7]}}`, `{"spec":{"crossplane":{"resourceRefs":[{"apiVersion":7,"kind":"K","name":"n"}]}}}`,
		`{"spec":{"resourceRef":"x","claimRef":7}}`, `{"spec":{"compositionRef":"x","compositionRevisionRef":[],"compositionUpdatePolicy":7}}`,
		`{"spec":{"crossplane":{"compositionRef":{"name":"../x"},"compositionRevisionRef":{"name":"../../x"}}}}`,
		`{"spec":{"writeConnectionSecretToRef":"x"}}`, `{"spec":{"writeConnectionSecretToRef":{"namespace":"team-b","name":"../s"}}}`,
		`{"spec":{"managementPolicies":"Observe"}}`, `{"spec":{"managementPolicies":[7]}}`, `{"spec":{"providerConfigRef":{"name":7}}}`,
		`{"spec":{"of":"x","by":{"resourceRef":[]}}}`, `{"spec":{"pipeline":[{"functionRef":[]}]}}`, `{"spec":{"versions":[{"name":7}],"names":[]}}`,
		`{"metadata":{"annotations":{"a":7}}}`, `{"metadata":{"annotations":[]}}`, `{"metadata":{"labels":{"a":{}}}}`, `{"metadata":{"labels":"x"}}`,
		`{"metadata":{"finalizers":"x"}}`, `{"metadata":{"finalizers":[7]}}`, `{"metadata":{"ownerReferences":{}}}`, `{"metadata":{"ownerReferences":[7]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"../team-b/s","uid":"u","controller":true}]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"a/b/c","kind":"","name":"","controller":"x"}]}}`,
		`{"metadata":{"managedFields":[7,{"fieldsV1":{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{},"k:":{}}}}}]}}`,
		`{"metadata":{"namespace":7}}`, `{"metadata":{"deletionTimestamp":"x","creationTimestamp":7,"generation":"x"}}`,
		`{"metadata":{"velero.crossplane.io/restore-first":["a/b/c",7],"velero.crossplane.io/unresolved-refs":{},"velero.crossplane.io/composed-conditions":[7]}}`,
		`{"metadata":{"velero.crossplane.io/restore-first":["clusterrolebindings.rbac.authorization.k8s.io//a","secrets/team-b/s",` +
			`"compositions.apiextensions.crossplane.io//b"]}}`,
		`{"metadata":{"annotations":{"restore.velero.io/must-include-additional-items":"true","crossplane.io/paused":"x"}}}`,
		`{"spec":{"resourceRefs":[` + ref("team-b", "b") + `]}}`, `{"spec":{"crossplane":{"resourceRefs":[` + ref("../team-b", "../b") + `]}}}`,
		`{"apiVersion":"` + xp.GroupAPIExtensions + `/v99"}`, `{"apiVersion":"a/b/c"}`, `{"kind":"Composition"}`,
		`{"spec":{"resourceRefs":[` + strings.Repeat(ref("", "b")+",", 2000) + ref("", "c") + `]}}`,
	}
	for _, mark := range []string{
		``, `null`, `[]`, `7`, `{"resourceRefs":[null]}`, `{"resourceRefs":[` + ref("team-b", "b") + `],"paused":"true","pinned":true}`,
		`{"pinned":true,"compositionUpdatePolicy":"Banana","cloneOf":"x"}`, `{"status":["","a.b"],"restoreStatus":"` + strings.Repeat("x", 5000) + `"}`,
	} {
		b, err := json.Marshal(mark)
		must(err)
		patches = append(patches, `{"metadata":{"annotations":{"velero.crossplane.x-k8s.io/hold":`+string(b)+`}}}`)
	}

	for _, u := range trees() {
		patches = append(patches, selfReference(u))
	}

	return patches
}

// trees returns the claim, the XRs and the MRs of the Zoo, which are its first objects.
func trees() []*unstructured.Unstructured { return HostileObjects()[:5] }

// selfReference returns a JSON merge patch that makes u a claim, an XR and an MR at once, with
// itself as its claim, XR, owner and composed resource.
func selfReference(u *unstructured.Unstructured) string {
	of := ref(u, true)
	owner := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName(), "uid": string(u.GetUID()), "controller": true}
	b, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"finalizers": []string{xp.FinalizerClaim, xp.FinalizerComposite, xp.FinalizerManaged}, "ownerReferences": []any{owner},
			"labels": map[string]any{xp.LabelComposite: u.GetName(), "crossplane.io/claim-name": u.GetName(), xp.LabelClaimNamespace: u.GetNamespace()},
		},
		"spec": map[string]any{"resourceRef": of, "claimRef": of, "resourceRefs": []any{of}, "crossplane": map[string]any{"resourceRefs": []any{of}, "claimRef": of}},
	})
	must(err)

	return string(b)
}

// Patched returns the object of the Zoo at the index, modulo its length, with a JSON merge patch
// applied, as decoded from JSON. It returns false if the result is not a Kubernetes object.
func Patched(index uint8, patch []byte) (u *unstructured.Unstructured, ok bool) {
	var p map[string]any
	if err := json.Unmarshal(patch, &p); err != nil {
		return nil, false
	}
	zoo := HostileObjects()
	b, err := json.Marshal(merge(zoo[int(index)%len(zoo)].Object, p))
	must(err)
	u = &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(b); err != nil || u.GetName() == "" {
		return nil, false
	}
	_, ok = u.Object["metadata"].(map[string]any)

	return u, ok
}

// Seeds calls add with each patch of Hostile and some indexes of the Zoo, so that each object gets
// some, and with the patches of selfReference.
func Seeds(add func(index uint8, patch []byte)) {
	zoo := len(HostileObjects())
	for n, patch := range Hostile() {
		for _, offset := range []int{0, 5, 11, 17} {
			add(uint8((n+offset)%zoo), []byte(patch)) //nolint:gosec // The zoo is small.
		}
	}
	for n, u := range trees() {
		add(uint8(n), []byte(selfReference(u)))
	}
}

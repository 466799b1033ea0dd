package xp

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// IsUpjet reports whether upjet reconciles an MR. Every kind that it makes has spec.initProvider,
// which its providers write even if nothing is in it.
//
// Upjet does not ask the cloud for what an external-name means. It reads what Terraform remembers
// of the external resource, and a provider that was just started, or that sees an MR under a new
// UID, makes that up from the external-name and status.atProvider (upjet pkg/controller, Connect of
// external_tfpluginsdk.go and external_tfpluginfw.go). If the status is not there, or the ID that
// it makes is not the one that Terraform had, it can find nothing under an external-name that is
// right, and creates (upjet issue 561).
func IsUpjet(mr *unstructured.Unstructured) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "initProvider")

	return ok && IsManaged(mr)
}

// IsNeverObserved reports whether upjet, which creates what it does not find, says nothing of what
// there is under the external-name of an MR. It writes all that it knows of an external resource
// into status.atProvider when it has observed it. Before that it was not created yet, or nobody has
// answered: upjet says of an asynchronous create that it succeeded when it begins (upjet
// pkg/controller/external_async_tfpluginsdk.go, Create), so nothing else tells.
func IsNeverObserved(mr *unstructured.Unstructured) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "status", "atProvider")
	found, _ := v.(map[string]any)

	return IsUpjet(mr) && len(found) == 0 && !IsPaused(mr) && MayCreate(mr) && IdentityOf(mr) == Known
}

package xp

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// IsUpjets tells whether upjet reconciles an MR. Every kind that it makes has spec.initProvider, which its providers write even if nothing is in it.
//
// Upjet does not ask the cloud for what an external-name means. It reads what Terraform remembers of the external resource, and a provider that was just
// started, or that sees an MR under a new UID, makes that up from the external-name and status.atProvider (upjet pkg/controller, Connect of
// external_tfpluginsdk.go and external_tfpluginfw.go). If the status is not there, or the ID that it makes is not the one that Terraform had, it can find
// nothing under an external-name that is right, and creates (upjet issue 561).
func IsUpjets(mr *unstructured.Unstructured) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "initProvider")

	return ok && IsManaged(mr)
}

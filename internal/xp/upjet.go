package xp

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsUpjet reports whether upjet reconciles an MR. Every kind of upjet has spec.initProvider, which
// its providers write even if it is empty.
//
// Upjet does not look an external-name up in the cloud. It reads its Terraform state of the
// external resource. A provider that has just started, or that sees an MR under a new UID, builds
// this state from the external-name and status.atProvider (upjet pkg/controller, Connect of
// external_tfpluginsdk.go and external_tfpluginfw.go). Without that status, or if the ID that it
// builds is not the one that Terraform had, it can find nothing under a correct external-name, and
// creates a second resource (upjet issue 561).
func IsUpjet(mr *unstructured.Unstructured) bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(mr.Object, "spec", "initProvider")

	return ok && IsManaged(mr)
}

// IsNeverObserved reports whether an MR of upjet, which creates what it does not find, shows no
// sign that the external-name belongs to an external resource. Upjet fills status.atProvider when
// it has observed the resource. Nothing else is a sign: upjet notes that an asynchronous create
// succeeded when the create begins (upjet pkg/controller/external_async_tfpluginsdk.go, Create).
func IsNeverObserved(mr *unstructured.Unstructured) bool {
	v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "status", "atProvider")
	found, _ := v.(map[string]any)

	return IsUpjet(mr) && len(found) == 0 && !IsPaused(mr) && MayCreate(mr) && IdentityOf(mr) == Known
}

// IsOperationOngoing reports whether a provider of upjet runs, or may run, an asynchronous operation
// on an MR whose outcome is not in the MR yet. Its condition AsyncOperation says so in the versions
// that fork Terraform. In the others only a create shows: the provider has noted that the create
// began, has filled no status.atProvider since, and its condition LastAsyncOperation is older
// (upjet pkg/controller/external_async_tfpluginsdk.go and api.go). An update shows in neither.
func IsOperationOngoing(mr *unstructured.Unstructured) bool {
	if c, ok := ConditionOf(mr, ConditionAsyncOperation); ok && c.Status == "True" && c.Reason == ReasonOngoing {
		return true
	}
	v, _, _ := unstructured.NestedFieldNoCopy(mr.Object, "status", "atProvider")
	found, _ := v.(map[string]any)
	begun, err := time.Parse(time.RFC3339, Annotation(mr, AnnotationCreateSucceeded))
	if err != nil || len(found) > 0 || !IsUpjet(mr) || !MayCreate(mr) {
		return false
	}
	c, ok := ConditionOf(mr, ConditionLastAsyncOperation)

	return !ok || c.Since.Before(begun)
}

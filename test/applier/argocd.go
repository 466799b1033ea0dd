package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/sync/common"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// Argo CD's name for itself, and the annotation by which it recognizes objects that it has applied
// (argoproj/argo-cd common/common.go).
const (
	argocdManager  = "argocd-controller"
	argocdTracking = "argocd.argoproj.io/tracking-id"
)

// argocd applies as a sync of Argo CD does (argoproj/argo-cd controller/sync.go, SyncAppState).
type argocd struct {
	config              *rest.Config
	serverSide, replace bool
}

func (a *argocd) apply(_ context.Context, manifest, live *unstructured.Unstructured) error {
	kind := manifest.GroupVersionKind()
	annotations := manifest.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[argocdTracking] = fmt.Sprintf("team:%s/%s:%s/%s", kind.Group, kind.Kind, manifest.GetNamespace(), manifest.GetName())
	manifest.SetAnnotations(annotations)

	return a.sync(manifest, live, func(common.ResourceSyncResult) bool { return false }, sync.WithOperationSettings(false, false, false, true))
}

// prune deletes in the foreground, as Argo CD does unless its PrunePropagationPolicy is another.
func (a *argocd) prune(_ context.Context, live *unstructured.Unstructured) error {
	foreground := metav1.DeletePropagationForeground

	return a.sync(nil, live, func(r common.ResourceSyncResult) bool { return r.Status == common.ResultCodePruned },
		sync.WithOperationSettings(false, true, false, true), sync.WithPrunePropagationPolicy(&foreground))
}

// sync runs one sync to its end, or until enough accepts a result. It takes more than one call: the
// first is a dry run of all.
func (a *argocd) sync(manifest, live *unstructured.Unstructured, enough func(common.ResourceSyncResult) bool, options ...sync.SyncOpt) error {
	of := manifest
	if of == nil {
		of = live
	}
	kubectl := &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}}
	both := sync.ReconciliationResult{Target: []*unstructured.Unstructured{manifest}, Live: []*unstructured.Unstructured{live}}
	options = append(options, sync.WithLogr(logr.Discard()), sync.WithManifestValidation(true),
		sync.WithServerSideApply(a.serverSide), sync.WithServerSideApplyManager(argocdManager), sync.WithReplace(a.replace))
	s, cleanup, err := sync.NewSyncContext("main", both, a.config, a.config, kubectl, of.GetNamespace(), nil, options...)
	if err != nil {
		return fmt.Errorf("cannot begin to sync: %w", err)
	}
	defer cleanup()
	const calls = 10
	for range calls {
		s.Sync()
		phase, message, results := s.GetState()
		if phase == common.OperationSucceeded || slices.ContainsFunc(results, enough) {
			return nil
		}
		if phase.Completed() {
			return fmt.Errorf("cannot sync: %s: %s: %v", phase, message, results)
		}
	}

	return fmt.Errorf("cannot sync in %d calls", calls)
}

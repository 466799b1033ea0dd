package explorer

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

// A sourceCheck is what the plugin's restore action sees of the source.
type sourceCheck struct{ *cluster }

func (sourceCheck) UID(context.Context) (string, error) { return "target", nil }

func (c sourceCheck) LeaveReceipt(context.Context, string, string, bool, *unstructured.Unstructured) (bool, error) {
	c.receipt = true

	return true, nil
}

// Aborts returns what the restore has found.
func (c sourceCheck) Aborts(context.Context, string, string, *unstructured.Unstructured) ([]adoption.Receipt, error) {
	if !c.withdrawn {
		return nil, nil
	}

	return []adoption.Receipt{{Source: "source", Cluster: "source", Started: noon, Aborted: true}}, nil
}

func (sourceCheck) Restore(context.Context, string, string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{}, nil
}

func (sourceCheck) Collisions(context.Context, string, string) ([]reason.Message, error) {
	return nil, nil
}

func (w *world) sourceOptions(c *cluster) []restoreitem.Option {
	if w.handover == nil || w.without&safeQuiet != 0 {
		return nil
	}

	return []restoreitem.Option{restoreitem.WithSource(sourceCheck{c})}
}

// How far a restore has come with its receipt.
const (
	hasLooked = iota + 1
	hasLeftReceipt
	hasLookedAgain
)

// receiptSteps are the steps of a restore that leaves a receipt for the source: it looks for an
// abort, leaves the receipt, and looks again when Velero has synchronized the bucket.
func (w *world) receiptSteps(s *state, i instance, emit func(step)) {
	src, next, verb := w.sourceOf(s), *s, "looks for an abort, before it restores"
	v := &next.velero
	v.notice++
	if v.notice == hasLeftReceipt {
		verb, src.receipt = "leaves a receipt, before it restores", true
		next.source = w.handover.number(&src)
	} else if v.notice == hasLooked || w.without&safeLook == 0 {
		v.withdrawn = src.withdrawn
	}
	emit(step{label: label{plugin, verb, int8(i)}, next: next})
}

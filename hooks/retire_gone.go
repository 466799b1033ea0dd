package hooks

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
)

// awaitGone waits until the deleted objects are gone, and records those that are not, or that
// another writer has created again. The garbage collector ends the deletion of an XR.
func (r *retire) awaitGone(ctx context.Context) error {
	for deadline := time.Now().Add(r.timeout); ; {
		sc, err := r.readScope(ctx, r.cluster)
		if err != nil {
			return err
		}
		left := r.left(sc)
		if len(left) == 0 || !time.Now().Before(deadline) {
			for _, n := range left {
				finalizers := sc.survey.Get(r.results[n].Object).GetFinalizers()
				r.unretire(n, reason.NotDeleted.Messagef("it is being deleted, and the finalizers %v are left", finalizers), "see who added them, and run retire again")
			}
			r.recordCreated(sc)

			return nil
		}
		if err := sleep(ctx, r.pause); err != nil {
			return reason.Interrupted.Errorf("cannot continue: %w; run retire again", err)
		}
	}
}

// left returns the indexes of the results whose object is not gone.
func (r *retire) left(sc *scope) []int {
	var left []int
	for n, one := range r.results {
		if u := sc.survey.Get(one.Object); one.Result == report.Retired && u != nil && u.GetUID() == r.deleted[one.Object.ID()] {
			left = append(left, n)
		}
	}

	return left
}

// recordCreated records the objects that another writer has created again.
func (r *retire) recordCreated(sc *scope) {
	for n, one := range r.results {
		if u := sc.survey.Get(one.Object); one.Result == report.Retired && u != nil {
			r.unretire(n, reason.AppliedAgain.Messagef("%s has created it again, and can create external resources that the other cluster has", creatorOf(u)),
				"pause it, remove it from what applies it, and delete it here without its external resource")
		}
	}
}

func (r *retire) unretire(n int, why reason.Message, next string) {
	one := &r.results[n]
	one.Result, one.Code, one.Reason, one.Next = report.StillHeld, why.Code, why.String(), next
}

// creatorOf names the writer that created an object, as its field managers name it.
func creatorOf(u *unstructured.Unstructured) string {
	for _, m := range u.GetManagedFields() {
		if m.Subresource == "" && m.Manager != "" {
			return m.Manager
		}
	}

	return "another writer"
}

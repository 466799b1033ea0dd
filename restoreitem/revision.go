package restoreitem

import (
	"context"
	"fmt"
	"math"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// raiseRevision prevents that two revisions of a Composition are the newest. Velero labels the
// Composition, and a revision is made of its labels too, so Crossplane creates another one. Its
// number is 1 if Crossplane takes over the restored ones only later, else one more than the
// highest. A restored one with the same number would be as new for ever, and each XR on Automatic
// would switch between them by chance (crossplane internal/controller/apiextensions/composition,
// Reconcile; apis/apiextensions/v1, LatestRevision). No even number is 1, or one more than another.
func (a *Adopt) raiseRevision(i *item) error {
	number, _, err := unstructured.NestedInt64(i.Object, "spec", "revision")
	if err != nil {
		return fmt.Errorf("cannot read the number of %s: %w", xp.String(i.original), err)
	}
	restored, err := a.isOfBackup(i)
	if err != nil {
		return err
	}
	if restored && 0 < number && number <= math.MaxInt64/2 {
		if err = unstructured.SetNestedField(i.Object, 2*number, "spec", "revision"); err != nil {
			return fmt.Errorf("cannot number %s: %w", xp.String(i.original), err)
		}
	}
	if err = a.cluster.RaiseRevision(context.Background(), i.Unstructured); err != nil {
		return apiErrorf("cannot restore %s beside the live revisions of its Composition: %w", xp.String(i.original), err)
	}

	return nil
}

// isOfBackup reports whether the revision's Composition is not live yet, or is from the same
// backup.
func (a *Adopt) isOfBackup(revision *item) (bool, error) {
	ref, ok := xp.Controller(revision.original)
	if !ok {
		return false, nil
	}
	composition, err := a.cluster.Owner(context.Background(), ref, "")
	if isAbsent(err) {
		return true, nil
	}
	if err != nil {
		return false, apiErrorf("cannot find the Composition of %s: %w", xp.String(revision.original), err)
	}

	return xp.Label(composition, velerov1.BackupNameLabel) == label.GetValidName(revision.restore.Spec.BackupName), nil
}

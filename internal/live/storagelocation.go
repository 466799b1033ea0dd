package live

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// StorageLocation reads a BackupStorageLocation.
func (c *Cluster) StorageLocation(ctx context.Context, velero, name string) (*velerov1.BackupStorageLocation, error) {
	gvk := velerov1.SchemeGroupVersion.WithKind("BackupStorageLocation")
	u, err := c.Get(ctx, xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: velero, Name: name})
	if err != nil {
		return nil, fmt.Errorf("cannot read where the reports are: %w", err)
	}
	l := &velerov1.BackupStorageLocation{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, l); err != nil {
		return nil, fmt.Errorf("cannot read the BackupStorageLocation %s/%s: %w", velero, name, err)
	}

	return l, nil
}

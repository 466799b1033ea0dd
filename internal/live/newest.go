package live

import (
	"context"
	"fmt"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/label"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// NewestBackup returns the newest Completed Backup of a schedule; nil if there is none.
func (c *Cluster) NewestBackup(ctx context.Context, velero, schedule string) (*unstructured.Unstructured, error) {
	name := label.GetValidName(schedule)
	var backups []*unstructured.Unstructured
	options := metav1.ListOptions{LabelSelector: velerov1.ScheduleNameLabel + "=" + name}
	err := c.Each(ctx, adoption.KindBackup, velero, options, func(u *unstructured.Unstructured) { backups = append(backups, u) })
	if err != nil {
		return nil, fmt.Errorf("cannot find the backups of the schedule %s: %w", schedule, err)
	}
	newest, _ := adoption.NewestBackup(backups, name)

	return newest, nil
}

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

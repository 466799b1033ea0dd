package live

import (
	"context"
	"fmt"
	"io"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/cacert"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/downloadrequest"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listTimeout is how long a poll waits for the list of what is in a backup.
const listTimeout = time.Minute

// A downloadFn writes the list of what is in a Backup.
type downloadFn func(ctx context.Context, backup *velerov1.Backup, w io.Writer) error

// downloadsFrom returns a function that downloads as the velero CLI does: with a DownloadRequest,
// for which Velero's server returns an address in the object store.
func downloadsFrom(config *rest.Config) downloadFn {
	return func(ctx context.Context, backup *velerov1.Backup, w io.Writer) error {
		scheme := runtime.NewScheme()
		if err := velerov1.AddToScheme(scheme); err != nil {
			return fmt.Errorf("cannot register Velero's kinds: %w", err)
		}
		c, err := client.New(config, client.Options{Scheme: scheme})
		if err != nil {
			return fmt.Errorf("cannot make a client for Velero's kinds: %w", err)
		}
		ca, err := cacert.GetCACertFromBackup(ctx, c, backup.Namespace, backup)
		if err != nil {
			return fmt.Errorf("cannot read the certificate of the object store: %w", err)
		}
		location := &velerov1.BackupStorageLocation{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: backup.Namespace, Name: backup.Spec.StorageLocation}, location); err != nil {
			return fmt.Errorf("cannot read the BackupStorageLocation %s: %w", backup.Spec.StorageLocation, err)
		}
		insecure := location.Spec.Config["insecureSkipTLSVerify"] == "true"

		return downloadrequest.StreamWithBSLCACert(ctx, c, backup.Namespace, backup.Name, velerov1.DownloadTargetKindBackupResourceList, w, listTimeout, insecure, "", ca)
	}
}

package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/cacert"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/downloadrequest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// listTimeout is how long a poll waits for the list of what is in a backup, and contentsTimeout how
// long a user waits for the backup itself.
const (
	listTimeout     = time.Minute
	contentsTimeout = 10 * time.Minute
)

// A Download is a file of a Backup in the object store. The certificate and the settings of the
// BackupStorageLocation apply, besides those that it has.
type Download struct {
	Backup *velerov1.Backup
	Kind   velerov1.DownloadTargetKind
	// CACert is a file with certificates of the object store.
	CACert string
	// Insecure accepts any certificate.
	Insecure bool
	// Timeout limits the whole download.
	Timeout time.Duration
}

// A downloadFn writes a file of a Backup.
type downloadFn func(ctx context.Context, d Download, w io.Writer) error

// downloadsFrom returns a function that downloads as the velero CLI does: with a DownloadRequest,
// for which Velero's server returns an address in the object store.
func downloadsFrom(config *rest.Config) downloadFn {
	return func(ctx context.Context, d Download, w io.Writer) error {
		backup, scheme := d.Backup, runtime.NewScheme()
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
		insecure := d.Insecure || location.Spec.Config["insecureSkipTLSVerify"] == "true"

		return downloadrequest.StreamWithBSLCACert(ctx, c, backup.Namespace, backup.Name, d.Kind, w, d.Timeout, insecure, d.CACert, ca)
	}
}

// BackupContents writes the archive of the Backup with a name in Velero's namespace. Its errors have
// a code, except those of the API server. d needs no Backup, Kind and Timeout.
func (c *Cluster) BackupContents(ctx context.Context, velero, name string, d Download, w io.Writer) error {
	u, err := c.Get(ctx, xp.Ref{APIVersion: velerov1.SchemeGroupVersion.String(), Kind: "Backup", Namespace: velero, Name: name})
	switch {
	case meta.IsNoMatchError(err):
		return reason.NotFound.Errorf("there is no Backup %s/%s: the cluster %s has no Velero; --context names another cluster", velero, name, c.Name())
	case apierrors.IsNotFound(err):
		return reason.NotFound.Errorf("there is no Backup %s/%s; velero backup get lists them", velero, name)
	case err != nil:
		return err
	}
	d.Backup, d.Kind, d.Timeout = &velerov1.Backup{}, velerov1.DownloadTargetKindBackupContents, contentsTimeout
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d.Backup); err != nil {
		return fmt.Errorf("cannot read the Backup %s/%s: %w", velero, name, err)
	}
	switch err := c.download(ctx, d, w); {
	case errors.Is(err, downloadrequest.ErrNotFound):
		return reason.BackupUnreadable.Errorf("the object store has no contents of the Backup %s/%s, whose phase is %q; inspect a Backup that is Completed",
			velero, name, d.Backup.Status.Phase)
	case errors.Is(err, downloadrequest.ErrDownloadRequestDownloadURLTimeout):
		return reason.TimedOut.Errorf("cannot download the Backup %s/%s: Velero gives no address for it; check that Velero runs and that its "+
			"BackupStorageLocation is Available", velero, name)
	case err != nil:
		return fmt.Errorf("cannot download the Backup %s/%s: %w", velero, name, err)
	default:
		return nil
	}
}

package hooks

import (
	"context"

	"github.com/spf13/cobra"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/objectstore"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// A reportStore keeps reports in the object store.
type reportStore interface {
	Put(name string, content []byte) error
	// Get returns objectstore.ErrNotFound if there is no such file.
	Get(name string) ([]byte, error)
	Close()
}

// storeFlags name the object store with the reports.
type storeFlags struct {
	location, plugins, credentials string
	// open opens the store of a location.
	open func(l *velerov1.BackupStorageLocation, plugins, credentials string) (reportStore, error)
}

func (s *storeFlags) addTo(c *cobra.Command) {
	s.open = func(l *velerov1.BackupStorageLocation, plugins, credentials string) (reportStore, error) {
		return objectstore.Open(l, plugins, credentials)
	}
	flags := c.Flags()
	flags.StringVar(&s.location, "report-location", "", "the BackupStorageLocation whose bucket has the reports")
	flags.StringVar(&s.plugins, "plugin-dir", "/plugins", "folder with Velero's plugin for the object store")
	flags.StringVar(&s.credentials, "credentials-file", "", "credentials for the object store, if the BackupStorageLocation has its own")
	_ = c.MarkFlagDirname("plugin-dir") // They fail only without the flag.
	_ = c.MarkFlagFilename("credentials-file")
}

// store opens the object store, to write or only to read; it returns nil if no location is given.
func (s *storeFlags) store(ctx context.Context, cluster *live.Cluster, velero string, writes bool) (reportStore, error) { //nolint:ireturn // Tests differ.
	if s.location == "" {
		return nil, nil //nolint:nilnil // Without a location there is nothing to open.
	}
	l, err := cluster.StorageLocation(ctx, velero, s.location)
	if err != nil {
		return nil, err
	}
	if writes && l.Spec.AccessMode == velerov1.BackupStorageLocationAccessModeReadOnly {
		return nil, reason.ReportNotStored.Errorf("cannot write a report to the BackupStorageLocation %s/%s: it is ReadOnly; name another one, of the same bucket "+
			"with another prefix", velero, l.Name)
	}
	if l.Spec.Credential != nil && s.credentials == "" {
		return nil, reason.ReportNotStored.Errorf("cannot use the BackupStorageLocation %s/%s: it has credentials of its own, in the Secret %s; "+
			"mount that, and name the file with --credentials-file", velero, l.Name, l.Spec.Credential.Name)
	}
	store, err := s.open(l, s.plugins, s.credentials)
	if err != nil {
		return nil, reason.ReportNotStored.Errorf("%w", err)
	}

	return store, nil
}

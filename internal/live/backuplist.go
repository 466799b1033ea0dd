package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/cacert"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/downloadrequest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// downloadTimeout is how long a poll waits for a download from the object store.
const downloadTimeout = time.Minute

// A downloadFn writes the list of the resources in a Backup, from the object store.
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

		return downloadrequest.StreamWithBSLCACert(
			ctx, c, backup.Namespace, backup.Name, velerov1.DownloadTargetKindBackupResourceList, w, downloadTimeout, insecure, "", ca,
		)
	}
}

// backedUp returns the items of a Backup, whatever their version.
func (c *Cluster) backedUp(ctx context.Context, backup *unstructured.Unstructured) (map[xp.ID]xp.Ref, error) {
	b := &velerov1.Backup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(backup.Object, b); err != nil {
		return nil, fmt.Errorf("cannot read the Backup %s: %w", backup.GetName(), err)
	}
	var list bytes.Buffer
	if err := c.download(ctx, b, &list); err != nil {
		return nil, fmt.Errorf("cannot download the list of what is in the Backup %s: %w", backup.GetName(), err)
	}
	var names map[string][]string
	if err := json.Unmarshal(list.Bytes(), &names); err != nil {
		return nil, fmt.Errorf("cannot read the list of what is in the Backup %s: %w", backup.GetName(), err)
	}

	return itemsOf(names), nil
}

// itemsOf reads Velero's list: by apiVersion/Kind the names, with a namespace or not (velero
// pkg/backup/request.go, BackupResourceList).
func itemsOf(names map[string][]string) map[xp.ID]xp.Ref {
	items := map[xp.ID]xp.Ref{}
	for of, all := range names {
		cut := strings.LastIndex(of, "/")
		gv, err := schema.ParseGroupVersion(of[:max(cut, 0)])
		if cut < 0 || err != nil {
			continue
		}
		for _, path := range all {
			namespace, name, namespaced := strings.Cut(path, "/")
			if !namespaced {
				namespace, name = "", path
			}
			r := xp.Ref{APIVersion: gv.String(), Kind: of[cut+1:], Namespace: namespace, Name: name}
			items[r.ID()] = r
		}
	}

	return items
}

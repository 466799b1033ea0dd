package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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

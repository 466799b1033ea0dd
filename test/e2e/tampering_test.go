package e2e

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An attacker who can write to the bucket has changed this tenant's objects in this backup.
const (
	tamperer = "tamperer"
	tampered = "tampered"
)

// tamper uploads a backup that is a copy of another one, but whose objects of the tamperer list the
// victim's and cluster-scoped objects to be restored first.
func (s *suite) tamper(t *testing.T, backup *unstructured.Unstructured, l *targets) {
	t.Helper()
	list := []any{
		"clusterrolebindings.rbac.authorization.k8s.io//" + crown,
		fmt.Sprintf("secrets/%s/%s-connection", victim, l.instance.GetName()),
		fmt.Sprintf("%s//%s", resource(l.composition), l.composition.GetName()),
	}
	for _, u := range append([]unstructured.Unstructured{*l.instance, *l.composite}, l.managed...) {
		list = append(list, fmt.Sprintf("%s/%s/%s", resource(&u), u.GetNamespace(), u.GetName()))
	}
	items, _, _ := unstructured.NestedInt64(backup.Object, "status", "progress", "totalItems")
	file := filepath.Join(t.TempDir(), tampered+".tar.gz")
	changed := 0
	rewrite(t, s.host.BackupFile(backup.GetName()), file, func(content []byte) []byte {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(content, &u.Object); err != nil || u.GetKind() == "" {
			return content
		}
		if u.GetNamespace() != tamperer && u.GetLabels()["crossplane.io/claim-namespace"] != tamperer {
			return content
		}
		changed++
		must(t, unstructured.SetNestedSlice(u.Object, list, "metadata", "velero.crossplane.io/restore-first"))
		must(t, unstructured.SetNestedField(u.Object, "true", "metadata", "annotations", mustInclude))
		b, err := json.Marshal(u.Object)
		must(t, err)

		return b
	})
	if changed == 0 {
		t.Fatalf("Backup %s has nothing of %s", backup.GetName(), tamperer)
	}
	must(t, s.host.Upload(t.Context(), tampered, backup.GetName(), int(items), file))
}

// rewrite copies the tar file of a backup, and passes each object file through change.
func rewrite(t *testing.T, from, to string, change func(content []byte) []byte) {
	t.Helper()
	out, err := os.Create(to)
	must(t, err)
	defer out.Close()
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	readBackup(t, from, func(header *tar.Header, content []byte) {
		if strings.HasPrefix(header.Name, "resources/") && strings.HasSuffix(header.Name, ".json") {
			content = change(content)
			header.Size = int64(len(content))
		}
		must(t, archive.WriteHeader(header))
		_, err = archive.Write(content)
		must(t, err)
	})
	must(t, errors.Join(archive.Close(), zipped.Close(), out.Close()))
}

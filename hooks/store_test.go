package hooks

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/objectstore"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// memory is a reportStore.
type memory map[string]string

func (m memory) Put(name string, content []byte) error {
	m[name] = string(content)

	return nil
}

func (m memory) Get(name string) ([]byte, error) {
	if content, ok := m[name]; ok {
		return []byte(content), nil
	}

	return nil, fmt.Errorf("cannot read %s: %w", name, objectstore.ErrNotFound)
}

func (m memory) Close() {}

// in returns flags that open this store.
func (m memory) in(location string) storeFlags {
	return storeFlags{location: location, open: func(*velerov1.BackupStorageLocation, string, string) (reportStore, error) { return m, nil }}
}

func TestStore(t *testing.T) {
	location := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default", o...)
	}
	cases := map[string]struct {
		reason   string
		location *unstructured.Unstructured
		writes   bool
		err      error
		want     string
	}{
		"Opens":     {reason: "It is used as it is.", location: location(), writes: true},
		"ReadOnly":  {reason: "Its owner wants nothing written.", location: location(xptest.Field("ReadOnly", "spec", "accessMode")), writes: true, want: "it is ReadOnly"},
		"ReadsOnly": {reason: "Reading is fine.", location: location(xptest.Field("ReadOnly", "spec", "accessMode"))},
		"Own": {
			reason: "The command does not read Secrets.", location: location(xptest.Field("cloud", "spec", "credential", "name"), xptest.Field("key", "spec", "credential", "key")),
			want: "--credentials-file",
		},
		"Fails": {reason: "There is no plugin for it.", location: location(), err: errors.New("boom"), want: "boom"},
	}
	for name, tc := range cases {
		s := newServer(tc.location)
		f := storeFlags{location: "default", open: func(*velerov1.BackupStorageLocation, string, string) (reportStore, error) { return memory{}, tc.err }}
		_, err := f.store(t.Context(), live.NewCluster(s, s), "velero", tc.writes)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s The error is %v", name, tc.reason, err)
		}
	}
}

// TestStoreHandover stores a report in one cluster, and reads it in the other one.
func TestStoreHandover(t *testing.T) {
	location := xptest.Object("velero.io/v1", "BackupStorageLocation", "velero", "default")
	s := newServer(location)
	cluster, store := live.NewCluster(s, s), memory{}
	var out bytes.Buffer
	there := newOptions(Streams{Out: &out, Err: &out})
	there.velero, there.namespace = "velero", "team-b"
	none := storeFlags{}
	if err := none.storeHandover(t.Context(), cluster, there, &report.Report{}); err != nil || out.Len() > 0 {
		t.Errorf("without a location: %v, %s", err, out.String())
	}
	flags := store.in("default")
	if err := flags.storeHandover(t.Context(), cluster, there, &report.Report{APIVersion: report.APIVersion, Kind: report.KindValidation, Cluster: "there"}); err != nil {
		t.Fatal(err)
	}

	here := newOptions(Streams{Out: &out, Err: &out})
	here.velero, here.namespace = "velero", "team-a"
	r := &retire{options: here, cluster: cluster, bucket: store.in("default"), namespaces: map[string]string{"team-a": "team-b"}}
	if got, err := r.readStored(t.Context()); err != nil || got.Cluster != "there" {
		t.Errorf("retire reads %+v: %v", got, err)
	}
	r.namespaces = nil
	if _, err := r.readStored(t.Context()); err == nil || !strings.Contains(err.Error(), "handovers/team-a.json") {
		t.Errorf("without a report the error is %v", err)
	}
	here.namespace = ""
	if _, err := r.readStored(t.Context()); err == nil || !strings.Contains(err.Error(), "handovers/_cluster.json") {
		t.Errorf("for the whole cluster the error is %v", err)
	}
}

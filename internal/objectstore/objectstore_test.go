package objectstore

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memory is an object store.
type memory struct {
	velero.ObjectStore

	objects map[string]string
	err     error
}

func (m memory) PutObject(bucket, key string, body io.Reader) error {
	b, err := io.ReadAll(body)
	m.objects[bucket+" "+key] = string(b)

	return errors.Join(err, m.err)
}

func (m memory) ObjectExists(bucket, key string) (bool, error) {
	_, ok := m.objects[bucket+" "+key]

	return ok, m.err
}

func (m memory) GetObject(bucket, key string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(m.objects[bucket+" "+key])), m.err
}

func TestStore(t *testing.T) {
	m := memory{objects: map[string]string{}}
	s := &Store{store: m, bucket: "b", prefix: "p/q", end: func() {}}
	defer s.Close()
	if err := s.Put("drills/a.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b p/q/plugins/velero-plugin-for-crossplane/drills/a.json": "{}"}, m.objects); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got, err := s.Get("drills/a.json"); err != nil || !bytes.Equal(got, []byte("{}")) {
		t.Errorf("it reads %s, %v", got, err)
	}
	if _, err := s.Get("drills/b.json"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of a file that does not exist it returns %v", err)
	}
	m.err = errors.New("boom")
	s.store = m
	if err := s.Put("a", nil); !errors.Is(err, m.err) {
		t.Errorf("Put returns %v", err)
	}
	if _, err := s.Get("drills/a.json"); !errors.Is(err, m.err) || errors.Is(err, ErrNotFound) {
		t.Errorf("Get returns %v", err)
	}
}

func TestOpen(t *testing.T) {
	location := func(change func(l *velerov1.BackupStorageLocation)) *velerov1.BackupStorageLocation {
		l := &velerov1.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "default"}, Spec: velerov1.BackupStorageLocationSpec{
			Provider: "aws", StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{Bucket: "b"}},
		}}
		change(l)

		return l
	}
	cases := map[string]struct {
		reason   string
		location *velerov1.BackupStorageLocation
		plugins  string
		want     string
	}{
		"NoStore":  {reason: "It has no object store.", location: location(func(l *velerov1.BackupStorageLocation) { l.Spec.ObjectStorage = nil }), plugins: t.TempDir(), want: "no object store"},
		"NoFolder": {reason: "The folder does not exist.", location: location(func(*velerov1.BackupStorageLocation) {}), plugins: t.TempDir() + "/gone", want: "/gone"},
		"NoPlugin": {reason: "The folder has no plugin.", location: location(func(*velerov1.BackupStorageLocation) {}), plugins: t.TempDir(), want: "velero.io/aws"},
	}
	for name, tc := range cases {
		if _, err := Open(tc.location, tc.plugins, ""); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %s The error is %v", name, tc.reason, err)
		}
	}
}

func TestConfigOf(t *testing.T) {
	l := &velerov1.BackupStorageLocation{Spec: velerov1.BackupStorageLocationSpec{
		Config: map[string]string{"region": "eu"}, StorageType: velerov1.StorageType{ObjectStorage: &velerov1.ObjectStorageLocation{CACert: []byte("ca")}},
	}}
	want := map[string]string{"region": "eu", "bucket": "b", "prefix": "p", "caCert": "ca", "credentialsFile": "/c"}
	if diff := cmp.Diff(want, configOf(l, &Store{bucket: "b", prefix: "p"}, "/c")); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if len(l.Spec.Config) != 1 {
		t.Errorf("the location has changed: %v", l.Spec.Config)
	}
}

// Package objectstore reads and writes files in the object store of a BackupStorageLocation, with
// the object store plugin that Velero uses for it.
package objectstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"strings"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
)

// Dir is the folder of this program's files in a location. Velero calls a location invalid if it has
// a folder that Velero does not know, and it knows plugins (velero
// pkg/persistence/object_store_layout.go).
const Dir = "plugins/velero-plugin-for-crossplane"

// maxSize limits what is read, in bytes.
const maxSize = 512 << 20

// ErrNotFound is the error for a file that does not exist.
var ErrNotFound = errors.New("there is no such file")

// A Store is the object store of a location. Close it after use: it runs a plugin.
type Store struct {
	store          velero.ObjectStore
	bucket, prefix string
	end            func()
}

// Open opens the object store of a location. plugins is the folder of Velero's plugins, and
// credentials the file with the location's own credentials; "" for those of the environment.
func Open(location *velerov1.BackupStorageLocation, plugins, credentials string) (*Store, error) {
	name := location.Namespace + "/" + location.Name
	of := location.Spec.ObjectStorage
	if of == nil {
		return nil, fmt.Errorf("cannot open the BackupStorageLocation %s: it has no object store", name)
	}
	s := &Store{bucket: strings.Trim(of.Bucket, "/"), prefix: strings.Trim(of.Prefix, "/")}
	var err error
	if s.store, s.end, err = find(plugins, location.Spec.Provider); err != nil {
		return nil, fmt.Errorf("cannot open the BackupStorageLocation %s: %w", name, err)
	}
	if err := s.store.Init(configOf(location, s, credentials)); err != nil {
		s.Close()

		return nil, fmt.Errorf("cannot open the BackupStorageLocation %s with the plugin %s: %w", name, location.Spec.Provider, err)
	}

	return s, nil
}

// configOf returns the configuration as Velero's server makes it (velero
// pkg/persistence/object_store.go, Get).
func configOf(location *velerov1.BackupStorageLocation, s *Store, credentials string) map[string]string {
	config := map[string]string{}
	maps.Copy(config, location.Spec.Config)
	config["bucket"], config["prefix"] = s.bucket, s.prefix
	if ca := location.Spec.ObjectStorage.CACert; ca != nil {
		config["caCert"] = string(ca)
	}
	if credentials != "" {
		config["credentialsFile"] = credentials
	}

	return config
}

// Close ends the plugin.
func (s *Store) Close() { s.end() }

// Key returns the key of a file of this program in the bucket.
func (s *Store) Key(name string) string { return path.Join(s.prefix, Dir, name) }

// Put writes a file.
func (s *Store) Put(name string, content []byte) error {
	if err := s.store.PutObject(s.bucket, s.Key(name), bytes.NewReader(content)); err != nil {
		return fmt.Errorf("cannot write %s into the bucket %s: %w", s.Key(name), s.bucket, err)
	}

	return nil
}

// Get reads a file, of which it returns at most 512 MiB. It returns ErrNotFound if there is none.
func (s *Store) Get(name string) (content []byte, err error) {
	key := s.Key(name)
	found, err := s.store.ObjectExists(s.bucket, key)
	if err == nil && !found {
		err = ErrNotFound
	}
	if err == nil {
		var file io.ReadCloser
		if file, err = s.store.GetObject(s.bucket, key); err == nil {
			content, err = io.ReadAll(io.LimitReader(file, maxSize))
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s in the bucket %s: %w", key, s.bucket, err)
	}

	return content, nil
}

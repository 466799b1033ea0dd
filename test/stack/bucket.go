package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// BackupFile returns the path of the tar file of a backup in the bucket. Callers only read it.
func (h *Host) BackupFile(name string) string {
	return filepath.Join(h.backupDir(name), name+".tar.gz")
}

func (h *Host) backupDir(name string) string {
	return filepath.Join(h.dir, S3, "buckets", bucket, "backups", name)
}

// Upload puts a copy of a backup into the bucket, with another name, another number of items and
// another tar file. Each cluster's Velero finds it at its next start.
func (h *Host) Upload(ctx context.Context, name, like string, items int, tarball string) error {
	files, err := os.ReadDir(h.backupDir(like))
	if err != nil {
		return fmt.Errorf("cannot read backup %s: %w", like, err)
	}
	for _, f := range files {
		from, to := filepath.Join(h.backupDir(like), f.Name()), strings.Replace(f.Name(), like, name, 1)
		switch f.Name() {
		case like + ".tar.gz":
			err = h.putFile(ctx, name+"/"+to, tarball)
		case "velero-backup.json":
			err = h.putBackup(ctx, name, from, items)
		default:
			err = h.putFile(ctx, name+"/"+to, from)
		}
		if err != nil {
			return fmt.Errorf("cannot upload backup %s: %w", name, err)
		}
	}

	return nil
}

// putBackup puts the Backup object of a new backup into the bucket.
func (h *Host) putBackup(ctx context.Context, name, from string, items int) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", from, err)
	}
	if b, err = renamedBackup(b, name, items); err != nil {
		return err
	}

	return h.put(ctx, name+"/velero-backup.json", bytes.NewReader(b), int64(len(b)))
}

// renamedBackup gives an encoded Backup another name and number of items.
func renamedBackup(b []byte, name string, items int) ([]byte, error) {
	var backup map[string]any
	if err := json.Unmarshal(b, &backup); err != nil {
		return nil, fmt.Errorf("cannot parse a Backup: %w", err)
	}
	metadata, _ := backup["metadata"].(map[string]any)
	status, _ := backup["status"].(map[string]any)
	if metadata == nil || status == nil {
		return nil, fmt.Errorf("cannot make Backup %s of one without metadata or status", name)
	}
	metadata["name"] = name
	delete(metadata, "uid")
	delete(metadata, "resourceVersion")
	status["progress"] = map[string]any{"totalItems": items, "itemsBackedUp": items}
	b, err := json.Marshal(backup)
	if err != nil {
		return nil, fmt.Errorf("cannot encode Backup %s: %w", name, err)
	}

	return b, nil
}

func (h *Host) putFile(ctx context.Context, key, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot look at %s: %w", path, err)
	}

	return h.put(ctx, key, f, info.Size())
}

// put stores an object in the folder of backups. The S3 server keeps metadata about each object and
// serves only files that it has stored itself.
func (h *Host) put(ctx context.Context, key string, body io.Reader, size int64) error {
	url := h.s3URL + "/" + bucket + "/backups/" + key
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, body)
	if err != nil {
		return fmt.Errorf("cannot make a request for %s: %w", url, err)
	}
	req.ContentLength = size
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("cannot put %s: %w", url, err)
	}
	defer resp.Body.Close() //nolint:errcheck // Only the status counts.
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot put %s: the S3 server answers %s", url, resp.Status)
	}

	return nil
}

package release

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Sums is the name of the file with the checksums of all others, as sha256sum --check reads them.
const Sums = "SHA256SUMS"

func (r Release) sum() error {
	entries, err := os.ReadDir(r.Out) // In order of names.
	if err != nil {
		return fmt.Errorf("cannot list the files of the release: %w", err)
	}
	var b bytes.Buffer
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(r.Out, e.Name()))
		if err != nil {
			return fmt.Errorf("cannot read a file of the release: %w", err)
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), e.Name())
	}
	if err := os.WriteFile(filepath.Join(r.Out, Sums), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("cannot write the checksums: %w", err)
	}

	return nil
}

package stack

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

const (
	tailLines = 20
	tailBytes = 32 << 10
)

// tail returns the last lines of a file, indented.
func tail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf("  (cannot read the log: %v)", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.

	info, err := f.Stat()
	if err != nil {
		return fmt.Sprintf("  (cannot read the log: %v)", err)
	}
	b := make([]byte, min(info.Size(), tailBytes))
	n, err := f.ReadAt(b, info.Size()-int64(len(b)))
	if n == 0 {
		if len(b) > 0 {
			return fmt.Sprintf("  (cannot read the log: %v)", err)
		}

		return "  (the log is empty)"
	}
	lines := strings.Split(string(bytes.TrimRight(b[:n], "\n")), "\n")

	return "  " + strings.Join(lines[max(0, len(lines)-tailLines):], "\n  ")
}

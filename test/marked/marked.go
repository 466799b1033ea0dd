// Package marked writes what was measured into the documentation, between marks.
package marked

import (
	"bytes"
	"fmt"
)

// Replace returns a document with other text between the marks of what a command writes. It fails
// if the marks are missing.
func Replace(document []byte, command, text string) ([]byte, error) {
	begins, ends := fmt.Sprintf("<!-- Written by %s. -->\n", command), fmt.Sprintf("<!-- End of what %s writes. -->\n", command)
	before, rest, found := bytes.Cut(document, []byte(begins))
	_, after, foundEnd := bytes.Cut(rest, []byte(ends))
	if !found || !foundEnd {
		return nil, fmt.Errorf("cannot find where the text goes: there must be the lines %q and %q", begins, ends)
	}

	return bytes.Join([][]byte{before, []byte(begins), []byte(text), []byte(ends), after}, nil), nil
}

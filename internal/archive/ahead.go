package archive

import (
	"bufio"
	"cmp"
	"io"
)

// readAhead returns a reader that reads from another one in the background: decompressing a backup
// takes as long as decoding it. Once it is stopped, from may be read until the next block is full.
func readAhead(from io.Reader) (ahead io.Reader, stop func() error) {
	const block = 256 << 10
	out, in := io.Pipe()
	go func() {
		// A pipe has no buffer, so both of its ends have one: one block is read while another is
		// decoded.
		b := bufio.NewWriterSize(in, block)
		_, err := b.ReadFrom(from)
		in.CloseWithError(cmp.Or(err, b.Flush()))
	}()

	return bufio.NewReaderSize(out, block), out.Close
}

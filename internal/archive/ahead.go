package archive

import "io"

// ahead reads from another reader in the background: decompressing a backup takes as long as
// decoding it. It is an io.ReadCloser for one goroutine.
type ahead struct {
	full  chan block
	empty chan []byte
	done  chan struct{}
	// current is the block that Read returns. rest is the part of it not returned yet.
	current block
	rest    []byte
}

// A block is what was read, and the error that ended the reading; nil if it goes on.
type block struct {
	content []byte
	err     error
}

// readAhead starts to read from another reader. The caller closes the result. from may be read once
// more after that.
func readAhead(from io.Reader) *ahead {
	const blocks, length = 4, 256 << 10
	a := &ahead{full: make(chan block, blocks), empty: make(chan []byte, blocks), done: make(chan struct{})}
	for range blocks {
		a.empty <- make([]byte, length)
	}
	go a.run(from)

	return a
}

func (a *ahead) run(from io.Reader) {
	for {
		select {
		case <-a.done:
			return
		case b := <-a.empty:
			n, err := fill(from, b[:cap(b)])
			a.full <- block{content: b[:n], err: err} // The channel has room for all blocks.
			if err != nil {
				return
			}
		}
	}
}

// fill reads until b is full or an error occurs.
func fill(from io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = from.Read(b[n:])
		n += more
	}

	return n, err //nolint:wrapcheck // Callers compare the error, as with io.EOF.
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.current.err != nil {
			return 0, a.current.err
		}
		if a.current.content != nil {
			a.empty <- a.current.content
		}
		a.current = <-a.full
		a.rest = a.current.content
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]

	return n, nil
}

// Close ends the background goroutine after its current read.
func (a *ahead) Close() error {
	close(a.done)

	return nil
}

package archive

import "io"

// ahead is a reader that has another read while nobody asks it yet: to gunzip a backup takes as
// long as to make sense of it.
type ahead struct {
	full  chan block
	empty chan []byte
	done  chan struct{}
	// now is what is being given, and rest what of it is still to be.
	now  block
	rest []byte
}

// A block is what was read, and why no more was.
type block struct {
	content []byte
	err     error
}

// readAhead returns a reader of what another gives. Who has had enough of it closes it; the other
// may be asked once more then.
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
			a.full <- block{content: b[:n], err: err} // There is room for all of them.
			if err != nil {
				return
			}
		}
	}
}

// fill reads until there is no more room or a reason not to.
func fill(from io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = from.Read(b[n:])
		n += more
	}

	return n, err //nolint:wrapcheck // A reader's errors are compared, as with io.EOF.
}

// Read makes it an io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if a.now.content != nil {
			a.empty <- a.now.content
		}
		a.now = <-a.full
		a.rest = a.now.content
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]

	return n, nil
}

// Close ends what reads ahead, as soon as that has what it waits for.
func (a *ahead) Close() error {
	close(a.done)

	return nil
}

package stack

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress writes a line for each step, with the time since the beginning.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	began time.Time
}

func newProgress(out io.Writer) *progress {
	if out == nil {
		out = io.Discard
	}

	return &progress{out: out, began: time.Now()}
}

func (p *progress) report(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "%7.1fs  %s\n", time.Since(p.began).Seconds(), fmt.Sprintf(format, args...))
}

func since(t time.Time) time.Duration { return time.Since(t).Round(100 * time.Millisecond) }

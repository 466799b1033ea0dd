package meter

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// scanEvery is the time between two scans of the processes. A scan of some hundred takes a
	// fraction of a millisecond.
	scanEvery = 20 * time.Millisecond
	// settling is how long a new process may still run its parent's program.
	settling = time.Second
)

// A Process is a process that ran the program.
type Process struct {
	// Began to Ended is when it ran, with a precision of 20 ms.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Peak is its peak memory in bytes, without its last 20 ms.
	Peak int64 `json:"peak"`
}

// A Watch finds the processes of a program and measures them.
type Watch struct {
	proc    string
	program string
	self    int // A program that watches its own name leaves itself out.
	stop    chan struct{}
	done    sync.WaitGroup

	mu    sync.Mutex
	seen  map[int]time.Time // The time of the first scan of a process, by its ID.
	live  map[int]*Process
	ended []Process
}

// Follow begins to watch the processes of a program.
func Follow(program string) (*Watch, error) {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return nil, fmt.Errorf("cannot find %s: %w", program, err)
	}
	w := newWatch("/proc", path)
	w.done.Go(func() {
		tick := time.NewTicker(scanEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.scan(time.Now())
			}
		}
	})

	return w, nil
}

func newWatch(proc, program string) *Watch {
	return &Watch{proc: proc, program: program, self: os.Getpid(), stop: make(chan struct{}), seen: map[int]time.Time{}, live: map[int]*Process{}}
}

// Close ends the watch.
func (w *Watch) Close() {
	close(w.stop)
	w.done.Wait()
}

// Processes returns the ended processes and the present state of the running ones, in the order of
// their start.
func (w *Watch) Processes() []Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.ended)
	for _, p := range w.live {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Process) int { return a.Began.Compare(b.Began) })

	return all
}

// Ended returns the processes that began after a time and have ended, in the order of their start.
func (w *Watch) Ended(after time.Time) []Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	some := slices.DeleteFunc(slices.Clone(w.ended), func(p Process) bool { return !p.Began.After(after) })
	slices.SortFunc(some, func(a, b Process) int { return a.Began.Compare(b.Began) })

	return some
}

// scan scans the processes once. It scans a process of another program only once.
func (w *Watch) scan(now time.Time) {
	dir, err := os.Open(w.proc)
	if err != nil {
		return
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[int]bool{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == w.self {
			continue
		}
		there[pid] = true
		first, known := w.seen[pid]
		if !known {
			first = now
			w.seen[pid] = now
		}
		if p := w.live[pid]; p != nil {
			w.look(p, pid, now)
		} else if now.Sub(first) < settling && w.runs(pid) {
			p = &Process{Began: first, Ended: now}
			w.live[pid] = p
			w.look(p, pid, now)
		}
	}
	for pid := range w.seen {
		if there[pid] {
			continue
		}
		delete(w.seen, pid)
		if p := w.live[pid]; p != nil {
			p.Ended = now
			w.ended = append(w.ended, *p)
			delete(w.live, pid)
		}
	}
}

func (w *Watch) runs(pid int) bool {
	exe, err := os.Readlink(w.file(pid, "exe"))

	return err == nil && exe == w.program
}

// look updates the process's peak. A process that has ended and was not reaped yet has none.
func (w *Watch) look(p *Process, pid int, now time.Time) {
	b, err := os.ReadFile(w.file(pid, "status"))
	if err != nil {
		return
	}
	if peak := peakIn(b); peak > 0 {
		p.Peak, p.Ended = max(p.Peak, peak), now
	}
}

// PeakOf returns the peak memory of a running process, in bytes.
func PeakOf(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("cannot find out how much memory process %d has: %w", pid, err)
	}

	return peakIn(b), nil
}

// peakIn reads the peak of the resident memory from a process's status file.
func peakIn(status []byte) int64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"), 10, 64)
			if err != nil {
				return 0
			}

			return kb << 10
		}
	}

	return 0
}

func (w *Watch) file(pid int, name string) string {
	return filepath.Join(w.proc, strconv.Itoa(pid), name)
}

// In returns the processes that began between two times.
func In(processes []Process, from, to time.Time) []Process {
	var some []Process
	for _, p := range processes {
		if !p.Began.Before(from) && !p.Began.After(to) {
			some = append(some, p)
		}
	}

	return some
}

// Peak returns the largest peak memory of the processes.
func Peak(processes []Process) int64 {
	var most int64
	for _, p := range processes {
		most = max(most, p.Peak)
	}

	return most
}

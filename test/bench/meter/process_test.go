package meter

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// processes is a /proc whose processes start, grow and end.
type processes struct {
	t   *testing.T
	dir string
}

func (p processes) run(pid int, program, status string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(dir, "exe"))
	if err := os.Symlink(program, filepath.Join(dir, "exe")); err != nil {
		p.t.Fatal(err)
	}
	// It started 50 s after the machine.
	p.write(filepath.Join(dir, "stat"), fmt.Sprintf("%d (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 5000 20", pid))
	p.write(filepath.Join(dir, "status"), status)
}

func (p processes) write(path, content string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p processes) end(pid int) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, strconv.Itoa(pid))); err != nil {
		p.t.Fatal(err)
	}
}

func TestWatch(t *testing.T) {
	proc := processes{t: t, dir: t.TempDir()}
	proc.write(filepath.Join(proc.dir, "uptime"), "52.00 100.00\n")
	w := newWatch(proc.dir, "/bin/plugin")

	proc.run(7, "/bin/velero", "VmHWM:\t  900 kB\n") // It is about to become the plugin.
	proc.run(8, "/bin/other", "VmHWM:\t  900 kB\n")
	w.scan(at(0))
	proc.run(7, "/bin/plugin", "Name:\tplugin\nVmHWM:\t    1024 kB\nVmRSS:\t 1000 kB\n")
	w.scan(at(0.02))
	if diff := cmp.Diff([]Process(nil), w.Ended(at(-100))); diff != "" {
		t.Errorf("A process that runs has not ended.\n-want, +got:\n%s", diff)
	}
	proc.run(7, "/bin/plugin", "VmHWM:\t    4096 kB\n")
	w.scan(at(0.04))
	proc.run(7, "/bin/plugin", "Name:\tplugin\nState:\tZ (zombie)\n")
	w.scan(at(0.06))
	proc.end(7)
	proc.run(8, "/bin/plugin", "VmHWM:\t 9999 kB\n")
	w.scan(at(10))

	want := []Process{{Began: at(-1.98), Ended: at(10), Peak: 4096 << 10}}
	if diff := cmp.Diff(want, w.Processes()); diff != "" {
		t.Errorf("A process counts from when it runs the program, with the most that it ever had; what ran another program for long is not looked at.\n-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, w.Ended(at(-3))); diff != "" {
		t.Errorf("A process without a directory must have ended.\n-want, +got:\n%s", diff)
	}
	if got := w.Ended(at(-1)); len(got) > 0 {
		t.Errorf("A process that began before must not count: %v", got)
	}
	if got := In(want, at(-3), at(-2.5)); len(got) > 0 {
		t.Errorf("A process that began later must not count: %v", got)
	}
	if got := Peak(append(want, Process{Peak: 5})); got != 4096<<10 {
		t.Errorf("The peak of several is that of the largest: %d", got)
	}
}

func TestPeakOf(t *testing.T) {
	if peak, err := PeakOf(os.Getpid()); err != nil || peak < 1<<20 {
		t.Errorf("This process has more than %d bytes: %v", peak, err)
	}
	if _, err := PeakOf(math.MaxInt32); err == nil {
		t.Error("A process that there is not has no memory.")
	}
}

func TestFollow(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run, err := Time(t.Context(), self, "-test.run=^$")
	if err != nil {
		t.Fatal(err)
	}
	if run.Seconds <= 0 || run.Seconds > time.Minute.Seconds() {
		t.Errorf("a program took %v s", run.Seconds)
	}
	if _, err := Time(t.Context(), self, "-no-such-flag"); err == nil {
		t.Error("A program that fails must be an error.")
	}
	if _, err := Follow(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("A program that is not there can't be watched.")
	}
}

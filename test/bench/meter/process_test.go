package meter

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

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
	if err := os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o600); err != nil {
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

	want := []Process{{Began: at(0), Ended: at(10), Peak: 4096 << 10}}
	if diff := cmp.Diff(want, w.Processes()); diff != "" {
		t.Errorf("A process counts from when it runs the program, with the most that it ever had; what ran another program for long is not looked at.\n-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, w.Ended(at(-3))); diff != "" {
		t.Errorf("A process without a directory must have ended.\n-want, +got:\n%s", diff)
	}
	if got := w.Ended(at(0)); len(got) > 0 {
		t.Errorf("A process that began before must not count: %v", got)
	}
}

func TestTime(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if run, err := Time(t.Context(), self, "-test.run=^$"); err != nil || run.Seconds <= 0 {
		t.Errorf("a program took %v: %v", run, err)
	}
	if _, err := Time(t.Context(), self, "-no-such-flag"); err == nil {
		t.Error("A program that fails must be an error.")
	}
}

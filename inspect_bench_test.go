package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// envDecode names a backup. If it is set, this program only decodes the backup.
const envDecode = "TEST_DECODE_BACKUP"

// BenchmarkInspect compares "inspect" of a backup, in the released form of the program, with
// reading and decoding the backup. Both run in turn, each in its own process. It reports:
//
//   - ×decoding: the ratio of wall-clock times, the median of the pairs.
//   - cpu×decoding: the same for CPU times.
//   - MiB-rss: the largest peak memory of all runs of inspect.
func BenchmarkInspect(b *testing.B) {
	program := filepath.Join(b.TempDir(), "plugin")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".") //nolint:gosec // It is below the test's folder.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("cannot build the plugin: %v: %s", err, out)
	}
	for _, objects := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint("objects=", objects), func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "backup.tar.gz")
			if err := os.WriteFile(file, many(b, objects), 0o600); err != nil {
				b.Fatal(err)
			}
			var clock, cpu, peak []float64
			for b.Loop() {
				decode := measure(b, append(os.Environ(), envDecode+"="+file), os.Args[0])
				inspect := measure(b, os.Environ(), program, "inspect", file)
				clock = append(clock, float64(inspect.clock)/float64(decode.clock))
				cpu = append(cpu, float64(inspect.cpu)/float64(decode.cpu))
				peak = append(peak, float64(inspect.peak)/(1<<20))
			}
			b.ReportMetric(median(clock), "×decoding")
			b.ReportMetric(median(cpu), "cpu×decoding")
			b.ReportMetric(slices.Max(peak), "MiB-rss")
			b.Logf("×decoding from %.2f to %.2f, MiB-rss from %.0f", slices.Min(clock), slices.Max(clock), slices.Min(peak))
		})
	}
}

// many returns a backup with this number of objects.
func many(tb testing.TB, objects int) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := xptest.Many(&b, objects); err != nil {
		tb.Fatal(err)
	}

	return b.Bytes()
}

// A cost is what a process used.
type cost struct {
	clock, cpu time.Duration
	// peak is the peak resident memory in bytes.
	peak uint64
}

// measure runs inspect, or decodeAll, to its end. Found problems are no failure.
func measure(b *testing.B, env []string, program string, args ...string) cost {
	b.Helper()
	var stderr bytes.Buffer
	c := exec.CommandContext(b.Context(), program, args...) //nolint:gosec // It is what was just built, or the test itself.
	c.Env, c.Stderr = env, &stderr
	start := time.Now()
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	ended, peak := make(chan struct{}), make(chan uint64)
	go func() { peak <- peakMemory(c.Process.Pid, ended) }()
	err := c.Wait()
	took := cost{clock: time.Since(start)}
	close(ended)
	took.peak = <-peak
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != hooks.ExitProblems) {
		b.Fatalf("%s ended: %v: %s", program, err, stderr.String())
	}
	took.cpu = c.ProcessState.UserTime() + c.ProcessState.SystemTime()

	return took
}

// peakMemory polls the peak memory of a process until it ends. The kernel reports the peak of a live
// process only. The figure of an ended child is no less than that of its parent.
func peakMemory(pid int, ended <-chan struct{}) (peak uint64) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if p, err := procfs.NewProc(pid); err == nil {
			if status, err := p.NewStatus(); err == nil {
				peak = max(peak, status.VmHWM)
			}
		}
		select {
		case <-ended:
			return peak
		case <-ticker.C:
		}
	}
}

func median(values []float64) float64 {
	slices.Sort(values)

	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// decodeAll is the baseline of BenchmarkInspect: it gunzips, untars and decodes each item once, as
// a Velero restore does, into unstructured objects. It keeps nothing.
func decodeAll(file string) error {
	f, err := os.Open(file) //nolint:gosec // It is the test's.
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // It was only read.
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	archive := tar.NewReader(z)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		parts := strings.Split(header.Name, "/")
		if len(parts) < 4 || parts[2] != "namespaces" && parts[2] != "cluster" {
			continue // Metadata, or the copy by version.
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := (&unstructured.Unstructured{}).UnmarshalJSON(b); err != nil {
			return err
		}
	}
}

// The cost of each object must not depend on their number. Counts show that on any machine, times
// do not.
func TestInspectIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("the test inspects thousands of objects twice")
	}
	const small, large = 1000, 4000
	each := func(objects int) (allocations, bytesEach float64) {
		backup := many(t, objects)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var out, stderr bytes.Buffer
		code := hooks.Run(t.Context(), []string{"inspect", "-"}, hooks.Program{In: bytes.NewReader(backup), Out: &out, Err: &stderr, DryRunner: dryRun})
		runtime.ReadMemStats(&after)
		if code != hooks.ExitProblems {
			t.Fatalf("inspect ended with %d: %s", code, stderr.String())
		}

		return float64(after.Mallocs-before.Mallocs) / float64(objects), float64(after.TotalAlloc-before.TotalAlloc) / float64(objects)
	}
	each(small) // The first run pays the one-time costs.
	fewAllocations, fewBytes := each(small)
	manyAllocations, manyBytes := each(large)
	const more, enough = 1.1, 1000
	if manyAllocations > more*fewAllocations || manyBytes > more*fewBytes {
		t.Errorf("each of %d objects takes %.0f allocations and %.0f bytes, and each of %d takes %.0f and %.0f", small, fewAllocations, fewBytes, large, manyAllocations, manyBytes)
	}
	if manyAllocations > enough {
		t.Errorf("an object takes %.0f allocations", manyAllocations)
	}
}

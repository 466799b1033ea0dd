package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes this machine in a sentence.
func Machine() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, Linux %s, %s", field("/proc/cpuinfo", "model name"), runtime.NumCPU(),
		memory(field("/proc/meminfo", "MemTotal")), kernel(), runtime.Version())
}

// field returns the value of a field in a file of "name: value" lines.
func field(path, name string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}

	return "unknown"
}

// memory converts kilobytes to gigabytes.
func memory(kb string) string {
	var n int
	if _, err := fmt.Sscanf(kb, "%d kB", &n); err != nil {
		return kb
	}

	return fmt.Sprintf("%d GB", (n+1<<19)>>20)
}

func kernel() string {
	b, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown"
	}

	return strings.TrimSpace(string(b))
}

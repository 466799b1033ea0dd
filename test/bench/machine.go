package bench

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes this one in a sentence.
func Machine() string {
	return fmt.Sprintf("%s, %d cores, %s of memory, Linux %s, %s", field("/proc/cpuinfo", "model name"), runtime.NumCPU(),
		memory(field("/proc/meminfo", "MemTotal")), kernel(), runtime.Version())
}

// field returns what a file says behind a name and a colon.
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

// memory turns a number of kilobytes into one of gigabytes.
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

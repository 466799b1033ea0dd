package bench

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
)

// Machine describes this machine in a sentence.
func Machine() string {
	var kb int
	_, _ = fmt.Sscan(field("/proc/meminfo", `MemTotal:`), &kb) // It is 0 where there is no such file.

	return fmt.Sprintf("%s, %d cores, %d GB of memory, Linux %s, %s", field("/proc/cpuinfo", `model name\s*:`), runtime.NumCPU(),
		(kb+1<<19)>>20, field("/proc/sys/kernel/osrelease", ""), runtime.Version())
}

// field returns what follows a name in a file.
func field(path, name string) string {
	b, _ := os.ReadFile(path)
	if found := regexp.MustCompile(`(?m)^` + name + `[ \t]*(.*)$`).FindSubmatch(b); len(b) > 0 && found != nil {
		return string(found[1])
	}

	return "unknown"
}

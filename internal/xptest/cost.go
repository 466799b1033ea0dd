package xptest

import "runtime"

// Allocated returns how many bytes a function allocates in all, whether they are freed or not. It
// is the same on any machine. Goroutines beside it count, too.
func Allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)

	return after.TotalAlloc - before.TotalAlloc
}

package restoreitem

import (
	"maps"
	"slices"
	"sync"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// mostWarnings is how many warnings with the same code an item gets, in the log and in its note. The
// author of an item chooses how many there would be, which can be tens of thousands.
const mostWarnings = 20

// longestNote is how many bytes the note about an item has at most. Velero keeps it as the ID of an
// operation.
const longestNote = 16 << 10

// warned counts the warnings about one item, by code.
type warned struct {
	mu    sync.Mutex
	count map[reason.Code]int
}

// begin begins with the next item.
func (w *warned) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count = map[reason.Code]int{}
}

// add counts a warning, and reports whether it is among the first with its code.
func (w *warned) add(code reason.Code) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == nil {
		w.count = map[reason.Code]int{}
	}
	w.count[code]++

	return w.count[code] <= mostWarnings
}

// isFull reports whether there are so many warnings with the code that another is only counted.
func (w *warned) isFull(code reason.Code) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.count[code] >= mostWarnings
}

// more returns a message for each code that has more than the first warnings.
func (w *warned) more() []reason.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []reason.Message
	for _, code := range slices.Sorted(maps.Keys(w.count)) {
		if n := w.count[code] - mostWarnings; n > 0 {
			all = append(all, code.Messagef("There are %d more warnings like the %d before", n, mostWarnings))
		}
	}

	return all
}

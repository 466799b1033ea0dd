package stack

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Fault is a way in which a call can fail.
type Fault string

// The faults that a Proxy injects.
const (
	// Reset resets the connection before the API server has the call.
	Reset Fault = "Reset"
	// Unanswered closes the connection after the API server has carried out the call.
	Unanswered Fault = "Unanswered"
	// Conflict answers 409 to a write that was not carried out.
	Conflict Fault = "Conflict"
	// TooMany answers 429 with a time after which to retry.
	TooMany Fault = "TooMany"
	// Internal answers 500.
	Internal Fault = "Internal"
	// Unavailable answers 503.
	Unavailable Fault = "Unavailable"
	// Hang delays the answer, and then answers 504. Half of the writes have been carried out.
	Hang Fault = "Hang"
	// Truncated sends only half of an answer.
	Truncated Fault = "Truncated"
	// WatchClosed ends a watch too early.
	WatchClosed Fault = "WatchClosed"
)

// AllFaults returns all kinds of faults.
func AllFaults() []Fault {
	return []Fault{Reset, Unanswered, Conflict, TooMany, Internal, Unavailable, Hang, Truncated, WatchClosed}
}

// appliesTo reports whether the fault can happen to a call.
func (f Fault) appliesTo(c Call) bool {
	switch f { //nolint:exhaustive // The others can happen to all.
	case Conflict:
		return c.isWrite()
	case WatchClosed:
		return c.isWatch()
	case Unanswered, Hang, Truncated:
		return !c.isWatch()
	default:
		return true
	}
}

// Faults are the faults that a Proxy injects, and how often.
type Faults struct {
	// Kinds of faults, each equally likely.
	Kinds []Fault
	// Rate is the share of calls with a fault.
	Rate float64
	// Spared is how many calls of a program in a row are without a fault at most, so that a program
	// with few calls has its share; 0 is any number.
	Spared int
	// Programs whose calls have faults; all if empty.
	Programs []string
	// Seed of the random source. The n-th call of a program for the same object has the same fault
	// each time, except for faults due to Spared.
	Seed uint64
	// Hang is how long a call hangs.
	Hang time.Duration
}

// Clients retry, so one in stubborn faults happens to the same call up to maxRepeats more times. A
// client that gets Retry-After: 1 gives up after ten retries.
const (
	stubborn   = 3
	maxRepeats = 11
)

// A drawnFault is the fault of one call. The zero value is no fault.
type drawnFault struct {
	Fault

	// carriedOut reports whether a call that hangs was carried out.
	carriedOut bool
	// early is the fraction of the time after which a watch is closed.
	early float64
	// repeats is how often the fault happens again to the same call.
	repeats int
}

// includes reports whether the calls of a program have faults.
func (f *Faults) includes(program string) bool {
	return len(f.Programs) == 0 || slices.Contains(f.Programs, program)
}

// sourceOf returns a random source for the n-th call of its kind, with the same numbers each time.
func (f *Faults) sourceOf(c Call, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, c.Program, c.Verb, c.path, n) // A hash takes all.

	return rand.New(rand.NewPCG(f.Seed, h.Sum64())) //nolint:gosec // It is to be the same each time.
}

// faultOf returns the fault of the n-th call of its kind. spared is how many calls of its program
// in a row had none before it.
func (f *Faults) faultOf(c Call, n, spared int) drawnFault {
	if !f.includes(c.Program) {
		return drawnFault{}
	}
	source := f.sourceOf(c, n)
	if due := f.Spared > 0 && spared >= f.Spared; source.Float64() >= f.Rate && !due {
		return drawnFault{}
	}
	kinds := slices.DeleteFunc(slices.Clone(f.Kinds), func(k Fault) bool { return !k.appliesTo(c) })
	if len(kinds) == 0 {
		return drawnFault{}
	}
	drawn := drawnFault{Fault: kinds[source.IntN(len(kinds))], carriedOut: source.IntN(2) == 0, early: source.Float64()}
	if source.IntN(stubborn) == 0 && drawn.Fault != Hang { // A call that hangs takes long enough.
		drawn.repeats = 1 + source.IntN(maxRepeats)
	}

	return drawn
}

// refuse answers as an API server that does not carry out a call.
func refuse(w http.ResponseWriter, c Call, f Fault) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Message: fmt.Sprintf("fault %s: %s %s", f, c.Verb, c.path),
	}
	switch f { //nolint:exhaustive // The others send no answer.
	case Conflict:
		status.Code, status.Reason = http.StatusConflict, metav1.StatusReasonConflict
	case TooMany:
		status.Code, status.Reason = http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
		w.Header().Set("Retry-After", "1")
	case Unavailable:
		status.Code, status.Reason = http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable
	case Hang:
		status.Code, status.Reason = http.StatusGatewayTimeout, metav1.StatusReasonTimeout
	default:
		status.Code, status.Reason = http.StatusInternalServerError, metav1.StatusReasonInternalError
	}
	b, err := json.Marshal(status)
	if err != nil {
		panic(err) // There is nothing in it that can't be encoded.
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(b) // A client that has closed the connection needs no answer.
}

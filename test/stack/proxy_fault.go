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

// A Fault is what can become of a call on its way.
type Fault string

// What a Proxy does to calls.
const (
	// Reset is a connection that is reset before the API server has the call.
	Reset Fault = "Reset"
	// Unanswered is a connection that is closed after the API server has carried the call out.
	Unanswered Fault = "Unanswered"
	// Conflict is the answer 409 to a write that was not carried out.
	Conflict Fault = "Conflict"
	// TooMany is the answer 429 with a time after which to try again.
	TooMany Fault = "TooMany"
	// Internal is the answer 500.
	Internal Fault = "Internal"
	// Unavailable is the answer 503.
	Unavailable Fault = "Unavailable"
	// Hang is an answer that does not come for a while, and then is 504. Half of the writes have
	// been carried out.
	Hang Fault = "Hang"
	// Truncated is an answer that ends in the middle.
	Truncated Fault = "Truncated"
	// WatchClosed is a watch that ends too early.
	WatchClosed Fault = "WatchClosed"
)

// AllFaults returns all kinds of faults.
func AllFaults() []Fault {
	return []Fault{Reset, Unanswered, Conflict, TooMany, Internal, Unavailable, Hang, Truncated, WatchClosed}
}

// strikes reports whether the fault can happen to a call.
func (f Fault) strikes(c Call) bool {
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

// Faults are those that a Proxy injects.
type Faults struct {
	// Kinds of faults, each as likely as the others.
	Kinds []Fault
	// Rate is the share of calls that one happens to.
	Rate float64
	// Spared is how many calls of a program in a row are spared at most, so that one that makes few
	// has its share; 0 is any number.
	Spared int
	// Programs whose calls they happen to; all if there are none.
	Programs []string
	// Seed of the random source. The n-th call of a program for the same thing has the same fate
	// each time, but for those that Spared strikes.
	Seed uint64
	// Hang is for how long a call hangs.
	Hang time.Duration
}

// Clients try again by themselves, so one in stubborn faults happens to the same call up to
// maxRepeats times more. A client that is told to wait for a second each time gives up after ten.
const (
	stubborn   = 3
	maxRepeats = 11
)

// A fate is what becomes of a call.
type fate struct {
	Fault

	// carriedOut says that a call that hangs has been carried out.
	carriedOut bool
	// early is the part of the time after which a watch can be closed.
	early float64
	// repeats is how often the same happens again to the same call.
	repeats int
}

// concern reports whether the faults happen to the calls of a program.
func (f *Faults) concern(program string) bool {
	return len(f.Programs) == 0 || slices.Contains(f.Programs, program)
}

// sourceOf returns a random source for the n-th call of its kind, which is the same each time.
func (f *Faults) sourceOf(c Call, n int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, c.Program, c.Verb, c.path, n) // A hash takes all.

	return rand.New(rand.NewPCG(f.Seed, h.Sum64())) //nolint:gosec // It is to be the same each time.
}

// fateOf returns what becomes of the n-th call of its kind, before which so many of its program
// were spared in a row; no Fault is none.
func (f *Faults) fateOf(c Call, n, spared int) fate {
	if !f.concern(c.Program) {
		return fate{}
	}
	source := f.sourceOf(c, n)
	if due := f.Spared > 0 && spared >= f.Spared; source.Float64() >= f.Rate && !due {
		return fate{}
	}
	kinds := slices.DeleteFunc(slices.Clone(f.Kinds), func(k Fault) bool { return !k.strikes(c) })
	if len(kinds) == 0 {
		return fate{}
	}
	drawn := fate{Fault: kinds[source.IntN(len(kinds))], carriedOut: source.IntN(2) == 0, early: source.Float64()}
	if source.IntN(stubborn) == 0 && drawn.Fault != Hang { // One that hangs is long enough.
		drawn.repeats = 1 + source.IntN(maxRepeats)
	}

	return drawn
}

// refuse answers as an API server does that does not carry a call out.
func refuse(w http.ResponseWriter, c Call, f Fault) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Message: fmt.Sprintf("fault %s: %s %s", f, c.Verb, c.path),
	}
	switch f { //nolint:exhaustive // The others are no answers.
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
	_, _ = w.Write(b) // A client that has gone away needs no answer.
}

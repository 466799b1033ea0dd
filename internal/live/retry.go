package live

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// requestTimeout is for how long an answer is waited for. The API server ends a request itself
// after a minute, but what is between may not. It waits 30 s for a conversion webhook
// (apiextensions-apiserver pkg/apiserver/conversion), and then names it.
const requestTimeout = 35 * time.Second

// conversionPatience is for how long what can't be converted is asked for again. There is an
// answer, and who has to wait for the webhook does so elsewhere.
const conversionPatience = 5 * time.Second

// apiServerName is what answers, but for a group and version.
const apiServerName = "the API server"

// withRetry does what asks the API server as often as it takes to get an answer, for about as long
// as it takes to restart one. An item that Velero restores has no second chance. It ends when done
// is closed, if that is not nil. Of what did not answer last time no more is expected than one
// failure.
func (c *Cluster) withRetry(done <-chan struct{}, of string, do func() error) error {
	c.asking.Lock()
	pauses, silent := c.pauses, c.silent[of]
	c.asking.Unlock()
	if silent {
		pauses.Steps = 0
	}
	began := time.Now()
	for tries := 1; ; tries++ {
		err := do()
		passing := isPassing(err)
		if xp.IsConversion(err) && (tries >= fewRetries || time.Since(began) > conversionPatience) {
			return err // It says nothing of other kinds.
		}
		if given := (retriesExhaustedError{}); errors.As(err, &given) {
			return err
		}
		if !passing || pauses.Steps == 0 || isClosed(done) || time.Since(began) > requestTimeout {
			c.asking.Lock()
			delete(c.silent, of)
			if passing {
				c.silent[of] = true
			}
			c.asking.Unlock()
			if passing {
				err = retriesExhaustedError{fmt.Errorf("%w; it has failed %s, so try again when %s answers", err, timesText(tries), of)}
			}

			return err
		}
		select {
		case <-done:
		case <-time.After(pauses.Step()):
		}
	}
}

func timesText(n int) string {
	if n == 1 {
		return "once"
	}

	return fmt.Sprintf("%d times", n)
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// fewRetries is how often more that is tried which is not worth to wait for.
const fewRetries = 3

// withFewRetries does what asks the API server a few times if need be. It is for what is done at
// the next poll otherwise, or is not worth to wait for.
func (c *Cluster) withFewRetries(do func() error) error {
	pauses := c.pauses
	pauses.Steps = min(pauses.Steps, fewRetries)
	began := time.Now()

	// One that hangs was waited for long enough.
	isWorthwhile := func(err error) bool {
		return isPassing(err) && !isTimeout(err) && (!xp.IsConversion(err) || time.Since(began) <= conversionPatience)
	}

	return retry.OnError(pauses, isWorthwhile, do) //nolint:wrapcheck // It is what was done's.
}

// isTimeout reports whether an answer was waited for in vain.
func isTimeout(err error) bool {
	slow := net.Error(nil)

	return errors.As(err, &slow) && slow.Timeout()
}

// A retriesExhaustedError is one that was tried again often enough.
type retriesExhaustedError struct{ error }

func (e retriesExhaustedError) Unwrap() error { return e.error }

// isPassing tells an error that may be gone next time from an answer.
func isPassing(err error) bool {
	if given := (retriesExhaustedError{}); err == nil || errors.As(err, &given) {
		return false
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code

		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	if untrusted := (*tls.CertificateVerificationError)(nil); errors.As(err, &untrusted) {
		return false
	}
	broken := net.Error(nil)

	return errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// pausesBetween are those between tries: 16 s in all.
func pausesBetween() wait.Backoff {
	return wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Steps: 6}
}

// isNoOp reports whether a merge patch would change nothing of what it is applied to.
func isNoOp(patch, object map[string]any) bool {
	for key, want := range patch {
		have, there := object[key]
		switch want := want.(type) {
		case nil:
			if there {
				return false
			}
		case map[string]any:
			// What is not there is what removes nothing from it.
			if in, ok := have.(map[string]any); there && !ok || !isNoOp(want, in) {
				return false
			}
		default:
			if !reflect.DeepEqual(want, have) {
				return false
			}
		}
	}

	return true
}

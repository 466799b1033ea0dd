package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// requestTimeout limits one request. The API server ends a request after a minute, but a proxy may
// not. It waits 30 s for a conversion webhook (apiextensions-apiserver pkg/apiserver/conversion),
// and then names it.
const requestTimeout = 35 * time.Second

// conversionTimeout is for how long a failed conversion is retried. Other code waits for the
// webhook.
const conversionTimeout = 5 * time.Second

// apiServerName is the server of all requests but those for a group and version.
const apiServerName = "the API server"

// withRetry calls do until it gets an answer, for about as long as a restart of the API server
// takes. Velero does not retry an item. It ends when done is closed, if done is not nil. It does
// not retry if the server named of did not answer last time.
func (c *Cluster) withRetry(done <-chan struct{}, of string, do func() error) error {
	c.silentMu.Lock()
	pauses, silent := c.backoff, c.silent[of]
	c.silentMu.Unlock()
	if silent {
		pauses.Steps = 0
	}
	began := time.Now()
	for tries := 1; ; tries++ {
		err := do()
		transient := isTransient(err)
		if xp.IsConversion(err) && (tries >= fewRetries || time.Since(began) > conversionTimeout) {
			return err // It has no meaning for other kinds.
		}
		if given := (retriesExhaustedError{}); errors.As(err, &given) {
			return err
		}
		if !transient || pauses.Steps == 0 || isClosed(done) || time.Since(began) > requestTimeout {
			c.silentMu.Lock()
			delete(c.silent, of)
			if transient {
				c.silent[of] = true
			}
			c.silentMu.Unlock()
			if transient {
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

// fewRetries is the number of retries for a request that is not worth waiting for.
const fewRetries = 3

// RetryForever returns a function that calls do as withRetry does, and so outlasts a restart of the
// API server.
func (c *Cluster) RetryForever(ctx context.Context) func(func() error) error {
	return func(do func() error) error { return c.withRetry(ctx.Done(), apiServerName, do) }
}

// WithFewRetries calls do with a few retries. It is for requests that may fail.
func (c *Cluster) WithFewRetries(do func() error) error {
	pauses := c.backoff
	pauses.Steps = min(pauses.Steps, fewRetries)
	began := time.Now()

	// After a timeout another try would take as long again.
	isWorthwhile := func(err error) bool {
		return isTransient(err) && !isTimeout(err) && (!xp.IsConversion(err) || time.Since(began) <= conversionTimeout)
	}

	return retry.OnError(pauses, isWorthwhile, do) //nolint:wrapcheck // The error is that of do.
}

// isTimeout reports whether a request timed out.
func isTimeout(err error) bool {
	slow := net.Error(nil)

	return errors.As(err, &slow) && slow.Timeout()
}

// IsUnreadable reports whether a kind can't be read: the answer is a 403 or a 5xx, or is missing.
func IsUnreadable(ctx context.Context, err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return isTimeout(err) && ctx.Err() == nil
	}
	code := status.Status().Code

	return code == http.StatusForbidden || code >= http.StatusInternalServerError
}

// A retriesExhaustedError wraps the last error of a request that is not to be retried.
type retriesExhaustedError struct{ error }

func (e retriesExhaustedError) Unwrap() error { return e.error }

// isTransient reports whether an error may disappear with a retry.
func isTransient(err error) bool {
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

// isNoOp reports whether a merge patch would not change the object.
func isNoOp(patch, object map[string]any) bool {
	for key, want := range patch {
		have, there := object[key]
		switch want := want.(type) {
		case nil:
			if there {
				return false
			}
		case map[string]any:
			// Only a patch that removes fields changes nothing of an absent map.
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

package stack

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An upstream is the API server behind a Proxy. It counts the calls that it has carried out. Its
// watches last until they are ended.
type upstream struct {
	*httptest.Server

	carriedOut atomic.Int64
	// user is the user of the last call.
	user atomic.Value
	next chan string
}

const whole = `{"kind":"Bucket","metadata":{"name":"logs"}}`

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{next: make(chan string)}
	u.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.carriedOut.Add(1)
		u.user.Store(r.Header.Get("Authorization"))
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, whole)

			return
		}
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case event := <-u.next:
				_, _ = io.WriteString(w, event+"\n")
			}
		}
	}))
	t.Cleanup(u.Close)

	return u
}

// through returns a Proxy of the upstream, and a client of it that opens a connection for each
// call.
func through(t *testing.T, u *upstream) (*Proxy, *httptest.Server, *http.Client) {
	t.Helper()
	target, err := url.Parse(u.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(target, u.Client().Transport.(*http.Transport).TLSClientConfig) //nolint:forcetypeassert // httptest makes one.
	s := httptest.NewTLSServer(p)
	t.Cleanup(s.Close)
	client := s.Client()
	client.Transport.(*http.Transport).DisableKeepAlives = true //nolint:forcetypeassert // As above.

	return p, s, client
}

func TestProxy(t *testing.T) {
	type want struct {
		carriedOut int64
		code       int
		retryAfter string
		reason     metav1.StatusReason
		body       string
		err        error
	}
	cases := map[string]struct {
		reason string
		fault  Fault
		method string
		want   want
	}{
		"None": {
			reason: "Without faults the proxy must pass calls and answers on.", method: http.MethodPatch,
			want: want{carriedOut: 1, code: http.StatusOK, body: whole},
		},
		"Reset": {
			reason: "The call never reaches the API server.", fault: Reset, method: http.MethodPatch, want: want{err: syscall.ECONNRESET},
		},
		"Unanswered": {
			reason: "The API server carries out the call, but the client gets no answer.", fault: Unanswered, method: http.MethodPatch,
			want: want{carriedOut: 1, err: io.EOF},
		},
		"Conflict": {
			reason: "A write can be in conflict.", fault: Conflict, method: http.MethodPatch, want: want{code: http.StatusConflict, reason: metav1.StatusReasonConflict},
		},
		"ConflictOfRead": {
			reason: "A read can't be in conflict.", fault: Conflict, method: http.MethodGet, want: want{carriedOut: 1, code: http.StatusOK, body: whole},
		},
		"TooMany": {
			reason: "The answer must have the time of the next try.", fault: TooMany, method: http.MethodGet,
			want: want{code: http.StatusTooManyRequests, retryAfter: "1", reason: metav1.StatusReasonTooManyRequests},
		},
		"Truncated": {
			reason: "The connection ends before the announced length.", fault: Truncated, method: http.MethodGet,
			want: want{carriedOut: 1, code: http.StatusOK, body: whole[:len(whole)/2], err: io.ErrUnexpectedEOF},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := newUpstream(t)
			p, s, client := through(t, u)
			if tc.fault != "" {
				p.Set(&Faults{Kinds: []Fault{tc.fault}, Rate: 1})
			}
			var got want
			code, header, body, err := do(t, client, tc.method, s.URL+"/apis/cloud.example.org/v1/buckets/logs")
			got.carriedOut, got.code, got.retryAfter, got.body = u.carriedOut.Load(), code, header.Get("Retry-After"), body
			var status metav1.Status
			if code >= http.StatusBadRequest && json.Unmarshal([]byte(body), &status) == nil {
				got.reason, got.body = status.Reason, ""
			}
			if !errors.Is(err, tc.want.err) {
				t.Errorf("%s got the error %v, want %v", tc.reason, err, tc.want.err)
			}
			tc.want.err = nil
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if tc.want.carriedOut > 0 && u.user.Load() != "Bearer mine" {
				t.Errorf("the API server got the credentials %q", u.user.Load())
			}
		})
	}
}

func do(t *testing.T, client *http.Client, method, address string) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer mine")
	req.Header.Set("User-Agent", "velero-server/v1.18 (linux/amd64)")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)

	return resp.StatusCode, resp.Header, string(b), err
}

// A client with a longer timeout than the fault gets a 504. A client with a shorter one gets no
// answer.
func TestProxyHangs(t *testing.T) {
	u := newUpstream(t)
	p, s, client := through(t, u)
	p.Set(&Faults{Kinds: []Fault{Hang}, Rate: 1, Hang: time.Millisecond})
	const tries = 20
	for i := range tries {
		code, _, _, err := do(t, client, http.MethodPatch, fmt.Sprintf("%s/api/v1/namespaces/a/configmaps/c%d", s.URL, i))
		if err != nil || code != http.StatusGatewayTimeout {
			t.Fatalf("a call that hung for a moment must time out: %d, %v", code, err)
		}
	}
	if done := u.carriedOut.Load(); done == 0 || done == tries {
		t.Errorf("%d of %d calls that hung were carried out, want some", done, tries)
	}

	p.Set(&Faults{Kinds: []Fault{Hang}, Rate: 1, Hang: time.Hour})
	client.Timeout = 50 * time.Millisecond
	if _, _, _, err := do(t, client, http.MethodGet, s.URL+"/api/v1/configmaps"); !os.IsTimeout(err) {
		t.Errorf("a call that hangs must reach its client's timeout: %v", err)
	}
}

// A watch streams, and one that is closed too early ends in the middle.
func TestProxyWatch(t *testing.T) {
	u := newUpstream(t)
	p, s, client := through(t, u)
	watch := func(ctx context.Context) *bufio.Reader {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/configmaps?watch=true", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })

		return bufio.NewReader(resp.Body)
	}
	events := watch(t.Context())
	for _, want := range []string{"first", "second"} {
		u.next <- want
		if line, err := events.ReadString('\n'); line != want+"\n" {
			t.Fatalf("the watch sent %q, want %q: %v", line, want, err)
		}
	}
	p.Set(&Faults{Kinds: []Fault{WatchClosed}, Rate: 1, Programs: []string{"another"}})
	u.next <- "third"
	if line, err := events.ReadString('\n'); line != "third\n" {
		t.Errorf("the watch of another program must stay open: %q, %v", line, err)
	}
	p.Set(&Faults{Kinds: []Fault{WatchClosed}, Rate: 1})
	if line, err := events.ReadString('\n'); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("the running watch must be closed: %q, %v", line, err)
	}
	events = watch(t.Context())
	if line, err := events.ReadString('\n'); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		t.Errorf("a new watch must be closed: %q, %v", line, err)
	}
}

// Injected faults are counted by fault, program, verb and resource. The same seed has the same
// effect, whatever other calls there are.
func TestProxyCounts(t *testing.T) {
	fates := func(seed uint64, programs []string, others bool) (string, map[Injection]int) {
		p := newProxy(&url.URL{}, &tls.Config{})
		p.Set(&Faults{Kinds: []Fault{Internal, Unavailable}, Rate: 0.5, Seed: seed, Programs: programs})
		var all strings.Builder
		for i := range 50 {
			if others {
				p.draw(callTo(t, http.MethodGet, "/api/v1/secrets", "crossplane"))
			}
			drawn, _ := p.draw(callTo(t, http.MethodPatch, fmt.Sprintf("/apis/a.org/v1/namespaces/n/xs/x%d/status", i%5), plugin))
			_, _ = fmt.Fprintln(&all, drawn.Fault)
		}

		return all.String(), p.Stop()
	}
	first, injected := fates(1, nil, false)
	if again, _ := fates(1, nil, true); again != first {
		t.Error("calls of another program must not change the faults of a seed")
	}
	if other, _ := fates(2, nil, false); other == first {
		t.Error("another seed must fail other calls")
	}
	if none, counted := fates(1, []string{"velero-server"}, false); strings.TrimSpace(none) != "" || len(counted) > 0 {
		t.Errorf("calls of other programs must not fail: %v", counted)
	}
	for _, fault := range []Fault{Internal, Unavailable} {
		i := Injection{fault, Call{Program: plugin, Verb: "patch", Resource: "xs.a.org/status"}}
		if n := strings.Count(first, string(fault)+"\n"); n == 0 || injected[i] != n {
			t.Errorf("%s happened %d times, but the count is %v", fault, n, injected)
		}
	}
}

const plugin = "velero-plugin-for-crossplane"

func callTo(t *testing.T, method, path, agent string) Call {
	t.Helper()
	r := httptest.NewRequest(method, path, http.NoBody) //nolint:noctx // It is not sent.
	r.Header.Set("User-Agent", agent)

	return callOf(r)
}

func TestCallOf(t *testing.T) {
	cases := map[string]struct {
		reason, method, path string
		want                 Call
	}{
		"ListIn":    {reason: "A path with a namespace lists its objects.", path: "/api/v1/namespaces/n/secrets?limit=500", want: Call{Verb: "list", Resource: "secrets"}},
		"Watch":     {reason: "A watch is a GET with a parameter.", path: "/apis/a.org/v1/xs?watch=true", want: Call{Verb: "watch", Resource: "xs.a.org"}},
		"Get":       {reason: "A path with a name gets one object.", path: "/apis/a.org/v1/namespaces/n/xs/x", want: Call{Verb: "get", Resource: "xs.a.org"}},
		"Namespace": {reason: "A namespace is an object too.", path: "/api/v1/namespaces/n", want: Call{Verb: "get", Resource: "namespaces"}},
		"Finalize":  {reason: "A namespace has subresources too.", method: http.MethodPut, path: "/api/v1/namespaces/n/finalize", want: Call{Verb: "update", Resource: "namespaces/finalize"}},
		"Kinds":     {reason: "The path of a group version lists its kinds.", path: "/apis/a.org/v1", want: Call{Verb: "get", Resource: "discovery"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			got := callTo(t, tc.method, tc.path, "velero-server/v1.18.3 (linux/amd64) abc")
			tc.want.Program = "velero-server"
			got.path = ""
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Call{})); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

package stack

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// How long a watch that is closed too early lasts.
const (
	shortestWatch = 100 * time.Millisecond
	longestWatch  = 5 * time.Second
)

// An Injection is a fault and the call that had it.
type Injection struct {
	Fault
	Call
}

// A Proxy stands between an API server and its clients and injects the Faults that Set gives it.
// The clients keep their identity. It speaks HTTP/1.1 with them, so that a fault of a connection
// affects one call only.
type Proxy struct {
	kubeconfig string
	server     *http.Server
	next       *httputil.ReverseProxy

	mu       sync.Mutex
	faults   *Faults
	calls    map[Call]int
	spared   map[string]int
	repeated map[Call]drawnFault
	injected map[Injection]int
	watches  map[*openWatch]struct{}
}

// An openWatch is one that is under way.
type openWatch struct {
	Call

	cancel context.CancelFunc
}

// newProxy returns a Proxy of an API server. client is the TLS configuration of its connections to
// it.
func newProxy(target *url.URL, client *tls.Config) *Proxy {
	transport := &http.Transport{
		TLSClientConfig: client, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100, DisableCompression: true, // Compressed bodies are passed on as they are.
	}
	p := &Proxy{watches: map[*openWatch]struct{}{}, next: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // A watch must not wait.
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // An API server that is down has no answer.
	}}
	p.Set(nil)

	return p
}

// Proxy starts a Proxy in front of the cluster's API server. Destroy closes it.
func (c *Cluster) Proxy(ctx context.Context) (*Proxy, error) {
	target, err := url.Parse(c.config.Host)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address of the API server: %w", err)
	}
	config, err := clientcmd.LoadFromFile(c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of cluster %s: %w", c.options.Name, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback(0))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the proxy of cluster %s: %w", c.options.Name, err)
	}
	p := newProxy(target, &tls.Config{RootCAs: c.pki.tls.RootCAs, MinVersion: tls.VersionTLS12})
	p.kubeconfig = filepath.Join(c.dir, "kubeconfig-proxy")
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + listener.Addr().String()
	}
	if err := clientcmd.WriteToFile(*config, p.kubeconfig); err != nil {
		_ = listener.Close()

		return nil, fmt.Errorf("cannot write the kubeconfig of the proxy of cluster %s: %w", c.options.Name, err)
	}
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: p.next.ErrorLog,
		TLSConfig:    &tls.Config{Certificates: c.pki.tls.Certificates, MinVersion: tls.VersionTLS12},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}, // No HTTP/2.
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // It ends when it is closed.
	c.host.mu.Lock()
	c.proxies = append(c.proxies, p)
	c.host.mu.Unlock()

	return p, nil
}

// Divert restarts components of the cluster so that they, and the processes that they start, use
// the API server through the Proxy.
func (c *Cluster) Divert(ctx context.Context, p *Proxy, names ...string) error {
	var diversions []func() error
	for _, name := range names {
		m, err := c.find(name)
		if err != nil {
			return err
		}
		diversions = append(diversions, func() error {
			if err := m.stop(); err != nil {
				return err
			}
			m.replace(c.kubeconfig, p.kubeconfig)

			return c.Start(ctx, name)
		})
	}

	return parallel(diversions...)
}

// replace replaces a path where it is the whole value of a flag or variable.
func (c *component) replace(path, by string) {
	for _, list := range [][]string{c.args, c.env} {
		for i, s := range list {
			if name, value, ok := strings.Cut(s, "="); ok && value == path {
				list[i] = name + "=" + by
			}
		}
	}
}

// Kubeconfig returns the path of a kubeconfig file of the user with all permissions, through the
// Proxy.
func (p *Proxy) Kubeconfig() string { return p.kubeconfig }

// Set makes the Proxy inject faults, or none for nil, and resets its counts. Watches last for
// hours, so if they can be closed too early, Set closes those that are open.
func (p *Proxy) Set(f *Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.calls, p.spared, p.repeated, p.injected = f, map[Call]int{}, map[string]int{}, map[Call]drawnFault{}, map[Injection]int{}
	if f == nil || !slices.Contains(f.Kinds, WatchClosed) {
		return
	}
	for o := range p.watches {
		if f.includes(o.Program) {
			time.AfterFunc(untilClosed(f.sourceOf(o.Call, 0).Float64()), o.cancel)
			p.count(WatchClosed, o.Call)
		}
	}
}

// count counts a fault of a call. Calls for different objects of a kind count as one.
func (p *Proxy) count(f Fault, c Call) {
	c.path = ""
	p.injected[Injection{f, c}]++
}

// untilClosed returns how long a watch stays open. early is a fraction between the limits.
func untilClosed(early float64) time.Duration {
	return shortestWatch + time.Duration(early*float64(longestWatch-shortestWatch))
}

// Stop makes the Proxy inject no more faults, and returns how often it has injected each. Calls for
// different objects of a kind count as one.
func (p *Proxy) Stop() map[Injection]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil

	return maps.Clone(p.injected)
}

func (p *Proxy) close() error {
	if err := p.server.Close(); err != nil {
		return fmt.Errorf("cannot close the proxy: %w", err)
	}

	return nil
}

// draw returns the fault of a call, and how long the call hangs.
func (p *Proxy) draw(c Call) (drawnFault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults == nil {
		return drawnFault{}, 0
	}
	drawn := p.repeated[c]
	if drawn.repeats > 0 {
		drawn.repeats--
	} else {
		p.calls[c]++
		drawn = p.faults.faultOf(c, p.calls[c], p.spared[c.Program])
	}
	p.repeated[c] = drawn
	p.spared[c.Program]++
	if drawn.Fault != "" {
		p.spared[c.Program] = 0
		p.count(drawn.Fault, c)
	}

	return drawn, p.faults.Hang
}

// ServeHTTP passes a call on, or injects a fault.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := callOf(r)
	drawn, hang := p.draw(call)
	switch drawn.Fault {
	case "":
		p.pass(w, r, call)
	case Reset:
		cut(w, true)
	case Unanswered:
		p.next.ServeHTTP(newAnswer(), r)
		cut(w, false)
	case Hang:
		if drawn.carriedOut {
			p.next.ServeHTTP(newAnswer(), r)
		}
		_, _ = io.Copy(io.Discard, r.Body) // The server notices a client's closed connection only after it has read the whole body.
		select {
		case <-r.Context().Done():
		case <-time.After(hang):
		}
		refuse(w, call, Hang)
	case Truncated:
		a := newAnswer()
		p.next.ServeHTTP(a, r)
		a.truncate(w)
	case WatchClosed:
		ctx, cancel := context.WithTimeout(r.Context(), untilClosed(drawn.early))
		defer cancel()
		p.next.ServeHTTP(w, r.WithContext(ctx))
	case Conflict, TooMany, Internal, Unavailable:
		refuse(w, call, drawn.Fault)
	}
}

// pass passes a call on. A watch can be closed later.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, call Call) {
	if call.isWatch() {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		o := &openWatch{Call: call, cancel: cancel}
		p.mu.Lock()
		p.watches[o] = struct{}{}
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.watches, o)
		}()
		r = r.WithContext(ctx)
	}
	p.next.ServeHTTP(w, r)
}

// cut ends the connection of a call without an answer: with a reset, or by closing it.
func cut(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // The server closes it.
	}
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn() // TLS would send a close_notify alert.
	}
	if plain, ok := raw.(*net.TCPConn); ok && reset {
		_ = plain.SetLinger(0) // It is closed either way.
	}
	_ = raw.Close() // The connection is broken either way.
}

// An answer is an http.ResponseWriter that keeps the response.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}, code: http.StatusOK} }

// Header returns the response's header.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the status.
func (a *answer) WriteHeader(code int) { a.code = code }

// Write keeps a part of the body.
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) } //nolint:wrapcheck // It never fails.

// truncate sends half of the answer.
func (a *answer) truncate(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("Content-Length", strconv.Itoa(a.body.Len()))
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes()[:a.body.Len()/2])
	_ = http.NewResponseController(w).Flush() // The connection is cut next either way.
	panic(http.ErrAbortHandler)
}

//go:build browser

package printer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// timeout limits each action of the browser. It is long for a busy machine.
const timeout = 2 * time.Minute

// A browser is a headless Chromium with one page, controlled over a pipe (Chrome DevTools
// Protocol).
type browser struct {
	t        testing.TB
	to, from *os.File
	answers  *bufio.Reader
	last     int
	session  string
	// console are the page's console messages, including policy violations. requests are the URLs
	// that it requested.
	console, requests []string
	loaded            bool
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// newBrowser starts a browser without network or DNS.
func newBrowser(tb testing.TB) *browser {
	tb.Helper()
	program := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		found, _ := exec.LookPath(name)
		program = cmp.Or(program, found)
	}
	if program == "" {
		tb.Fatal(`there is no Chromium: install it (as root "make browser", or your distribution's package), or name its program in CHROMIUM`)
	}
	read, to, err := os.Pipe()
	must(tb, err)
	from, write, err := os.Pipe()
	must(tb, err)
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, //nolint:gosec // The user names the browser.
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir="+tb.TempDir(), "--remote-debugging-pipe", "about:blank")
	c.Env = append(os.Environ(), "HOME="+tb.TempDir())
	c.ExtraFiles = []*os.File{read, write}
	must(tb, c.Start())
	must(tb, errors.Join(read.Close(), write.Close()))
	b := &browser{t: tb, to: to, from: from, answers: bufio.NewReader(from)}
	tb.Cleanup(func() {
		b.session = ""
		_ = b.send("Browser.close", nil) // It may have ended.
		_, _ = io.Copy(io.Discard, b.from)
		cancel()
		_ = c.Wait() // A browser that does not end is killed.
		_ = errors.Join(to.Close(), from.Close())
	})
	var target struct {
		TargetID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Log", "Runtime", "Network"} {
		b.call(domain+".enable", nil, nil)
	}

	return b
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// send sends a message. The browser has to answer within the timeout.
func (b *browser) send(method string, params any) error {
	b.last++
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		raw = nil
	}
	raw, err = json.Marshal(message{ID: b.last, Method: method, Params: raw, Session: b.session})
	if err != nil {
		return err
	}
	_, err = b.to.Write(append(raw, 0))

	return errors.Join(err, b.from.SetReadDeadline(time.Now().Add(timeout)))
}

func (b *browser) call(method string, params, result any) {
	b.t.Helper()
	must(b.t, b.send(method, params))
	for {
		m := b.receive(method)
		if m.ID != b.last {
			continue
		}
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error)
		}
		if result != nil {
			must(b.t, json.Unmarshal(m.Result, result))
		}

		return
	}
}

// receive reads a message, and keeps what tests check.
func (b *browser) receive(what string) (m message) {
	b.t.Helper()
	raw, err := b.answers.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("the browser sent no answer: %s: %v", what, err)
	}
	must(b.t, json.Unmarshal(bytes.TrimSuffix(raw, []byte{0}), &m))
	switch m.Method {
	case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		b.console = append(b.console, string(m.Params))
	case "Page.loadEventFired":
		b.loaded = true
	case "Network.requestWillBeSent":
		var p struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		must(b.t, json.Unmarshal(m.Params, &p))
		b.requests = append(b.requests, p.Request.URL)
	}

	return m
}

func (b *browser) open(page, fragment string, width int, dark bool) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "report.html")
	must(b.t, os.WriteFile(file, []byte(page), 0o644))
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
	b.console, b.requests, b.loaded = nil, nil, false
	b.call("Page.navigate", map[string]any{"url": "file://" + file + fragment}, nil)
	for !b.loaded {
		b.receive("the page")
	}
}

func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	var answer struct {
		Result struct {
			Value T `json:"value"`
		} `json:"result"`
		Exception json.RawMessage `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.Exception != nil {
		b.t.Fatalf("%s: %s", expression, answer.Exception)
	}

	return answer.Result.Value
}

// screenshot writes an image of the whole page, which go test -artifacts keeps.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	var shot struct {
		Data []byte `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	file := filepath.Join(b.t.ArtifactDir(), name+".png")
	must(b.t, os.WriteFile(file, shot.Data, 0o644))
	if len(shot.Data) < 5000 {
		b.t.Errorf("%s is an empty picture", file)
	}
}

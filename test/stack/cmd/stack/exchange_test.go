package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The owner of the stack, here this test, gets the path of the plugin, and its error comes back.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	if err := exchange(t.Context(), dir, "s", ""); err == nil || !strings.Contains(err.Error(), "stack s is not up") {
		t.Errorf("without a stack: %v", err)
	}
	l, err := own(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	plugin, text := filepath.Join(dir, "mine"), filepath.Join(dir, "text")
	if err := errors.Join(os.WriteFile(text, nil, 0o600), os.WriteFile(plugin, nil, 0o700)); err != nil { //nolint:gosec // It is executable.
		t.Fatal(err)
	}
	if _, err := own(t.Context(), dir); !errors.Is(err, errRunning) {
		t.Errorf("a second owner: %v", err)
	}
	requests, used := accept(l, func() {}), ""
	if err := exchange(t.Context(), dir, "s", text); err == nil || !strings.Contains(err.Error(), "not an executable file") {
		t.Errorf("a file that Velero can't run: %v", err)
	}
	for file, want := range map[string]error{plugin: nil, os.Args[0]: errors.New("it does not start")} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			(<-requests).do(func(path string) error { used = path; return want })
		}()
		err := exchange(t.Context(), dir, "s", file)
		<-done
		if (err == nil) != (want == nil) || err != nil && !strings.Contains(err.Error(), want.Error()) || used != file {
			t.Errorf("%s: used %q, error %v, want %v", file, used, err, want)
		}
	}
}

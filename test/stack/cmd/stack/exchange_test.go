package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The owner of the stack, here this test, gets the path of the plugin, and its error comes back.
func TestExchange(t *testing.T) {
	for want, use := range map[string]error{"": nil, "it does not start": errors.New("it does not start")} {
		t.Run("error "+want, func(t *testing.T) {
			dir := t.TempDir()
			release, err := own(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			plugin := filepath.Join(dir, "mine")
			if err := errors.Join(os.WriteFile(summaryFile(dir), nil, 0o600), os.WriteFile(plugin, nil, 0o700)); err != nil { //nolint:gosec // It is executable.
				t.Fatal(err)
			}
			asked := make(chan os.Signal, 1)
			signal.Notify(asked, exchangeSignal)
			defer signal.Stop(asked)
			used := make(chan string, 1)
			go func() {
				<-asked
				if err := answer(dir, func(path string) error { used <- path; return use }); err != nil {
					t.Error(err)
				}
			}()
			err = exchange(t.Context(), dir, "s", plugin)
			if got := <-used; got != plugin || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("used %q, error %v, want %q", got, err, want)
			}
		})
	}
}

func TestExchangeRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := exchange(t.Context(), dir, "s", ""); err == nil || !strings.Contains(err.Error(), "stack s is not up") {
		t.Errorf("without a stack: %v", err)
	}
	file := filepath.Join(dir, "text")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := executable(file); err == nil {
		t.Error("a file that Velero can't run must be refused")
	}
	if _, err := executable(filepath.Join(dir, strconv.Itoa(os.Getpid()))); err == nil {
		t.Error("a missing file must be refused")
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		if _, err := executable(sh); err != nil {
			t.Error(err)
		}
	}
}

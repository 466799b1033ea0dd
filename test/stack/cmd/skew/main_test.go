//go:build linux && amd64

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// tellTime makes the test print its time and end.
const tellTime = "SKEW_TELL_TIME"

func TestMain(m *testing.M) {
	if os.Getenv(tellTime) != "" {
		began := time.Now()
		<-time.After(time.Millisecond)
		fmt.Println(began.Unix(), time.Since(began) < time.Second)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func TestStart(t *testing.T) {
	for _, offset := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env, cmd.Stdout = append(os.Environ(), tellTime+"=1"), &out
		if err := start(cmd, offset); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // It exits with 3.
		var seconds int64
		var steady bool
		if _, err := fmt.Sscan(out.String(), &seconds, &steady); err != nil || cmd.ProcessState.ExitCode() != 3 {
			t.Fatalf("%q, %v, %v", out.String(), err, cmd.ProcessState)
		}
		if off := time.Unix(seconds, 0).Sub(time.Now().Add(offset)); off.Abs() > time.Minute || !steady {
			t.Errorf("the clock is off by %s, and durations are right: %t", off, steady)
		}
	}
}

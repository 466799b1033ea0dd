package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

const (
	// atSysinfoEHDR is the key of the address of the mapped code in the auxiliary vector
	// (getauxval(3)).
	atSysinfoEHDR = 33
	// mapped is the size of that code, two pages.
	mapped = 8192
	// clockGettime is the function with which Go reads the time (runtime/vdso_linux_amd64.go).
	clockGettime = "__vdso_clock_gettime"
)

// start starts the command with the offset. The kernel kills it when this process dies.
func start(cmd *exec.Cmd, offset time.Duration) error {
	runtime.LockOSThread() // Only the thread that has started a process may change it, and the process dies with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // It may have ended.
		}
	}()
	pid := cmd.Process.Pid
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil { // It stops at its first instruction.
		return fmt.Errorf("cannot wait for %s: %w", cmd.Path, err)
	}
	if err := shift(pid, offset); err != nil {
		return errors.Join(err, cmd.Process.Kill())
	}
	if err := syscall.PtraceDetach(pid); err != nil {
		return fmt.Errorf("cannot continue %s: %w", cmd.Path, err)
	}

	return nil
}

// shift replaces the function with which a stopped process reads the time.
func shift(pid int, offset time.Duration) error {
	base, err := mappedCode(pid)
	if err != nil {
		return err
	}
	image := make([]byte, mapped)
	if _, err := syscall.PtracePeekData(pid, uintptr(base), image); err != nil {
		return fmt.Errorf("cannot read the kernel's code: %w", err)
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return fmt.Errorf("cannot read the kernel's code: %w", err)
	}
	functions, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("cannot find the kernel's functions: %w", err)
	}
	for _, s := range functions {
		if s.Name == clockGettime {
			if _, err := syscall.PtracePokeData(pid, uintptr(base+s.Value), codeOf(offset)); err != nil {
				return fmt.Errorf("cannot replace the kernel's code: %w", err)
			}

			return nil
		}
	}

	return errors.New("the kernel has no " + clockGettime)
}

// mappedCode returns where the kernel has mapped its code.
func mappedCode(pid int) (uint64, error) {
	vector, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, fmt.Errorf("cannot read the auxiliary vector: %w", err)
	}
	for ; len(vector) >= 16; vector = vector[16:] {
		if binary.LittleEndian.Uint64(vector) == atSysinfoEHDR {
			return binary.LittleEndian.Uint64(vector[8:]), nil
		}
	}

	return 0, errors.New("the kernel has mapped no code")
}

// codeOf returns a function that makes the system call clock_gettime and, for CLOCK_REALTIME, adds
// the offset to the seconds.
func codeOf(offset time.Duration) []byte {
	code := []byte{
		0xb8, 228, 0, 0, 0, // mov eax, 228
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi
		0x75, 7, // jne ret
		0x48, 0x81, 0x06, // add qword [rsi], offset
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(int32(offset/time.Second))) //nolint:gosec // It is the two's complement that is wanted.

	return append(code, 0xc3) // ret
}

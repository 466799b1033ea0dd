// Package ledger keeps measurements, so that a stopped benchmark continues where it was.
package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// A Ledger is a directory with a file for each measurement.
type Ledger struct {
	dir string
	now func() time.Time
}

// An entry is a stored measurement.
type entry struct {
	// Of identifies the measured thing. A measurement of another thing does not count.
	Of string `json:"of"`
	// At is the time of the measurement, and Took how long it took.
	At     time.Time       `json:"at"`
	Took   string          `json:"took"`
	Result json.RawMessage `json:"result"`
}

// Open opens the ledger in a directory, and creates the directory if it is missing.
func Open(dir string) (*Ledger, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the directory of the ledger: %w", err)
	}

	return &Ledger{dir: dir, now: time.Now}, nil
}

// Has reports whether there is a measurement with that name of that thing.
func (l *Ledger) Has(name, of string) bool {
	_, ok, err := l.read(name, of)

	return ok && err == nil
}

// Entry returns the stored measurement with that name of that thing. If there is none, it measures
// and stores the result as JSON.
func Entry[T any](l *Ledger, name, of string, measure func() (T, error)) (T, error) {
	var result T
	kept, ok, err := l.read(name, of)
	if err != nil {
		return result, err
	}
	if ok {
		if err := json.Unmarshal(kept.Result, &result); err != nil {
			return result, fmt.Errorf("cannot read measurement %s, remove %s: %w", name, l.path(name), err)
		}

		return result, nil
	}
	began := l.now()
	if result, err = measure(); err != nil {
		return result, err
	}
	b, err := json.Marshal(result)
	if err != nil {
		return result, fmt.Errorf("cannot encode measurement %s: %w", name, err)
	}

	return result, l.write(name, entry{Of: of, At: began.UTC().Round(time.Second), Took: l.now().Sub(began).Round(time.Second).String(), Result: b})
}

// Last returns the last measurement with that name of any thing, and the thing. ok is false if
// there is none.
func Last[T any](l *Ledger, name string) (result T, of string, ok bool, err error) {
	kept, _, err := l.read(name, "")
	if err != nil || kept.Of == "" {
		return result, "", false, err
	}
	if err := json.Unmarshal(kept.Result, &result); err != nil {
		return result, "", false, fmt.Errorf("cannot read measurement %s, remove %s: %w", name, l.path(name), err)
	}

	return result, kept.Of, true, nil
}

// Drop removes the measurement with that name, if there is one.
func (l *Ledger) Drop(name string) error {
	if err := os.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot drop measurement %s: %w", name, err)
	}

	return nil
}

func (l *Ledger) path(name string) string { return filepath.Join(l.dir, name+".json") }

func (l *Ledger) read(name, of string) (e entry, ok bool, err error) {
	b, err := os.ReadFile(l.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return e, false, nil
	}
	if err != nil {
		return e, false, fmt.Errorf("cannot read measurement %s: %w", name, err)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, false, fmt.Errorf("cannot read measurement %s, remove %s: %w", name, l.path(name), err)
	}

	return e, e.Of == of, nil
}

// write writes an entry atomically.
func (l *Ledger) write(name string, e entry) error {
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode measurement %s: %w", name, err)
	}
	part := l.path(name) + ".part"
	if err := errors.Join(os.WriteFile(part, append(b, '\n'), 0o644), os.Rename(part, l.path(name))); err != nil {
		return fmt.Errorf("cannot keep measurement %s: %w", name, err)
	}

	return nil
}

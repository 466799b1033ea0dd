package forest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
)

// A Record is the log of a backup or restore, and its results.
type Record struct {
	lines []string
	// drop is a defect: it drops lines.
	drop func(line string) bool
}

// Log returns a logger that writes to the record only.
func (r *Record) Log() *logrus.Logger {
	log := logrus.New()
	log.SetFormatter(noFormat{})
	log.SetOutput(discard{})
	log.SetLevel(logrus.InfoLevel)
	log.AddHook(r)

	return log
}

// Levels makes the record a hook of logrus.
func (*Record) Levels() []logrus.Level { return logrus.AllLevels }

// Fire adds an entry.
func (r *Record) Fire(e *logrus.Entry) error {
	var fields []string
	for key, value := range e.Data {
		if key == "name" {
			value = fmt.Sprintf("%v %v", e.Data["kind"], path(e.Data["namespace"], value))
		}
		fields = append(fields, fmt.Sprintf("%s=%v", key, value))
	}
	slices.Sort(fields)
	r.add(e.Level.String() + ": " + e.Message + " " + strings.Join(fields, " "))

	return nil
}

func (r *Record) add(line string) {
	if r.drop == nil || !r.drop(line) {
		r.lines = append(r.lines, line)
	}
}

func path(ns, name any) string {
	if ns == nil || ns == "" {
		return fmt.Sprint(name)
	}

	return fmt.Sprintf("%v/%v", ns, name)
}

// Names reports whether one line has all of the words.
func (r *Record) Names(words ...string) bool {
	return slices.ContainsFunc(r.lines, func(line string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
	})
}

type noFormat struct{}

func (noFormat) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

package forest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
)

// A Record is what was logged, and what a person would find in the results of a backup or restore.
type Record struct {
	lines []string
	// swallow is a defect: it has a line be lost.
	swallow func(line string) bool
}

// Log returns a log of which nothing remains but the record.
func (r *Record) Log() *logrus.Logger {
	log := logrus.New()
	log.SetFormatter(nothing{})
	log.SetOutput(nowhere{})
	log.SetLevel(logrus.InfoLevel)
	log.AddHook(r)

	return log
}

// Levels makes it a hook of logrus.
func (*Record) Levels() []logrus.Level { return logrus.AllLevels }

// Fire remembers an entry.
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
	if r.swallow == nil || !r.swallow(line) {
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

type nothing struct{}

func (nothing) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

package archive

import (
	"bytes"
	"testing"
)

// A backup within the limits is read. TestUnreadable has those beyond.
func TestLimits(t *testing.T) {
	files := []file{{name: version, content: "1.1.0"}, {name: here, content: bucket}}
	whole := tarOf(t, files...)
	cases := map[string]struct {
		reason string
		change func(*Limits)
		read   bool
	}{
		"Entry":       {reason: "An entry may reach the limit.", change: func(l *Limits) { l.Entry = int64(len(bucket)) }, read: true},
		"LongEntry":   {reason: "An entry must not exceed the limit.", change: func(l *Limits) { l.Entry = int64(len(bucket)) - 1 }},
		"Entries":     {reason: "The number of entries may reach the limit.", change: func(l *Limits) { l.Entries = int64(len(files)) }, read: true},
		"ManyEntries": {reason: "The number of entries must not exceed the limit.", change: func(l *Limits) { l.Entries = int64(len(files)) - 1 }},
		"Total":       {reason: "The whole archive may reach the limit.", change: func(l *Limits) { l.Total = int64(len(whole)) }, read: true},
		"LongTotal":   {reason: "The whole archive must not exceed the limit.", change: func(l *Limits) { l.Total = int64(len(whole)) - 1 }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := Default()
			tc.change(&limits)
			if _, err := Read(t.Context(), bytes.NewReader(zipped(t, whole)), limits); (err == nil) != tc.read {
				t.Errorf("%s got the error %v", tc.reason, err)
			}
		})
	}
}

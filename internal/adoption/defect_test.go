package adoption

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDefects(t *testing.T) {
	cases := map[string]struct {
		reason, version string
		want            []string
	}{
		"WatchCollector": {reason: "The watch garbage collector.", version: "1.19.2", want: []string{"#5400"}},
		"V120":           {reason: "It is mended.", version: "1.20.0"},
		"Realtime":       {reason: "Namespaced XRs are not looked at.", version: "2.0.2", want: []string{"#6780"}},
		"RealtimeMended": {reason: "It is mended.", version: "2.0.3"},
		"V23":            {reason: "Nothing is known of it.", version: "2.3.4"},
		"V240":           {reason: "Packages can't be upgraded.", version: "2.4.0", want: []string{"#7838"}},
		"V241":           {reason: "The same.", version: "2.4.1", want: []string{"#7838"}},
		"V241Build":      {reason: "Some build their own.", version: "2.4.1-up.1", want: []string{"#7838"}},
		"V242":           {reason: "It is mended.", version: "2.4.2"},
		"V243":           {reason: "It stays so.", version: "2.4.3"},
		"V25":            {reason: "And in later minors.", version: "2.5.0"},
		"Unknown":        {reason: "Its image has no version, so nothing is said.", version: ""},
		"NoVersion":      {reason: "Nor if it can't be compared.", version: "1.x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range (Installation{Version: tc.version}).Defects() {
				_, issue, _ := strings.Cut(d.What, "#")
				got = append(got, "#"+issue[:4])
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, d := range defects {
		if d.Before == "" || !strings.Contains(d.What, "crossplane #") {
			t.Errorf("it must say where it is known from and where it is mended: %+v", d)
		}
	}
	if !slices.ContainsFunc(defects, func(d Defect) bool { return d == stopsWatching }) {
		t.Error("what Stuck tells is in the same table")
	}
}

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
		unserved        bool
		want            []string
	}{
		"WatchCollector": {reason: "This version has the watch garbage collector.", version: "1.19.2", want: []string{"#5400"}},
		"V120":           {reason: "This version fixes the defect.", version: "1.20.0"},
		"Realtime":       {reason: "The defect does not affect namespaced XRs.", version: "2.0.2", want: []string{"#6780"}},
		"RealtimeMended": {reason: "This version fixes the defect.", version: "2.0.3"},
		"V23":            {reason: "No defect of this version is known.", version: "2.3.4"},
		"V240":           {reason: "Packages can't be upgraded in this version.", version: "2.4.0", want: []string{"#7838"}},
		"V241":           {reason: "This version has the same defect.", version: "2.4.1", want: []string{"#7838"}},
		"V241Build":      {reason: "Users can run builds of their own.", version: "2.4.1-up.1", want: []string{"#7838"}},
		"V242":           {reason: "This version fixes the defect.", version: "2.4.2"},
		"V243":           {reason: "Later patch versions keep the fix.", version: "2.4.3"},
		"V241Unserved": {
			reason: "A kind that is not served can be of a package that was downloaded in part.", version: "2.4.1", unserved: true, want: []string{"#7838", "#1112"},
		},
		"V243Unserved": {reason: "This version fixes the defect.", version: "2.4.3", unserved: true},
		"V235Unserved": {reason: "The cache of this version is that of 2.3.0.", version: "2.3.5", unserved: true, want: []string{"#1112"}},
		"V236Unserved": {reason: "This version is not known to fix the defect.", version: "2.3.6", unserved: true, want: []string{"#1112"}},
		"V226Unserved": {reason: "The defect came with the cache of 2.2.0.", version: "2.2.6", unserved: true, want: []string{"#1112"}},
		"V227Unserved": {reason: "This version fixes the defect.", version: "2.2.7", unserved: true},
		"V21Unserved":  {reason: "This version has another cache.", version: "2.1.8", unserved: true},
		"V25":          {reason: "Later minor versions keep the fix.", version: "2.5.0"},
		"Unknown":      {reason: "The image has no version, so there is no warning.", version: ""},
		"NoVersion":    {reason: "A version that can't be compared gives no warning.", version: "1.x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range (Installation{Version: tc.version}).Defects(tc.unserved) {
				_, issue, _ := strings.Cut(d.What, "#")
				got = append(got, "#"+issue[:4])
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, d := range defects {
		if d.Before == "" || !strings.Contains(d.What, "crossplane #") && !strings.Contains(d.What, "crossplane-runtime #") {
			t.Errorf("a defect must name its issue and its first fixed version: %+v", d)
		}
	}
	if !slices.ContainsFunc(defects, func(d Defect) bool { return d == stopsWatching }) {
		t.Error("the table must have the defect that Stuck reports")
	}
}

package stack

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRenamedBackup(t *testing.T) {
	cases := map[string]struct {
		reason string
		backup string
		want   string
		fails  bool
	}{
		"Renamed": {
			reason: "Velero reads the Backup from this file, so its name and counts must be right, without the original's UID.",
			backup: `{"kind":"Backup","metadata":{"name":"a","uid":"1","resourceVersion":"2","labels":{"l":"m"}},"status":{"phase":"Completed","progress":{"totalItems":1}}}`,
			want: `{"kind":"Backup","metadata":{"name":"b","labels":{"l":"m"}},
				"status":{"phase":"Completed","progress":{"totalItems":70,"itemsBackedUp":70}}}`,
		},
		"NoBackup": {reason: "A file without a Backup must not reach the bucket.", backup: `{}`, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := renamedBackup([]byte(tc.backup), "b", 70)
			if (err != nil) != tc.fails {
				t.Fatalf("%s\nerror: %v", tc.reason, err)
			}
			if tc.fails {
				return
			}
			if diff := cmp.Diff(decoded(t, []byte(tc.want)), decoded(t, got)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}

	return v
}

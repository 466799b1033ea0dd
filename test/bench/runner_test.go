package bench

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
)

func TestRun(t *testing.T) {
	errOpened := errors.New("the Lab is needed")
	kept, err := ledger.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{"restore-1", "restore-2", "restore-3"} {
		if _, err := ledger.Entry(kept, entry, "this plugin", func() (Restores, error) { return Restores{Plugin: restored(110), Alone: restored(100)}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	cases := map[string]struct {
		reason string
		of     string
		only   []string
		fails  string
	}{
		"Kept":    {reason: "A stored measurement must not be taken again, nor a cluster started for it.", of: "this plugin", only: []string{"restore"}},
		"Changed": {reason: "Another plugin must be measured again.", of: "another plugin", only: []string{"restore"}, fails: errOpened.Error()},
		"Unknown": {reason: "A stage that is mistyped must not pass for one that was measured.", of: "this plugin", only: []string{"restores"}, fails: "there are start, inspect"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Runner{Sizes: sizes, Ledger: kept, Of: tc.of, Out: io.Discard, Open: func(context.Context) (*lab.Lab, error) { return nil, errOpened }}
			results, err := r.Run(t.Context(), tc.only)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s\nerror: %v", tc.reason, err)
				}

				return
			}
			if err != nil || len(results.Restores) != 3 {
				t.Errorf("%s\n%v, error: %v", tc.reason, results, err)
			}
		})
	}
}

package ledger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type result struct {
	Seconds float64
	Calls   map[string]int
}

func TestEntry(t *testing.T) {
	kept := result{Seconds: 1.5, Calls: map[string]int{"get": 2}}
	fresh := result{Seconds: 3}
	type want struct {
		Result   result
		Measured bool
		Fails    bool
	}
	cases := map[string]struct {
		reason string
		name   string
		of     string
		fails  error
		want   want
	}{
		"Kept":   {reason: "A run that was stopped repeats nothing.", name: "row-1", of: "plugin a", want: want{Result: kept}},
		"Other":  {reason: "A measurement of another plugin must not count.", name: "row-1", of: "plugin b", want: want{Result: fresh, Measured: true}},
		"Failed": {reason: "A failed measurement must not be stored.", name: "row-2", of: "plugin a", fails: errors.New("no"), want: want{Measured: true, Fails: true}},
		"Broken": {reason: "A file that can't be read must be left to a user.", name: "broken", of: "plugin a", want: want{Fails: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Open(filepath.Join(dir, "10x2"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Entry(l, "row-1", "plugin a", func() (result, error) { return kept, nil }); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "10x2", "broken.json"), []byte("{"), 0o600); err != nil {
				t.Fatal(err)
			}

			var got want
			got.Result, err = Entry(l, tc.name, tc.of, func() (result, error) {
				got.Measured = true
				if tc.fails != nil {
					return result{}, tc.fails
				}

				return fresh, nil
			})
			got.Fails = err != nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if has := l.Has(tc.name, tc.of); has == tc.want.Fails {
				t.Errorf("%s\nHas returns %v", tc.reason, has)
			}
		})
	}
}

func TestLast(t *testing.T) {
	l, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Entry(l, "row-1", "plugin a", func() (result, error) { return result{Seconds: 1}, nil }); err != nil {
		t.Fatal(err)
	}
	if got, of, ok, err := Last[result](l, "row-1"); got.Seconds != 1 || of != "plugin a" || !ok || err != nil {
		t.Errorf("of %q there is %v (%t, %v)", of, got, ok, err)
	}
	if err := l.Drop("row-1"); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, err := Last[result](l, "row-1"); ok || err != nil || l.Has("row-1", "plugin a") {
		t.Errorf("a dropped measurement is still there: %t, %v", ok, err)
	}
}

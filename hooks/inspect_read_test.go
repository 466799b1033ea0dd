package hooks

import (
	"strings"
	"testing"
)

func TestOneBackup(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"None": {reason: "The command needs a backup.", want: "Error: no BACKUP given"},
		"Two":  {reason: "It inspects one at a time.", args: []string{"a", "b"}, want: "Error: cannot inspect more than one BACKUP"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := command(t, nil, append([]string{"inspect"}, tc.args...)...)
			if got.code != ExitUsage || !strings.HasPrefix(got.err, tc.want) {
				t.Errorf("%s got %+v, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

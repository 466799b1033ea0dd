package hooks

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestReadFrom(t *testing.T) {
	whole := xptest.Backup(shop()...)
	errLost := errors.New("the connection was lost")
	cases := map[string]struct {
		reason string
		in     []byte
		err    error
		items  int
		want   string
	}{
		"Whole": {reason: "A download is read like a file.", in: whole, items: len(shop())},
		"Lost": {
			reason: "A lost connection is the reason, and not the archive that it has cut off.", in: whole[:len(whole)/2], err: errLost,
			want: "the connection was lost",
		},
		"LostAtTheEnd": {reason: "A download that failed is not trusted, even if the archive is whole.", in: whole, err: errLost, want: "the connection was lost"},
		"NoBackup":     {reason: "Other content is named.", in: []byte("<html>"), want: "cannot read the backup nightly: "},
		"CutOff":       {reason: "A truncated backup must not pass for a whole one.", in: whole[:len(whole)-9], want: "cannot read the backup nightly: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			backup, err := readFrom(t.Context(), "nightly", func(_ context.Context, w io.Writer) error {
				if _, err := w.Write(tc.in); err != nil {
					return err
				}

				return tc.err
			})
			if tc.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("%s got %v, want %q", tc.reason, err, tc.want)
				}

				return
			}
			if err != nil || len(backup.Items) != tc.items {
				t.Errorf("%s got %v, %v", tc.reason, backup, err)
			}
		})
	}
}

func TestOneBackup(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"None":    {reason: "The command needs a backup.", want: "Error: no BACKUP given"},
		"Two":     {reason: "It inspects one at a time.", args: []string{"a", "b"}, want: "Error: cannot inspect more than one BACKUP"},
		"Both":    {reason: "It does not guess which is meant.", args: []string{"a", "--backup", "b"}, want: "Error: cannot inspect both the file a and the Backup b"},
		"Useless": {reason: "A flag without effect is refused.", args: []string{"a", "--cacert", "b"}, want: "Error: cannot use --cacert"},
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

func TestReadFromNowhere(t *testing.T) {
	got := command(t, nil, "inspect", "--backup", "nightly", "--kubeconfig", "testdata/none")
	if got.code != ExitFailed || !strings.HasSuffix(got.err, "["+string(reason.NoCluster)+"]\n") {
		t.Error(cmp.Diff(commandResult{code: ExitFailed}, got, cmp.AllowUnexported(commandResult{})))
	}
}

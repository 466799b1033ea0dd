package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/cmd/util/downloadrequest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestBackupContents(t *testing.T) {
	backup := xptest.Object("velero.io/v1", "Backup", "velero", "nightly", xptest.Field("InProgress", "status", "phase"))
	errLost := errors.New("the connection was lost")
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		err     error
		want    string
		code    reason.Code
	}{
		"Read":     {reason: "The archive is written.", objects: []*unstructured.Unstructured{backup}},
		"NoBackup": {reason: "A wrong name is no failure of the object store.", want: "there is no Backup velero/nightly", code: reason.NotFound},
		"NoFile": {
			reason: "The phase tells why there are no contents.", objects: []*unstructured.Unstructured{backup}, err: downloadrequest.ErrNotFound,
			want: `the object store has no contents of the Backup velero/nightly, whose phase is "InProgress"`, code: reason.BackupUnreadable,
		},
		"NoVelero": {
			reason: "Velero's server must give the address.", objects: []*unstructured.Unstructured{backup},
			err: downloadrequest.ErrDownloadRequestDownloadURLTimeout, want: "cannot download the Backup velero/nightly: Velero gives no address", code: reason.TimedOut,
		},
		"Lost": {
			reason: "Other errors are wrapped.", objects: []*unstructured.Unstructured{backup}, err: errLost,
			want: "cannot download the Backup velero/nightly: the connection was lost",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := handoverServer(tc.objects...).cluster()
			c.download = func(_ context.Context, d Download, w io.Writer) error {
				if d.Kind != velerov1.DownloadTargetKindBackupContents || d.CACert != "ca" || d.Timeout != contentsTimeout {
					t.Errorf("the download is %+v", d)
				}
				if tc.err != nil {
					return tc.err
				}
				_, err := fmt.Fprint(w, d.Backup.Name)

				return err
			}
			var got strings.Builder
			err := c.BackupContents(t.Context(), "velero", "nightly", Download{CACert: "ca"}, &got)
			if tc.want == "" {
				if diff := cmp.Diff("nightly", got.String()); diff != "" || err != nil {
					t.Errorf("%s %v %s", tc.reason, err, diff)
				}

				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || reason.CodeOf(err) != tc.code {
				t.Errorf("%s got %v with the code %s", tc.reason, err, reason.CodeOf(err))
			}
		})
	}
}

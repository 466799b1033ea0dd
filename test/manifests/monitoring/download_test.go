package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// TestDownload runs the script that downloads the newest backup, with a program that prints the
// backups as Velero's client does.
func TestDownload(t *testing.T) {
	const header = "NAME STATUS ERRORS WARNINGS CREATED EXPIRES STORAGE LOCATION QUEUE POSITION SELECTOR\n"
	cases := map[string]struct {
		reason  string
		backups string
		want    string
	}{
		"Newest": {
			reason: "The newest one that is Completed counts, and not the first in the list.", want: "backup download nightly-20261120020000 --output /target/backup.tar.gz",
			backups: "by-hand Completed 0 3 2026-11-19 13:00:00 +0000 UTC 29d default <none>\n" +
				"nightly-20261121020000 InProgress 0 0 2026-11-21 02:00:00 +0000 UTC 29d default <none>\n" +
				"nightly-20261120020000 Completed 0 0 2026-11-20 02:00:00 +0000 UTC 28d default <none>\n" +
				"nightly-20261119020000 Completed 0 0 2026-11-19 02:00:00 +0000 UTC 27d default <none>\n",
		},
		"None": {reason: "Velero's client refuses an empty name.", want: "backup download  --output /target/backup.tar.gz"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var job batchv1.CronJob
			if err := yaml.UnmarshalStrict(read(t, example+"backup.yaml"), &job); err != nil {
				t.Fatal(err)
			}
			all := job.Spec.JobTemplate.Spec.Template.Spec.InitContainers
			c := all[len(all)-1]
			if !slices.Equal(c.Command, []string{"/target/busybox", "sh", "-c"}) {
				t.Fatalf("the container runs %s", c.Command)
			}
			dir := t.TempDir()
			for name, script := range map[string]string{
				"busybox": `exec "$@"`,
				"velero":  fmt.Sprintf("echo \"$*\" >>%[1]s/args\n[ $2 = download ] || printf '%[2]s%[3]s'", dir, header, tc.backups),
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // It has to be run.
					t.Fatal(err)
				}
			}
			script := strings.NewReplacer("/target/busybox", dir+"/busybox", "/velero ", dir+"/velero ").Replace(c.Args[0])
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
				t.Errorf("the script ended with %v: %s", err, out)
			}
			want := "backup get --selector velero.io/schedule-name=nightly\n" + tc.want + "\n"
			if got := string(read(t, filepath.Join(dir, "args"))); got != want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, want)
			}
		})
	}
}

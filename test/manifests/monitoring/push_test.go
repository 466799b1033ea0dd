package monitoring

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/route"
	"github.com/prometheus/pushgateway/handler"
	"github.com/prometheus/pushgateway/storage"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// curl stands in for the program of that name, which not every machine has: it sends the file that
// follows --upload-file to the URL at the end, as curl does, with PUT.
const curl = "MONITORING_TEST_CURL"

func TestMain(m *testing.M) {
	if os.Getenv(curl) == "" {
		os.Exit(m.Run())
	}
	if err := upload(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func upload(args []string) error {
	body, err := os.Open(args[slices.Index(args, "--upload-file")+1])
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	request, err := http.NewRequest(http.MethodPut, args[len(args)-1], body) //nolint:noctx,gosec // The program ends with it, and the test names the URL.
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request) //nolint:gosec // The same.
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest && slices.Contains(args, "--fail") {
		return fmt.Errorf("the server answered %s", response.Status)
	}

	return nil
}

// TestPush runs the scripts of the CronJobs against a Pushgateway, with a program that prints a
// sample and ends with a code.
func TestPush(t *testing.T) {
	const sh = "sh"
	cases := map[string]struct {
		sample  string
		command string
	}{
		"validate.yaml": {"validation.txt", "validate -o openmetrics"},
		"backup.yaml":   {"inspection.txt", "inspect /target/backup.tar.gz -o openmetrics"},
		"drills.yaml":   {"drills.txt", "drill status --from-schedule nightly --report-location default --plugin-dir /target -o openmetrics"},
	}
	for file, tc := range cases {
		var job batchv1.CronJob
		if err := yaml.UnmarshalStrict(read(t, example+file), &job); err != nil {
			t.Fatal(err)
		}
		c := job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		for _, code := range []int{0, 1, 2, 3} {
			t.Run(fmt.Sprintf("%s/%d", file, code), func(t *testing.T) {
				store := storage.NewDiskMetricStore("", time.Minute, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
				t.Cleanup(func() { _ = store.Shutdown() })
				router := route.New()
				router.Put("/metrics/job/:job", handler.Push(store, true, true, false, slog.New(slog.DiscardHandler)))
				server := httptest.NewServer(router)
				t.Cleanup(server.Close)

				dir := t.TempDir()
				self, err := os.Executable()
				if err != nil {
					t.Fatal(err)
				}
				sample, err := filepath.Abs(samples + tc.sample)
				if err != nil {
					t.Fatal(err)
				}
				program := fmt.Sprintf("#!/bin/sh\necho \"$*\" >%s/args\n[ %d -eq 1 ] || cat %s\nexit %d\n", dir, code, sample, code)
				for name, script := range map[string]string{
					"velero-plugin-for-crossplane": program,
					"curl":                         fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\"\n", curl, self),
				} {
					writeProgram(t, filepath.Join(dir, name), script)
				}
				if !slices.Equal(c.Command, []string{sh, "-c"}) {
					t.Fatalf("the container runs %s", c.Command)
				}
				script := strings.NewReplacer("/target/velero", dir+"/velero", "/tmp/metrics", dir+"/metrics").Replace(c.Args[0])
				run := exec.CommandContext(t.Context(), sh, "-c", script)
				run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PUSHGATEWAY="+server.URL)
				out, err := run.CombinedOutput()

				pushed := len(store.GetMetricFamilies()) > 2
				if want := code == 0 || code == 3; pushed != want || (err == nil) != want {
					t.Errorf("with code %d the Job must push and succeed: %v, but pushed: %v, and ended with %v: %s", code, want, pushed, err, out)
				}
				if got := strings.TrimSpace(string(read(t, dir+"/args"))); got != tc.command {
					t.Errorf("it runs %q, want %q", got, tc.command)
				}
			})
		}
	}
}

func writeProgram(t *testing.T, file, script string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(script), 0o700); err != nil { //nolint:gosec // It has to be run.
		t.Fatal(err)
	}
}

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
			writeProgram(t, filepath.Join(dir, "busybox"), "#!/bin/sh\nexec \"$@\"\n")
			writeProgram(t, filepath.Join(dir, "velero"), fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%[1]s/args\n[ $2 = download ] || printf '%[2]s%[3]s'\n", dir, header, tc.backups))
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

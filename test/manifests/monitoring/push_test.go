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
	corev1 "k8s.io/api/core/v1"
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

// A pod is where the script of a Job runs, beside a Pushgateway.
type pod struct {
	dir     string
	gateway *httptest.Server
	store   storage.MetricStore
}

// newPod returns a pod in which a script stands for the plugin.
func newPod(t *testing.T, program string) *pod {
	t.Helper()
	store := storage.NewDiskMetricStore("", time.Minute, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = store.Shutdown() })
	router := route.New()
	router.Put("/metrics/job/:job", handler.Push(store, true, true, false, slog.New(slog.DiscardHandler)))
	p := &pod{dir: t.TempDir(), gateway: httptest.NewServer(router), store: store}
	t.Cleanup(p.gateway.Close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	scripts(t, p.dir, map[string]string{"velero-plugin-for-crossplane": program, "curl": fmt.Sprintf("%s=1 exec %s \"$@\"", curl, self)})

	return p
}

// scripts writes programs for a shell.
func scripts(t *testing.T, dir string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // It has to be run.
			t.Fatal(err)
		}
	}
}

// run runs the script of a container. pushed reports whether the Pushgateway got its metrics.
func (p *pod) run(t *testing.T, c corev1.Container) (out string, pushed bool, err error) {
	t.Helper()
	const sh = "sh"
	if !slices.Equal(c.Command, []string{sh, "-c"}) {
		t.Fatalf("the container runs %s", c.Command)
	}
	script := strings.NewReplacer("/target/", p.dir+"/", "/tmp/", p.dir+"/").Replace(c.Args[0])
	run := exec.CommandContext(t.Context(), sh, "-c", script)
	run.Env = append(os.Environ(), "PATH="+p.dir+":"+os.Getenv("PATH"), "PUSHGATEWAY="+p.gateway.URL)
	b, err := run.CombinedOutput()

	return string(b), len(p.store.GetMetricFamilies()) > 2, err
}

// TestPush runs the scripts of the CronJobs against a Pushgateway, with a program that prints a
// sample and ends with a code.
func TestPush(t *testing.T) {
	cases := map[string]struct {
		sample  string
		command string
	}{
		"validate.yaml": {"validation.txt", "validate -o openmetrics"},
		"backup.yaml":   {"inspection.txt", "inspect /target/backup.tar.gz -o openmetrics"},
	}
	for file, tc := range cases {
		var job batchv1.CronJob
		if err := yaml.UnmarshalStrict(read(t, example+file), &job); err != nil {
			t.Fatal(err)
		}
		c := job.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
		for _, code := range []int{0, 1, 2, 3} {
			t.Run(fmt.Sprintf("%s/%d", file, code), func(t *testing.T) {
				p := newPod(t, fmt.Sprintf("echo \"$*\" >${0%%/*}/args\n[ %d -eq 1 ] || cat <<'END'\n%sEND\nexit %d", code, read(t, samples+tc.sample), code))
				out, pushed, err := p.run(t, c)
				if want := code == 0 || code == 3; pushed != want || (err == nil) != want {
					t.Errorf("with code %d the Job must push and succeed: %v, but pushed: %v, and ended with %v: %s", code, want, pushed, err, out)
				}
				if got := strings.TrimSpace(strings.ReplaceAll(string(read(t, p.dir+"/args")), p.dir, "/target")); got != tc.command {
					t.Errorf("it runs %q, want %q", got, tc.command)
				}
			})
		}
	}
}

// TestDrill runs the check of a drill on what validate prints.
func TestDrill(t *testing.T) {
	const (
		quarantined = "crossplane_restore_problems{code=\"Quarantined\",command=\"validate\",severity=\"problem\"} 2.0\n" +
			"crossplane_restore_problems{code=\"NotReady\",command=\"validate\",severity=\"warning\"} 1.0\n" +
			"crossplane_restore_objects{command=\"validate\",role=\"xr\"} 1.0\n"
		restored = `{"restores": [{"phase": "Completed"}], "trees": [{"state": "held"}]}`
	)
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(read(t, example+"../drill/job.yaml"), &job); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason          string
		code            int
		report, metrics string
		passes          bool
	}{
		"Passed":      {reason: "Everything is in quarantine.", code: 3, report: restored, metrics: quarantined, passes: true},
		"Partial":     {reason: "The Restore has errors.", code: 3, report: strings.ReplaceAll(restored, "Completed", "PartiallyFailed"), metrics: quarantined},
		"Missing":     {reason: "An XR lists what did not come back.", code: 3, report: strings.ReplaceAll(restored, "held", "missing"), metrics: quarantined},
		"MoreWrong":   {reason: "There is another problem.", code: 3, report: restored, metrics: quarantined + strings.Replace(quarantined[:strings.Index(quarantined, "\n")+1], "Quarantined", "Duplicated", 1)},
		"Reconciled":  {reason: "Nothing is in quarantine.", report: restored, metrics: strings.ReplaceAll(quarantined, "Quarantined", "Held")},
		"Unreachable": {reason: "The cluster can't be read.", code: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, fmt.Sprintf("case \"$*\" in\n*json) cat ${0%%/*}/json ;;\n*openmetrics) cat ${0%%/*}/openmetrics ;;\nesac\nexit %d", tc.code))
			for file, content := range map[string]string{"json": tc.report, "openmetrics": tc.metrics} {
				if err := os.WriteFile(filepath.Join(p.dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, pushed, err := p.run(t, job.Spec.Template.Spec.Containers[0])
			if pushed != tc.passes || (err == nil) != tc.passes {
				t.Errorf("%s\nit pushes: %v, and ended with %v: %s", tc.reason, pushed, err, out)
			}
		})
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
			scripts(t, dir, map[string]string{
				"busybox": `exec "$@"`,
				"velero":  fmt.Sprintf("echo \"$*\" >>%[1]s/args\n[ $2 = download ] || printf '%[2]s%[3]s'", dir, header, tc.backups),
			})
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

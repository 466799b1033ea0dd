package hooks

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A wait for a Restore ends with it.
func TestWaitForARestore(t *testing.T) {
	adopted := xptest.XRV2("o", xptest.Reconciled())
	held := xptest.XRV2("p", xptest.Reconciled())
	if _, err := hold.Put(held, hold.Hold{Restore: "velero/r", Since: "2026-11-20T10:00:00Z", Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	failing := xptest.XRV2("q", xptest.Synced("False", "ReconcileError", "no function"))
	in := func(phase string) *report.Restore {
		return &report.Restore{Name: "velero/r", Phase: phase, Errors: 2, Warnings: 1}
	}
	refused := in("FailedValidation")
	refused.Failure = "there is no Backup"
	cases := map[string]struct {
		reason string
		// restores are the results of the rounds; the last repeats.
		restores []*report.Restore
		unread   error
		objects  []*unstructured.Unstructured
		settle   time.Duration
		code     int
		want     []string
		lacks    string
	}{
		"Completed": {reason: "Nothing more comes.", restores: []*report.Restore{in("Completed")}, objects: []*unstructured.Unstructured{adopted}},
		"UnderWay": {
			reason: "More can come.", restores: []*report.Restore{in(""), in("InProgress"), in("Completed")}, objects: []*unstructured.Unstructured{adopted},
			want: []string{"waiting for the Restore velero/r: its phase is New", "its phase is InProgress [RestoreRunning]"},
		},
		"Typo":    {reason: "A name that is not there is an error.", restores: []*report.Restore{nil}, code: ExitFailed, want: []string{"there is no Restore velero/r", "velero restore get"}},
		"Deleted": {reason: "What it has created shows that it existed.", restores: []*report.Restore{nil}, objects: []*unstructured.Unstructured{adopted}},
		"Held": {
			reason: "Only a user can go on.", restores: []*report.Restore{in("InProgress"), in("PartiallyFailed")}, objects: []*unstructured.Unstructured{adopted, held}, settle: time.Hour,
			code: ExitProblems, lacks: "Order team-a/o: ", want: []string{"has ended as PartiallyFailed, with 2 errors and 1 warnings; see them with: velero restore describe --details r; and these are not adopted:", "Order team-a/p: held by the Restore velero/r"},
		},
		"Failed":     {reason: "Something can be missing.", restores: []*report.Restore{in("PartiallyFailed")}, objects: []*unstructured.Unstructured{adopted}, code: ExitProblems, want: []string{"has ended as PartiallyFailed"}},
		"Refused":    {reason: "Velero says why.", restores: []*report.Restore{refused}, settle: time.Hour, code: ExitProblems, want: []string{"has ended as FailedValidation, with 2 errors and 1 warnings (there is no Backup)", "there are none here yet"}},
		"Settles":    {reason: "Crossplane has a while to reconcile what is not held.", restores: []*report.Restore{in("Completed")}, objects: []*unstructured.Unstructured{failing}, settle: 30 * time.Millisecond, code: ExitProblems, want: []string{"Order team-a/q: Crossplane can't reconcile it"}},
		"Unreadable": {reason: "The right is not needed.", unread: errors.New("forbidden"), objects: []*unstructured.Unstructured{adopted}, want: []string{"whether the Restore is over is not known: forbidden"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			w := &wait{options: newOptions(Program{Out: &out, Err: &stderr}), restore: "r", timeout: time.Minute, pause: time.Millisecond, settle: tc.settle}
			w.velero = "velero"
			w.look = func(context.Context) (cluster.Roots, error) { return cluster.Roots{Kinds: 1, Objects: tc.objects}, nil }
			w.readRestore = func(context.Context) (*report.Restore, error) {
				if tc.unread != nil {
					return nil, tc.unread
				}
				now := tc.restores[0]
				if len(tc.restores) > 1 {
					tc.restores = tc.restores[1:]
				}

				return now, nil
			}
			err := failed(w.run(t.Context()))
			w.printError(err)
			if codeOf(err) != tc.code {
				t.Errorf("%s want the exit code %d, got %v", tc.reason, tc.code, err)
			}
			if said := out.String(); (tc.code == ExitFine) != strings.Contains(said, "is adopted") {
				t.Errorf("%s stdout has %q", tc.reason, said)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("%s %q is not in:\n%s", tc.reason, want, stderr.String())
				}
			}
			if tc.lacks != "" && strings.Contains(stderr.String(), tc.lacks) {
				t.Errorf("%s %q is in:\n%s", tc.reason, tc.lacks, stderr.String())
			}
		})
	}
}

// With -o a wait ends with the report of validate.
func TestWaitReports(t *testing.T) {
	sound := heldReport()
	sound.Trees[0].State = report.Adopted
	sound.Assemble(sound.Trees, nil)
	cases := map[string]struct {
		reason   string
		objects  []*unstructured.Unstructured
		labelled bool
		report   *report.Report
		failure  error
		code     int
		names    []string
		out      string
	}{
		"Sound":    {reason: "The report replaces the list of what is adopted.", objects: []*unstructured.Unstructured{xptest.XRV2("o", xptest.Reconciled())}, report: sound, out: "No problems in test"},
		"Problems": {reason: "An adopted XR can have a problem.", objects: []*unstructured.Unstructured{xptest.XRV2("o", xptest.Reconciled())}, report: heldReport(), code: ExitProblems, out: "1 problem in test"},
		"Labelled": {reason: "Only what has the labels is validated.", labelled: true, objects: []*unstructured.Unstructured{xptest.XRV2("o", xptest.Reconciled())}, report: sound, names: []string{"team-a/o"}, out: "No problems"},
		"TimedOut": {reason: "The report has what is left.", objects: []*unstructured.Unstructured{xptest.XRV2("o")}, report: heldReport(), code: ExitTimeout, out: "1 problem in test"},
		"NoReport": {reason: "Validate can lack rights.", objects: []*unstructured.Unstructured{xptest.XRV2("o", xptest.Reconciled())}, failure: errors.New("forbidden"), code: ExitFailed},
		"Neither":  {reason: "What it waited for is the first thing to know.", objects: []*unstructured.Unstructured{xptest.XRV2("o")}, failure: errors.New("forbidden"), code: ExitTimeout},
		"Nothing":  {reason: "Without objects there is nothing to report.", labelled: true, code: ExitTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			w := &wait{options: newOptions(Program{Out: &out, Err: &stderr}), labelled: tc.labelled, pause: time.Millisecond}
			w.out.format = printer.Table
			w.look = func(context.Context) (cluster.Roots, error) { return cluster.Roots{Kinds: 1, Objects: tc.objects}, nil }
			w.validate = func(_ context.Context, names []string) (*report.Report, error) {
				if !slices.Equal(names, tc.names) {
					t.Errorf("%s validated %v", tc.reason, names)
				}

				return tc.report, tc.failure
			}
			if err := failed(w.run(t.Context())); codeOf(err) != tc.code {
				t.Errorf("%s want the exit code %d, got %v", tc.reason, tc.code, err)
			}
			if said := out.String(); !strings.Contains(said, tc.out) || strings.Contains(said, "is adopted") || tc.out == "" && said != "" {
				t.Errorf("%s stdout has %q", tc.reason, said)
			}
		})
	}
}

// What client-go logs is no part of the output of a command.
func TestRunLeavesOutTheLogOfClients(t *testing.T) {
	Run(t.Context(), []string{"version"}, Program{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = write
	klog.Error("the connection is lost")
	klog.Flush()
	os.Stderr = stderr
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(read); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

package hooks

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestWait(t *testing.T) {
	adopted := xptest.XRV2("o", xptest.Reconciled())
	held := adopted.DeepCopy()
	if _, err := hold.Put(held, hold.Hold{Restore: "velero/r", Since: "2026-11-20T10:00:00Z", Reason: "because"}); err != nil {
		t.Fatal(err)
	}
	of := func(u ...*unstructured.Unstructured) cluster.Roots { return cluster.Roots{Kinds: 1, Objects: u} }
	unread := func(err error, u ...*unstructured.Unstructured) cluster.Roots {
		r := of(u...)
		r.Unread = map[schema.GroupVersionKind]error{{Group: "example.org", Version: "v1", Kind: "Other"}: err}

		return r
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "others"}, "", errors.New("no"))
	kind := func(n int, r cluster.Roots) cluster.Roots { r.Kinds = n; return r }
	cases := map[string]struct {
		reason string
		names  []string
		// looks are the results of the rounds; the last repeats. failure is the error of the first
		// round.
		looks   []cluster.Roots
		failure error
		want    error
		out     string
		// err are texts in the progress and the error, in this order.
		err []string
	}{
		"Adopted": {reason: "An adopted XR must end the wait at once.", looks: []cluster.Roots{of(adopted)}, out: "Order team-a/o is adopted\n"},
		"Held": {
			reason: "The command must wait for the end of the hold.", looks: []cluster.Roots{of(held), of(held), of(adopted)}, out: "Order team-a/o is adopted\n",
			err: []string{"waiting for Order team-a/o: held by the Restore velero/r since 2026-11-20T10:00:00Z: because\n"},
		},
		"HeldPastTimeout": {
			reason: "After the timeout the error must name the object and the next step.", looks: []cluster.Roots{of(held)}, want: &exit{code: ExitTimeout},
			err: []string{"waiting for Order team-a/o", "these are not adopted:\n  Order team-a/o: held", "validate team-a/o"},
		},
		"NotReconciled": {
			reason: "Without a hold the XR must still be reconciled.", looks: []cluster.Roots{of(xptest.XRV2("o")), of(xptest.With(adopted, xptest.Generation(2), xptest.OfGeneration(1))), of(adopted)},
			out: "Order team-a/o is adopted\n", err: []string{"has not reconciled it yet [AwaitingCrossplane]"},
		},
		"Paused":  {reason: "The command must not wait for an XR that a user paused.", looks: []cluster.Roots{of(xptest.XRV2("o", xptest.Annotated(xp.AnnotationPaused, "true")))}, out: "Order team-a/o is adopted\n"},
		"Nothing": {reason: "The command must wait until a first claim or XR exists.", looks: []cluster.Roots{of(), of(adopted)}, out: "Order team-a/o is adopted\n", err: []string{"there are none here yet"}},
		"Named": {
			reason: "Every named object must exist.", names: []string{"team-a/o", "team-a/p"}, looks: []cluster.Roots{of(adopted), of(adopted, xptest.XRV2("p", xptest.Reconciled()))},
			out: "Order team-a/o is adopted\nOrder team-a/p is adopted\n", err: []string{"waiting for team-a/p: there is no claim or XR of this name"},
		},
		"OthersHeld": {reason: "Other held objects must not matter.", names: []string{"team-a/q"}, looks: []cluster.Roots{of(held, xptest.XRV2("q", xptest.Reconciled()))}, out: "Order team-a/q is adopted\n"},
		"Unreachable": {
			reason: "An unreachable API server may come back.", failure: errors.New("connection refused"), looks: []cluster.Roots{of(adopted)},
			out: "Order team-a/o is adopted\n", err: []string{"waiting for the cluster: connection refused"},
		},
		"ForbiddenKind": {
			reason: "The command must leave out a forbidden kind if it can read others.", looks: []cluster.Roots{unread(forbidden, adopted)}, out: "Order team-a/o is adopted\n",
			err: []string{"Other.example.org", "left out"},
		},
		"ForbiddenAll": {
			reason: "A user can get the rights while the command waits.", looks: []cluster.Roots{kind(0, unread(forbidden)), of(adopted)}, out: "Order team-a/o is adopted\n", err: []string{"waiting for Other.example.org"},
		},
		"BrokenGroup": {
			reason: "A broken group may hide claims or XRs, so the command must name it.",
			looks:  []cluster.Roots{{Objects: of(adopted).Objects, Kinds: 1, Unasked: map[string]string{"metrics.k8s.io/v1": "it is down"}}},
			out:    "Order team-a/o is adopted\n", err: []string{"metrics.k8s.io/v1 are left out", "it is down"},
		},
		"BrokenKind": {
			reason: "A kind that fails for another reason may come back.", looks: []cluster.Roots{unread(errors.New("webhook down"), adopted), of(adopted)}, out: "Order team-a/o is adopted\n",
			err: []string{"waiting for Other.example.org: webhook down"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, err bytes.Buffer
			timeout := time.Minute
			if tc.want != nil {
				timeout = 50 * time.Millisecond // It is waited for.
			}
			w := &wait{
				options: &options{Program: Program{Out: &out, Err: &err}}, names: tc.names, timeout: timeout, pause: time.Millisecond,
			}
			looks := tc.looks
			w.look = func(context.Context) (cluster.Roots, error) {
				if tc.failure != nil {
					failure := tc.failure
					tc.failure = nil

					return cluster.Roots{}, failure
				}
				now := looks[0]
				if len(looks) > 1 {
					looks = looks[1:]
				}

				return now, nil
			}
			got := w.run(context.Background())
			if codeOf(got) != codeOf(tc.want) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
			if diff := cmp.Diff(tc.out, out.String()); diff != "" {
				t.Errorf("%s\nstdout: -want, +got:\n%s", tc.reason, diff)
			}
			printed := err.String()
			if got != nil {
				printed += got.Error()
			}
			for _, want := range tc.err {
				_, rest, ok := strings.Cut(printed, want)
				if !ok {
					t.Errorf("%s\n%q is not in %q", tc.reason, want, err.String())
				}
				printed = rest
			}
			if lines := strings.Split(strings.TrimSpace(err.String()), "\n"); len(lines) > 5 {
				t.Errorf("The progress must have only changes; got %q", lines)
			}
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := &wait{
		options: &options{Program: Program{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}, timeout: time.Hour, pause: time.Hour,
		look: func(context.Context) (cluster.Roots, error) { cancel(); return cluster.Roots{}, nil },
	}
	err := failed(w.run(ctx))
	if said := messageOf(err).String(); codeOf(err) != ExitFailed || !strings.Contains(said, "the restore goes on") || strings.Contains(said, "context") {
		t.Errorf("got %v", err)
	}
}

func TestWaitUsage(t *testing.T) {
	for _, args := range [][]string{{"--for=ready"}, {"a/b/c"}, {"-l", "a in"}, {"--timeout", "-1s"}, {"--timeout", "soon"}} {
		var out, err bytes.Buffer
		if code := Run(context.Background(), append([]string{"wait"}, args...), Program{Out: &out, Err: &err}); code != ExitUsage || out.Len() > 0 || err.Len() == 0 {
			t.Errorf("%s: want a usage error, got %d, %q, %q", args, code, out.String(), err.String())
		}
	}
}

func TestWaitPlaces(t *testing.T) {
	cases := map[string]struct {
		reason    string
		namespace string
		args      []string
		want      cluster.Places
		selector  string
	}{
		"Everywhere":  {reason: "Without limits the command must read every namespace."},
		"Namespace":   {reason: "A namespace must limit the reads to itself.", namespace: "team-a", args: []string{"orders"}, want: cluster.Places{Namespaces: []string{"team-a"}}},
		"Names":       {reason: "Names must limit the reads to their namespaces.", args: []string{"team-a/o", "team-a/p", "team-b/o"}, want: cluster.Places{Namespaces: []string{"team-a", "team-b"}}},
		"ClusterWide": {reason: "A name without a namespace means a cluster-scoped XR.", args: []string{"x"}, want: cluster.Places{Cluster: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &wait{options: &options{namespace: tc.namespace}}
			if err := w.prepare(tc.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.places); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	w := &wait{options: &options{}, selector: "app=orders", restore: strings.Repeat("long", 20)}
	if err := w.prepare(nil); err != nil {
		t.Fatal(err)
	}
	if want := "app=orders,velero.io/restore-name=longlonglonglonglonglonglonglonglonglonglonglonglonglonglongl"; !strings.HasPrefix(w.selector, want[:40]) || len(w.selector) != len("app=orders,velero.io/restore-name=")+63 {
		t.Errorf("Velero shortens long label values; got %s", w.selector)
	}
}

package live

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestHasPlugin(t *testing.T) {
	cases := map[string]struct {
		reason  string
		phase   string
		plugins []any
		want    bool
		fails   bool
	}{
		"Runs":   {reason: "The server runs the action.", phase: "Processed", plugins: []any{map[string]any{"name": "a", "kind": "b"}}, want: true},
		"Lacks":  {reason: "The server runs others.", phase: "Processed", plugins: []any{map[string]any{"name": "c", "kind": "b"}}},
		"Silent": {reason: "No server answers.", phase: "New", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.kinds["velero.io/v1"] = append(s.kinds["velero.io/v1"], metav1.APIResource{Name: "serverstatusrequests", Kind: "ServerStatusRequest", Namespaced: true})
			s.PrependReactor("*", "serverstatusrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, xptest.Object("velero.io/v1", "ServerStatusRequest", "velero", "r", xptest.Field(tc.phase, "status", "phase"), xptest.Field(tc.plugins, "status", "plugins")), nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 3*statusInterval)
			defer cancel()
			got, err := s.cluster().HasPlugin(ctx, "velero", "a")
			if got != tc.want || (err != nil) != tc.fails || tc.fails && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %t, %v", tc.reason, got, err)
			}
		})
	}
}

func TestBackedUpTrees(t *testing.T) {
	const list = `{"` + xptest.ManagedVersion + `/Bucket":["a","b"],"v1/Secret":["team-a/s"],"gone.example.org/v1/Thing":["team-a/t"],` +
		`"` + xptest.LegacyVersion + `/OrderClaim":["team-a/o","team-b/o"],"pkg.crossplane.io/v1/Gone":["p"]}`
	all := []string{"Bucket a", "Bucket b", "OrderClaim team-a/o", "OrderClaim team-b/o", "Thing team-a/t"}
	cases := map[string]struct {
		reason  string
		options []xptest.Option
		want    []string
		skipped bool
	}{
		"All":       {reason: "A kind that is not served is one that is missing, unless Crossplane or Kubernetes has it.", want: all},
		"Star":      {reason: "It means all.", options: []xptest.Option{xptest.Field([]any{"*"}, "spec", "includedNamespaces")}, want: all},
		"Namespace": {reason: "Cluster-scoped objects don't belong to it.", options: []xptest.Option{xptest.Field([]any{"team-a"}, "spec", "includedNamespaces")}, want: []string{"OrderClaim team-a/o", "Thing team-a/t"}},
		"Glob":      {reason: "Velero's lists of namespaces have globs.", options: []xptest.Option{xptest.Field([]any{"*-b"}, "spec", "includedNamespaces")}, want: []string{"OrderClaim team-b/o"}},
		"Without":   {reason: "Velero leaves out cluster-scoped objects then.", options: []xptest.Option{xptest.Field([]any{"team-a"}, "spec", "excludedNamespaces")}, want: []string{"OrderClaim team-b/o"}},
		"Cluster": {
			reason:  "They are asked for.",
			options: []xptest.Option{xptest.Field([]any{"team-a"}, "spec", "excludedNamespaces"), xptest.Field(true, "spec", "includeClusterResources")},
			want:    []string{"Bucket a", "Bucket b", "OrderClaim team-b/o"},
		},
		"Mapped": {
			reason: "It comes back under another name.", want: []string{"OrderClaim drill/o", "Thing drill/t"},
			options: []xptest.Option{xptest.Field([]any{"team-a"}, "spec", "includedNamespaces"), xptest.Field("drill", "spec", "namespaceMapping", "team-a")},
		},
		"Resources": {
			reason: "Both forms of a resource count.", want: []string{"Thing team-a/t"},
			options: []xptest.Option{xptest.Field([]any{"buckets.cloud.example.org", "orderclaims"}, "spec", "excludedResources")},
		},
		"Labels": {reason: "The list has no labels.", options: []xptest.Option{xptest.Field("b", "spec", "labelSelector", "matchLabels", "a")}, skipped: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			for gv, category := range map[string]string{xptest.ManagedVersion: xp.CategoryManaged, xptest.LegacyVersion: xp.CategoryComposite} {
				for n := range s.kinds[gv] {
					s.kinds[gv][n].Categories, s.kinds[gv][n].Verbs = []string{category}, []string{"list"}
				}
			}
			c := s.cluster()
			c.download = func(_ context.Context, _ *velerov1.Backup, w io.Writer) error {
				_, err := io.WriteString(w, list)

				return err
			}
			refs, ok, err := c.BackedUpTrees(t.Context(), xptest.Object("velero.io/v1", "Restore", "velero", "r", tc.options...), xptest.Object("velero.io/v1", "Backup", "velero", "b"))
			if err != nil || ok == tc.skipped {
				t.Fatalf("%s: %t, %v", tc.reason, ok, err)
			}
			var got []string
			for _, r := range refs {
				got = append(got, r.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAwaitRestore(t *testing.T) {
	of := func(phase string) *server {
		s := newServer(xptest.Object("velero.io/v1", "Restore", "velero", "r", xptest.Field(phase, "status", "phase")))
		s.kinds["velero.io/v1"] = append(s.kinds["velero.io/v1"], metav1.APIResource{Name: "restores", Kind: "Restore", Namespaced: true})

		return s
	}
	begun := xptest.Object("velero.io/v1", "Restore", "velero", "r")
	if u, err := of("Completed").cluster().AwaitRestore(t.Context(), begun, time.Millisecond); err != nil || u.Object["status"] == nil {
		t.Errorf("a Restore that is over: %v, %v", u, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if u, err := of("InProgress").cluster().AwaitRestore(ctx, begun, time.Millisecond); !errors.Is(err, context.DeadlineExceeded) || u == nil {
		t.Errorf("a Restore that is not over: %v, %v", u, err)
	}
}

//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// These are the default ProviderConfig of a scope, and the Secret that it names.
const (
	keptConfig = `
apiVersion: %s
kind: %s
metadata: {name: default}
spec: {credentials: {source: Secret, secretRef: {namespace: upjet-keys, name: %s, key: credentials}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: upjet-keys}
`
	//nolint:gosec // It is no real token.
	keptSecret = `
apiVersion: v1
kind: Secret
metadata: {namespace: upjet-keys, name: %s}
stringData: {%s: '{"token": "t"}'}
`
)

func TestMatrixUpjetCredentialsV1(t *testing.T) { testUpjetCredentials(t, stack.V1, "v1.20") }

func TestMatrixUpjetCredentialsV2(t *testing.T) { testUpjetCredentials(t, stack.V2, "v2") }

// testUpjetCredentials loses a cluster whose provider gets its credentials some time after the
// restore, as from a store outside the backup.
func testUpjetCredentials(t *testing.T, version stack.Version, dir string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	single, fleet := filepath.Join("testdata", dir, "upjet", "single"), filepath.Join("testdata", dir, "upjet", "fleet")
	lost := &shape{reason: "After a restore by Velero alone, upjet creates again what its status would find.", Scene: drill.Scene{Name: "lost", Dir: single}}
	with := []*shape{
		{reason: "An MR whose provider has no credentials must wait.", Scene: drill.Scene{Name: "keyless", Dir: single}},
		{reason: "So must composed MRs.", Scene: drill.Scene{Name: "locked", Dir: fleet, Count: 2}},
	}
	if version.IsV1() {
		lost.BackupArgs, with[0].BackupArgs = selected(lost.Name), selected(with[0].Name)
	}
	s := newUpjet(t, version)
	s.source = s.upjet(t, "source", with)
	s.keepKeys(t, s.source, "source")
	must(t, s.source.Apply(ctx, fmt.Appendf(nil, keptSecret, "source", "credentials")))
	for _, n := range slices.Concat([]*shape{lost}, with) {
		must(t, n.Make(ctx, s.source))
	}
	must(t, s.source.RestartVelero(ctx))
	s.storeUpjet(t, lost)
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range with {
		s.storeUpjet(t, n)
	}
	must(t, s.source.Destroy())

	s.target = s.upjet(t, "target", with)
	s.keepKeys(t, s.target, "alone")
	must(t, s.target.RestartVelero(ctx))
	t.Run("VeleroAlone", func(t *testing.T) {
		must(t, lost.StartRestore(t.Context(), s.target))
		s.awaitCompleted(t, lost.Name)
		s.testKeyless(t, lost, false)
		must(t, s.target.Apply(t.Context(), fmt.Appendf(nil, keptSecret, "alone", "credentials")))
		s.testMade(t, lost, "cluster", "nameless")
	})
	s.keepKeys(t, s.target, "late")
	must(t, s.target.UsePlugin(ctx, true))
	for _, n := range with {
		must(t, n.StartRestore(ctx, s.target))
	}
	t.Run("NoSecret", func(t *testing.T) { s.testAllKeyless(t, with, "not found") })
	must(t, s.target.Apply(ctx, fmt.Appendf(nil, keptSecret, "late", "other")))
	t.Run("NoKey", func(t *testing.T) { s.testAllKeyless(t, with, "unexpected end of JSON input") })
	must(t, s.target.Apply(ctx, fmt.Appendf(nil, keptSecret, "late", "credentials")))
	for _, n := range with {
		t.Run(n.Name, func(t *testing.T) { s.testUpjetRestored(t, n) })
	}
}

// keepKeys makes the default ProviderConfig name a Secret for credentials, which may not exist.
func (s *suite) keepKeys(t *testing.T, c *stack.Cluster, secret string) {
	t.Helper()
	group, kind := "upjet.m.example.org/v1beta1", "ClusterProviderConfig"
	if s.version.IsV1() {
		group, kind = "upjet.example.org/v1beta1", "ProviderConfig"
	}
	must(t, c.Apply(t.Context(), fmt.Appendf(nil, keptConfig, group, kind, secret)))
}

// testMade expects external resources to be created for the MRs, and for no others of the scene.
func (s *suite) testMade(t *testing.T, n *shape, mrs ...string) {
	t.Helper()
	s.eventually(t, "upjet to create again what it can't find", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err != nil {
			return err
		}
		var want []string
		for _, mr := range mrs {
			want = append(want, n.Name+"-"+mr)
		}
		if got := makers(changes); !slices.Equal(got, want) {
			return fmt.Errorf("it created %v again, not %v", got, want)
		}

		return nil
	})
}

// testAllKeyless expects the MRs of all scenes to wait for credentials, held and named.
func (s *suite) testAllKeyless(t *testing.T, scenes []*shape, why string) {
	for _, n := range scenes {
		s.eventually(t, "a line for each MR of "+n.Name, func(ctx context.Context) error { return s.saidKeyless(ctx, n, why) })
		s.testKeyless(t, n, true)
	}
}

// saidKeyless returns an error until each MR of a scene has the message why its calls fail.
func (s *suite) saidKeyless(ctx context.Context, n *shape, why string) error {
	mrs, err := s.upjets(ctx, s.target, n)
	if err != nil {
		return err
	}
	if len(mrs) == 0 {
		return errors.New("there are no MRs")
	}
	var missing []error
	for _, u := range mrs {
		if got := message(&u, "Synced"); !strings.Contains(got, why) {
			missing = append(missing, fmt.Errorf("%s %s reports %q", u.GetKind(), u.GetName(), got))
		}
	}

	return errors.Join(missing...)
}

// testKeyless expects no call for a scene once each MR has reported that it has no credentials, and
// its MRs to be held or not.
func (s *suite) testKeyless(t *testing.T, n *shape, held bool) {
	t.Helper()
	s.eventually(t, "the provider to want the credentials for "+n.Name, func(ctx context.Context) error { return s.saidKeyless(ctx, n, "credentials") })
	ctx := t.Context()
	calls, err := s.cloud.Journal(ctx, n.ledger.Seq, api.Read, api.Create, api.Update, api.Delete)
	must(t, err)
	for _, e := range calls {
		if e.Cluster == s.target.Name() && strings.Contains(e.ManagedBy, n.Name+"-") {
			t.Errorf("%s In the cloud: %v", n.reason, e)
		}
	}
	mrs, err := s.upjets(ctx, s.target, n)
	must(t, err)
	for _, u := range mrs {
		if drill.Held(&u) != held {
			t.Errorf("%s %s %s has the policies %v, annotations %v", n.reason, u.GetKind(), u.GetName(), policies(&u), u.GetAnnotations())
		}
	}
}

// message returns the message of a condition.
func message(u *unstructured.Unstructured, condition string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, is := c.(map[string]any); is && c["type"] == condition {
			m, _ := c["message"].(string)

			return m
		}
	}

	return ""
}

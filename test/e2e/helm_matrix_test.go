//go:build matrix

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestMatrixHelm has the Releases of each version, and on v2 also the cluster-scoped ones, which
// claims compose.
func TestMatrixHelm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version    stack.Version
		dir, group string
	}{
		"V1":       {version: stack.V1, dir: "v1.20", group: "helm.crossplane.io"},
		"V20":      {version: stack.V20, dir: "v2", group: "helm.m.crossplane.io"},
		"V2":       {version: stack.V2, dir: "v2", group: "helm.m.crossplane.io"},
		"V2Claims": {version: stack.V2, dir: "v1.20", group: "helm.crossplane.io"},
		"V24":      {version: stack.V24, dir: "v2", group: "helm.m.crossplane.io"},
	} {
		t.Run(name, func(t *testing.T) { testHelm(t, c.version, c.dir, c.group) })
	}
}

// testHelm loses a cluster in which provider-helm has installed charts that generate a password
// each. The provider recognizes an installed chart by Helm's Secret in the namespace.
func testHelm(t *testing.T, version stack.Version, dir, group string) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	chart := serveChart(t)
	scenes := make([]*helmScene, 3)
	for i, name := range []string{"again", "brought", "leftout"} {
		scenes[i] = newHelmScene(t, name, filepath.Join("testdata", dir, "helm"), chart)
		scenes[i].kind = schema.GroupVersionKind{Group: group, Version: "v1beta1", Kind: "Release"}
	}
	again, brought, leftOut := scenes[0], scenes[1], scenes[2]
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true, HelmProvider: true})
	up := func(name string) *stack.Cluster {
		c, err := stack.NewCluster(ctx, s.host, stack.Options{Name: name, Crossplane: s.version, HelmProvider: true, VeleroArgs: oftener})
		must(t, err)
		for _, n := range scenes {
			must(t, n.Install(ctx, c, ""))
		}
		must(t, c.RestartVelero(ctx))

		return c
	}
	s.source = up("source")
	must(t, s.source.UsePlugin(ctx, true))
	for _, n := range scenes {
		must(t, n.Make(ctx, s.source))
	}
	for _, n := range scenes {
		must(t, s.source.Wait(ctx, patience, "the chart to be installed", func(ctx context.Context) error { return n.ready(ctx, s.source) }))
		must(t, n.AwaitReady(ctx, s.source))
		var err error
		n.before, err = n.installedIn(ctx, s.source)
		must(t, err)
		must(t, n.BackUp(ctx, s.source))
	}
	must(t, s.source.Destroy())

	s.target = up("target")
	t.Run("VeleroAlone", func(t *testing.T) { s.testInstalledAgain(t, again) })
	must(t, s.target.UsePlugin(ctx, true))
	t.Run("Brought", func(t *testing.T) {
		must(t, brought.StartRestore(ctx, s.target))
		s.awaitCompleted(t, brought.Name)
		s.wantInstalledOnce(t, brought)
	})
	t.Run("LeftOut", func(t *testing.T) { s.testLeftOut(t, leftOut) })
}

// testInstalledAgain is the control: Velero alone restores a Release without Secrets, which a user
// can ask for, and the chart generates another password. The old one comes back too late.
func (s *suite) testInstalledAgain(t *testing.T, n *helmScene) {
	ctx := t.Context()
	anew := func(ctx context.Context) error {
		now, err := n.installedIn(ctx, s.target)
		for name, password := range n.before.Passwords {
			if is := now.Passwords[name]; is == "" || is == password {
				err = errors.Join(err, fmt.Errorf("%s is not there, or what it was", name))
			}
		}

		return err
	}
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-1", n.Name, "--exclude-resources", "secrets"))
	s.awaitCompleted(t, n.Name+"-1")
	s.eventually(t, "the provider to install what it does not find", anew)
	must(t, drill.Platform{}.StartRestore(ctx, s.target, n.Name+"-2", n.Name, "--include-resources", "secrets"))
	s.awaitCompleted(t, n.Name+"-2")
	if err := anew(ctx); err != nil {
		t.Errorf("Nothing is lost, so the other tests prove nothing: %v", err)
	}
}

// A helmScene is a namespace with an XR that composes a Release.
type helmScene struct {
	drill.Scene

	// kind is the kind of its Release.
	kind   schema.GroupVersionKind
	before installed
}

// newHelmScene returns a scene whose manifests have the chart's URL.
func newHelmScene(t *testing.T, name, dir, chart string) *helmScene {
	t.Helper()
	n := &helmScene{Scene: drill.Scene{Name: name, Dir: t.TempDir()}}
	for _, file := range []string{"platform.yaml", "objects.yaml"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(n.Dir, file), bytes.ReplaceAll(b, []byte("${chart}"), []byte(chart)), 0o644))
	}

	return n
}

// serveChart serves a chart that generates a password at its installation, and returns its URL.
// provider-helm caches charts by name.
func serveChart(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, file := range [][2]string{
		{"shop/Chart.yaml", "apiVersion: v2\nname: shop\nversion: 1.0.0\n"},
		{"shop/templates/secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}-password\n" +
			"data:\n  password: {{ randAlphaNum 16 | b64enc }}\n"},
	} {
		must(t, w.WriteHeader(&tar.Header{Name: file[0], Mode: 0o644, Size: int64(len(file[1]))}))
		_, err := w.Write([]byte(file[1]))
		must(t, err)
	}
	must(t, errors.Join(w.Close(), z.Close()))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b.Bytes()) }))
	t.Cleanup(web.Close)

	return fmt.Sprintf("%s/shop-%x.tgz", web.URL, sha256.Sum256(b.Bytes()))
}

// installed is what Helm and a chart have in a namespace: the state of each revision of the
// release, and the passwords of the chart by their Secrets.
type installed struct {
	Revisions, Passwords map[string]string
}

// installedIn returns it, and an error if there is none.
func (n *helmScene) installedIn(ctx context.Context, c *stack.Cluster) (installed, error) {
	in := installed{Revisions: map[string]string{}, Passwords: map[string]string{}}
	all, err := list(ctx, c, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, n.Name, "")
	for _, u := range all {
		data, _, _ := unstructured.NestedStringMap(u.Object, "data")
		switch {
		case u.GetLabels()["owner"] == "helm":
			in.Revisions[u.GetName()] = fmt.Sprintf("%x", sha256.Sum256([]byte(data["release"])))
		case strings.HasSuffix(u.GetName(), "-password"):
			in.Passwords[u.GetName()] = data["password"]
		}
	}
	if err == nil && (len(in.Revisions) == 0 || len(in.Passwords) == 0) {
		err = fmt.Errorf("there are the secrets %v", names(all))
	}

	return in, err
}

// release returns the Release of the scene.
func (n *helmScene) release(ctx context.Context, c *stack.Cluster) (*unstructured.Unstructured, error) {
	all, err := list(ctx, c, n.kind, n.Name, "")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(u unstructured.Unstructured) bool { return !strings.HasPrefix(u.GetName(), n.Name+"-") })
	if len(all) != 1 {
		return nil, fmt.Errorf("there are the Releases %v", names(all))
	}

	return &all[0], nil
}

// ready returns an error unless the provider has observed the release.
func (n *helmScene) ready(ctx context.Context, c *stack.Cluster) error {
	u, err := n.release(ctx, c)
	if err != nil {
		return err
	}
	if drill.Held(u) || paused(u) {
		return fmt.Errorf("%s is held: %v", u.GetName(), u.GetAnnotations())
	}

	return errors.Join(stack.HasCondition(u, "Ready", "True"), stack.HasCondition(u, "Synced", "True"))
}

// wantInstalledOnce checks, after the provider has observed the release, that release and password
// are the ones of the backup.
func (s *suite) wantInstalledOnce(t *testing.T, n *helmScene) {
	t.Helper()
	ctx := t.Context()
	s.eventually(t, "the provider to find the release", func(ctx context.Context) error { return n.ready(ctx, s.target) })
	must(t, n.AwaitReady(ctx, s.target))
	after, err := n.installedIn(ctx, s.target)
	must(t, err)
	if diff := cmp.Diff(n.before, after); diff != "" {
		t.Errorf("A chart that is installed is not installed again: -before, +after:\n%s", diff)
	}
}

// testLeftOut restores a Release without Secrets, and follows the instructions of its hold.
func (s *suite) testLeftOut(t *testing.T, n *helmScene) {
	ctx := t.Context()
	n.RestoreArgs = append(n.RestoreArgs, "--exclude-resources", "secrets")
	must(t, n.StartRestore(ctx, s.target))
	must(t, drill.AwaitOperations(ctx, s.target, n.Name))
	var mark struct {
		Reason string `json:"reason"`
		Inputs []struct {
			Name string `json:"name"`
			By   string `json:"by"`
		} `json:"inputs"`
	}
	s.eventually(t, "the restore to name the release that is missing", func(ctx context.Context) error {
		u, err := n.release(ctx, s.target)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(markOf(u)), &mark); err != nil || !paused(u) || len(mark.Inputs) != 1 {
			return errors.Join(err, fmt.Errorf("it is not held for it: %v", u.GetAnnotations()))
		}
		details, err := s.target.Velero(ctx, "restore", "describe", n.Name, "--details")
		if err == nil && linesWith(details, mark.Inputs[0].Name, "in which Helm keeps its release", "installs the chart again") == 0 {
			err = fmt.Errorf("no line does:\n%s", details)
		}

		return err
	})
	if _, err := n.installedIn(ctx, s.target); err == nil {
		t.Error("the chart was installed again, without what Helm knows of it")
	}
	want := "velero restore create --from-backup " + n.Name + " --include-namespaces " + n.Name + " --include-resources secrets"
	if _, was := n.before.Revisions[mark.Inputs[0].Name]; !was || mark.Inputs[0].By != want {
		t.Errorf("It waits for %q, which comes back by %q, and not for one of %v, by %q", mark.Inputs[0].Name, mark.Inputs[0].By, n.before.Revisions, want)
	}
	_, err := s.target.Velero(ctx, strings.Fields(mark.Inputs[0].By)[1:]...)
	must(t, err)
	s.awaitCompleted(t, n.Name)
	s.wantInstalledOnce(t, n)
}

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/image"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// TestInstallV2 installs the plugin from its image.
func TestInstallV2(t *testing.T) {
	t.Parallel()
	s := newSuite(t, stack.V2)
	s.target = s.source
	n := s.few(t, s.target, drill.Platform{Namespace: "installed", Orphan: true}, 1)
	t.Run("PluginAdd", s.testPluginAdd)
	t.Run("Image", func(t *testing.T) { s.testImage(t, n) })
}

// testPluginAdd runs "velero plugin add" on velero's own Deployment, without its containers. It must
// add an init container without a command of its own, which fills the server's volume of plugins.
func (s *suite) testPluginAdd(t *testing.T) {
	const namespace, name = "added", "ghcr.io/crossplane-contrib/velero-plugin-for-crossplane:v0.1.0"
	ctx := t.Context()
	velero := func(args ...string) string {
		t.Helper()
		out, err := s.target.Velero(ctx, append(args, "--namespace="+namespace)...)
		must(t, err)

		return out
	}
	objects, err := stack.Parse([]byte(velero("install", "--dry-run", "-o", "yaml", "--no-secret", "--no-default-backup-location", "--use-volume-snapshots=false",
		"--plugins=velero/velero-plugin-for-aws:v1.14.3")))
	must(t, err)
	for _, u := range objects {
		if slices.Contains([]string{"Namespace", "Deployment"}, u.GetKind()) {
			must(t, s.target.ApplyObjects(ctx, u))
		}
	}
	velero("plugin", "add", name, "--confirm") // It asks first, because the server restarts.
	client, err := kubernetes.NewForConfig(s.target.REST())
	must(t, err)
	d, err := client.AppsV1().Deployments(namespace).Get(ctx, "velero", metav1.GetOptions{})
	must(t, err)
	pod := d.Spec.Template.Spec
	want := corev1.Container{
		Name: "crossplane-contrib-velero-plugin-for-crossplane", Image: name, ImagePullPolicy: corev1.PullIfNotPresent,
		VolumeMounts:           []corev1.VolumeMount{{Name: "plugins", MountPath: image.Target}},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	if diff := cmp.Diff(want, pod.InitContainers[len(pod.InitContainers)-1]); diff != "" {
		t.Errorf("-want, +added:\n%s", diff)
	}
	if serves := (corev1.VolumeMount{Name: "plugins", MountPath: "/plugins"}); !slices.Contains(pod.Containers[0].VolumeMounts, serves) {
		t.Errorf("Velero's server looks for plugins elsewhere: %v", pod.Containers[0].VolumeMounts)
	}
}

// testImage builds the image, runs it as that init container, and gives Velero the volume.
func (s *suite) testImage(t *testing.T, n *tenant) {
	const version, commit = "v1.2.3-image", "0123456789"
	ctx := t.Context()
	before := s.actions(t)
	root, err := build.Root()
	must(t, err)
	b := image.Build{Root: root, Dir: t.TempDir(), Version: version, Commit: commit, Created: time.Unix(0, 0)}
	built, err := b.Image(ctx, image.Local())
	must(t, err)
	c, err := image.Unpack(built, filepath.Join(t.TempDir(), "container"))
	must(t, err)
	said, alone, err := c.Start(ctx)
	must(t, err)
	t.Logf("alone in its file system: %t: %s", alone, said)
	installed, err := c.Installed()
	must(t, err)
	must(t, s.target.UsePluginFile(ctx, installed))
	defer func() { must(t, s.target.UsePlugin(ctx, true)) }() // The volume goes with the test.
	if diff := cmp.Diff(before, s.actions(t)); diff != "" || len(before) == 0 {
		t.Errorf("Velero must find the actions of the image's plugin: -want, +got:\n%s", diff)
	}

	s.backUp(t, s.target, n)
	must(t, n.DeleteNamespace(ctx, s.target))
	s.restore(t, n, n.Namespace, "--include-namespaces", n.Namespace)
	s.settle(t, n)
	s.wantSound(t, n)
	for _, of := range []string{"backup", "restore"} {
		log, err := s.target.Velero(ctx, of, "logs", n.Namespace)
		must(t, err)
		if strings.Count(log, "velero-plugin-for-crossplane "+version+" (commit "+commit+", go") != 1 {
			t.Errorf("the log of the %s must name the version once: %s", of, log)
		}
	}
}

// actions returns the names and kinds of the plugin's actions that Velero has found.
func (s *suite) actions(t *testing.T) []string {
	t.Helper()
	out, err := s.target.Velero(t.Context(), "plugin", "get")
	must(t, err)
	var ours []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "velero.crossplane.io/") {
			ours = append(ours, strings.Join(strings.Fields(line), " "))
		}
	}
	slices.Sort(ours)

	return ours
}

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
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

// testPluginAdd runs "velero plugin add" on velero's own Deployment, without its containers.
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
	client, err := kubernetes.NewForConfig(s.target.REST())
	must(t, err)
	deployed := func() appsv1.DeploymentSpec {
		t.Helper()
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, "velero", metav1.GetOptions{})
		must(t, err)

		return d.Spec
	}
	before := deployed()
	serves := corev1.VolumeMount{Name: "plugins", MountPath: "/plugins"}
	if !slices.Contains(before.Template.Spec.Containers[0].VolumeMounts, serves) {
		t.Fatalf("Velero's server looks for plugins elsewhere: %v", before.Template.Spec.Containers[0].VolumeMounts)
	}

	velero("plugin", "add", name, "--confirm") // It asks first, because the server restarts.
	want := before.DeepCopy()
	want.Template.Spec.InitContainers = append(want.Template.Spec.InitContainers, corev1.Container{
		Name: "crossplane-contrib-velero-plugin-for-crossplane", Image: name, ImagePullPolicy: corev1.PullIfNotPresent,
		VolumeMounts:           []corev1.VolumeMount{{Name: "plugins", MountPath: image.Target}},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	})
	if diff := cmp.Diff(*want, deployed()); diff != "" {
		t.Errorf("velero plugin add must add an init container without a command of its own, and nothing else: -want, +got:\n%s", diff)
	}

	velero("plugin", "remove", name)
	if diff := cmp.Diff(before, deployed()); diff != "" {
		t.Errorf("velero plugin remove must take that away again: -want, +got:\n%s", diff)
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

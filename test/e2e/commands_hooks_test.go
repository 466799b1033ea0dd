package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const (
	// pluginInImage is the plugin's path in the examples.
	pluginInImage = "/plugins/velero-plugin-for-crossplane"
	// Names of the examples' Deployments and containers.
	application, checker, waiter = "shop", "crossplane-check", "wait-for-crossplane"
	tokens                       = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // It is a path.
)

// A hooked namespace has the application of the examples, which waits for its XR or claim, and the
// Pod that validates the restore.
type hooked struct {
	*tenant

	// bySpec is whether the Restore has the hooks, rather than the Pods.
	bySpec bool
}

// leaked is the namespace whose restore gives up.
const leaked = "leaked"

// example returns the objects of a file in the example folder, with the namespace and the name of
// the XR or claim filled in as the file asks its user to.
func (n *tenant) example(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	b, err := os.ReadFile(filepath.Join(root, "example", file))
	must(t, err)
	text := strings.NewReplacer("team-a", n.Namespace, application, n.Name(0)).Replace(string(b))
	objects, err := stack.Parse([]byte(text))
	must(t, err)

	return objects
}

// makeHooked fills the namespaces and backs them up.
func (s *suite) makeHooked(t *testing.T) []*hooked {
	t.Helper()
	all := []*hooked{
		{tenant: &tenant{Platform: drill.Platform{Namespace: "hooked"}}},
		{tenant: &tenant{Platform: drill.Platform{Namespace: "alarmed"}}, bySpec: true},
		{tenant: &tenant{Platform: drill.Platform{Namespace: leaked}}},
	}
	for _, h := range all {
		h.tenant = s.few(t, s.source, h.Platform, 1)
		if h.Namespace == leaked {
			continue // It needs no Pods.
		}
		for _, u := range slices.Concat(h.example(t, "rbac/wait.yaml"), h.example(t, "hooks/init.yaml"), h.example(t, "hooks/exec.yaml")) {
			if u.GetKind() == "Deployment" {
				u = h.podOf(t, u)
			}
			if u.GetNamespace() == h.Namespace {
				must(t, s.source.ApplyObjects(t.Context(), u))
			}
		}
	}
	for _, h := range all {
		s.backUp(t, s.source, h.tenant)
	}

	return all
}

func tenantsOf(all []*hooked) []*tenant {
	tenants := make([]*tenant, 0, len(all))
	for _, h := range all {
		tenants = append(tenants, h.tenant)
	}

	return tenants
}

// podOf creates the Pod of a Deployment, as Kubernetes' controllers would. If the Restore has the
// hooks, the Pod has no annotations, and a token of its own.
func (h *hooked) podOf(t *testing.T, deployment *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	template, _, err := unstructured.NestedMap(deployment.Object, "spec", "template")
	must(t, err)
	pod := &unstructured.Unstructured{Object: template}
	pod.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	pod.SetNamespace(h.Namespace)
	pod.SetName(deployment.GetName())
	if !h.bySpec {
		return pod
	}
	pod.SetAnnotations(nil)
	must(t, unstructured.SetNestedField(pod.Object, false, "spec", "automountServiceAccountToken"))
	volumes, _, _ := unstructured.NestedSlice(pod.Object, "spec", "volumes")
	must(t, unstructured.SetNestedSlice(pod.Object, append(volumes, h.tokenVolume(t)), "spec", "volumes"))

	return pod
}

// tokenVolume returns the volume in the comment of restore.yaml.
func (h *hooked) tokenVolume(t *testing.T) any {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	b, err := os.ReadFile(filepath.Join(root, "example", "hooks", "restore.yaml"))
	must(t, err)
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		if code, ok := strings.CutPrefix(line, "#   "); ok {
			text.WriteString(code)
		}
	}
	var volumes []any
	must(t, yaml.Unmarshal([]byte(text.String()), &volumes))

	return volumes[0]
}

// restoreHooked starts the restore of a namespace.
func (s *suite) restoreHooked(t *testing.T, h *hooked) {
	t.Helper()
	if !h.bySpec {
		must(t, h.StartRestore(t.Context(), s.target, h.Namespace, h.Namespace))

		return
	}
	s.eventually(t, "the Backup "+h.Namespace, func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "backup", "get", h.Namespace)

		return err
	})
	must(t, s.target.ApplyObjects(t.Context(), h.example(t, "hooks/restore.yaml")...))
}

// testHooks restores the namespaces while the provider is down, so that their XRs are held. There
// is no kubelet: the test runs the hooks as the ServiceAccount of the Pod, with the command that
// Velero has put into the Pod or asks the API server to execute in it.
func (s *suite) testHooks(t *testing.T, all []*hooked) {
	ctx := t.Context()
	calm, alarmed, lost := all[0], all[1], all[2]
	all = all[:2]
	s.allowChecks(t, all)
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, lost.StartRestore(ctx, s.target, leaked, leaked, "--item-operation-timeout", "1s"))
	for _, h := range all {
		s.restoreHooked(t, h)
	}
	for _, h := range all {
		must(t, drill.AwaitItems(ctx, s.target, h.Namespace))
	}
	node := newKubelet(t, s.target, "node", s.execAs(t, all))

	waits := make(chan run, len(all))
	for _, h := range all {
		pod := s.restoredPod(t, h, h.Name(0))
		command, as := s.wantInitContainer(t, h, pod)
		soon := slices.Concat(command, []string{"--timeout=1s"})
		if r := commandAs(t, s.target, as, soon...); r.code != 4 {
			t.Errorf("The init container ended with %d while %s is held:\n%s%s", r.code, h.Name(0), r.stdout, r.stderr)
		}
		go func() { waits <- s.runAs(ctx, as, command) }()
	}
	// The check does not wait here, so it finds the holds.
	node.start(t, alarmed.Namespace, checker)
	s.wantPhase(t, leaked, "PartiallyFailed")
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for range all {
		if r := <-waits; r.code != 0 {
			t.Errorf("The init container ended with %d after the adoption:\n%s%s", r.code, r.stdout, r.stderr)
		}
	}
	for _, h := range all {
		instances, err := h.Instances(ctx, s.target)
		must(t, err)
		if len(instances) != 1 || drill.Held(&instances[0]) {
			t.Errorf("The init container has ended, and in %s there are %v", h.Namespace, instances)
		}
	}
	s.wantInitContainer(t, calm, s.restoredPod(t, calm, checker))
	node.start(t, calm.Namespace, checker)
	s.awaitCompleted(t, calm.Namespace)
	s.wantPhase(t, alarmed.Namespace, "PartiallyFailed")
	for _, h := range all {
		s.wantHooksRun(t, h)
		s.settle(t, h.tenant)
		s.wantSound(t, h.tenant)
	}
}

// allowChecks grants the rights that the backup of a namespace does not include.
func (s *suite) allowChecks(t *testing.T, all []*hooked) {
	t.Helper()
	for _, h := range all {
		for _, u := range append(h.example(t, "rbac/validate.yaml"), h.example(t, "hooks/exec.yaml")...) {
			if u.GetNamespace() != h.Namespace {
				must(t, s.target.ApplyObjects(t.Context(), u))
			}
		}
	}
}

func (s *suite) restoredPod(t *testing.T, h *hooked, name string) *corev1.Pod {
	t.Helper()
	admin, err := kubernetes.NewForConfig(s.target.REST())
	must(t, err)
	pod, err := admin.CoreV1().Pods(h.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)

	return pod
}

// wantInitContainer checks that the Pod runs the wait before any other container, with the token of
// its ServiceAccount. It returns the arguments and the ServiceAccount's kubeconfig.
func (s *suite) wantInitContainer(t *testing.T, h *hooked, pod *corev1.Pod) (arguments []string, kubeconfig string) {
	t.Helper()
	first := pod.Spec.InitContainers[0]
	want := []string{pluginInImage, "wait", h.Name(0), "--for=adopted", "--namespace=" + h.Namespace, "--timeout=1h"}
	if diff := cmp.Diff(want, first.Command); first.Name != waiter || diff != "" {
		t.Fatalf("The first init container of Pod %s/%s is %s, -want, +got:\n%s", pod.Namespace, pod.Name, first.Name, diff)
	}
	mounted := slices.IndexFunc(first.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokens })
	if mounted < 0 || !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == first.VolumeMounts[mounted].Name && v.Projected != nil &&
			slices.ContainsFunc(v.Projected.Sources, func(p corev1.VolumeProjection) bool { return p.ServiceAccountToken != nil })
	}) {
		t.Fatalf("The init container of Pod %s/%s has no token: %+v", pod.Namespace, pod.Name, first.VolumeMounts)
	}

	return first.Command[1:], s.account(t, pod.Namespace, pod.Spec.ServiceAccountName).kubeconfig
}

// runAs runs the plugin as the user of a kubeconfig. Any goroutine may call it.
func (s *suite) runAs(ctx context.Context, kubeconfig string, args []string) run {
	stdout, stderr, code, err := s.target.Plugin(ctx, kubeconfig, args...)
	if err != nil {
		return run{stderr: err.Error(), code: -1}
	}

	return run{stdout: stdout, stderr: stderr, code: code}
}

// execAs returns a function that runs the command of an exec hook as the ServiceAccount of the Pod.
func (s *suite) execAs(t *testing.T, all []*hooked) func(ctx context.Context, pod string, command []string) run {
	t.Helper()
	as := map[string]string{}
	for _, h := range all {
		as[h.Namespace+"/"+checker] = s.account(t, h.Namespace, s.restoredPod(t, h, checker).Spec.ServiceAccountName).kubeconfig
	}

	return func(ctx context.Context, pod string, command []string) run {
		kubeconfig, ok := as[pod]
		if !ok || len(command) == 0 || command[0] != pluginInImage {
			return run{stderr: fmt.Sprintf("cannot run %q in %s", command, pod), code: 127}
		}

		return s.runAs(ctx, kubeconfig, command[1:])
	}
}

// wantHooksRun checks that Velero has run one exec hook and reports its result.
func (s *suite) wantHooksRun(t *testing.T, h *hooked) {
	t.Helper()
	u, err := get(t.Context(), s.target, veleroRestore, "velero", h.Namespace)
	must(t, err)
	got, _, err := unstructured.NestedMap(u.Object, "status", "hookStatus")
	must(t, err)
	want := map[string]any{"hooksAttempted": int64(1)}
	if h.bySpec {
		want["hooksFailed"] = int64(1)
		wantMessage(t, "the details of the restore", s.details(t, h.Namespace), "exit code 3")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks of restore %s: -want, +got:\n%s", h.Namespace, diff)
	}
}

// testJobs runs the containers of the Job one after the other, after a restore.
func (s *suite) testJobs(t *testing.T, h *hooked) {
	must(t, s.target.ApplyObjects(t.Context(), h.example(t, "rbac/validate.yaml")...))
	job := h.example(t, "hooks/job.yaml")[0]
	var spec batchv1.Job
	must(t, kruntime.DefaultUnstructuredConverter.FromUnstructured(job.Object, &spec))
	pod := spec.Spec.Template.Spec
	a := s.account(t, job.GetNamespace(), pod.ServiceAccountName)
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if r := commandAs(t, s.target, a.kubeconfig, c.Command[1:]...); r.code != 0 || c.Command[0] != pluginInImage {
			t.Errorf("%v ended with %d:\n%s%s", c.Command, r.code, r.stdout, r.stderr)
		}
	}
	if r := command(t, s.target, "validate", "--newest-restore=1ms", "-o", "json"); r.code != 3 || !strings.Contains(r.stdout, "it is the newest") {
		t.Errorf("With an old Restore the check ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// testExamples makes the API server check all manifests for unknown fields, without storing them.
func (s *suite) testExamples(t *testing.T, h *hooked) {
	root, err := build.Root()
	must(t, err)
	for _, folder := range []string{".", "gitops", "hooks", "rbac", "velero", h.Dir()} {
		files, err := filepath.Glob(filepath.Join(root, "example", folder, "*.yaml"))
		must(t, err)
		if len(files) == 0 {
			t.Errorf("There is nothing in the folder %s", folder)
		}
		for _, file := range files {
			if filepath.Base(file) == "kustomization.yaml" {
				continue // The API server has no such kind. Other tests build it.
			}
			for _, u := range h.example(t, filepath.Join(folder, filepath.Base(file))) {
				if err := s.tryOut(t.Context(), u); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
		}
	}
}

func (s *suite) tryOut(ctx context.Context, u *unstructured.Unstructured) error {
	r, err := s.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
	if err != nil {
		return err
	}
	b, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = r.Patch(ctx, u.GetName(), types.ApplyPatchType, b, metav1.PatchOptions{
		FieldManager: "example", FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}, Force: new(true),
	})

	return err
}

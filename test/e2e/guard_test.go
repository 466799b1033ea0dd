package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const guardName = "velero-plugin-for-crossplane-guard"

func TestGuardV2(t *testing.T) { testGuard(t, stack.V2) }

func TestGuardV1(t *testing.T) { testGuard(t, stack.V1) }

// testGuard loses what is in Git too, and restores it while Argo CD applies it, from before the restore begins.
func testGuard(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	open := s.tenant(t, s.source, drill.Platform{Namespace: "unguarded"})
	behind := s.tenant(t, s.source, drill.Platform{Namespace: "guarded"})
	anew := s.tenant(t, s.source, drill.Platform{Namespace: "anew"})
	first := s.tenant(t, s.source, drill.Platform{Namespace: "first"})
	for _, n := range []*tenant{open, behind, anew, first} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, open, behind, first)
	must(t, s.target.Apply(t.Context(), []byte(gitOps)))

	t.Run("Without", func(t *testing.T) { s.testUnguarded(t, open) })
	t.Run("With", func(t *testing.T) { s.testBehindGuard(t, behind) })
	t.Run("Tenant", func(t *testing.T) { s.testGuardedTenant(t, behind) })
	t.Run("Paused", func(t *testing.T) { s.testLetInPaused(t) })
	t.Run("RestoredPaused", func(t *testing.T) { s.testRestoredPaused(t, first) })
	t.Run("NewCluster", func(t *testing.T) { s.testNewClusterBehindGuard(t, anew) })
}

// gitOps is what lets Argo CD do all.
const gitOps = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: argocd
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cluster-admin
subjects:
- kind: ServiceAccount
  namespace: argocd
  name: argocd-application-controller
- kind: ServiceAccount
  namespace: velero
  name: velero
- kind: ServiceAccount
  namespace: crossplane-system
  name: crossplane
`

// as returns a client of the target for a ServiceAccount.
func (s *suite) as(t *testing.T, namespace, name string) dynamic.Interface {
	t.Helper()
	config := s.target.REST()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	client, err := dynamic.NewForConfig(config)
	must(t, err)

	return client
}

// instancesOf is the resource of what people apply.
func instancesOf(client dynamic.Interface, n drill.Platform) dynamic.ResourceInterface {
	gvr := n.Manifest(0).GroupVersionKind().GroupVersion().WithResource("environments")

	return client.Resource(gvr).Namespace(n.Namespace)
}

// A gitSync is Argo CD that applies what is in Git as fast as it can, server-side and with force, whether it is there or not.
type gitSync struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu sync.Mutex
	// applied and refused count by name.
	applied, refused map[string]int
	other            error
}

func (s *suite) syncs(t *testing.T, n *tenant) *gitSync {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	to := instancesOf(s.as(t, "argocd", "argocd-application-controller"), n.Platform)
	a := &gitSync{stop: cancel, ended: make(chan struct{}), applied: map[string]int{}, refused: map[string]int{}}
	go func() {
		defer close(a.ended)
		for ctx.Err() == nil {
			for _, m := range n.manifests() {
				_, err := to.Apply(ctx, m.GetName(), m, metav1.ApplyOptions{FieldManager: "argocd-controller", Force: true})
				a.count(m.GetName(), err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(a.end)

	return a
}

func (a *gitSync) end() {
	a.stop()
	<-a.ended
}

func (a *gitSync) count(name string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.applied[name]++
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), guardName):
		a.refused[name]++
	case !errors.Is(err, context.Canceled):
		a.other = err
	}
}

func (a *gitSync) counts() (applied, refused map[string]int, other error) {
	a.mu.Lock()
	defer a.mu.Unlock()

	return maps.Clone(a.applied), maps.Clone(a.refused), a.other
}

// await waits until what is counted is so of all instances.
func (s *suite) awaitSync(t *testing.T, n *tenant, a *gitSync, what string, of func(applied, refused map[string]int) map[string]int) {
	t.Helper()
	s.eventually(t, what, func(context.Context) error {
		applied, refused, other := a.counts()
		if len(of(applied, refused)) < n.size {
			return fmt.Errorf("applied %v, refused %v, %w", applied, refused, other)
		}

		return nil
	})
}

func (s *suite) makeNamespace(t *testing.T, name string) {
	t.Helper()
	must(t, s.target.Apply(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+name+"\n")))
}

// testUnguarded is the control: what Argo CD has applied first is composed anew, and what was there before has nobody.
func (s *suite) testUnguarded(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.makeNamespace(t, n.Namespace)
	a := s.syncs(t, n)
	s.eventually(t, "Argo CD to be first with one", func(context.Context) error {
		if applied, _, other := a.counts(); len(applied) == 0 {
			return fmt.Errorf("it has applied none: %w", other)
		}

		return nil
	})
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	r, err := drill.AwaitRestore(ctx, s.target, n.Namespace)
	must(t, err)
	if phase := drill.Phase(r); phase != "PartiallyFailed" {
		t.Errorf("Argo CD was first, and the restore is %s", phase)
	}
	s.eventually(t, "cloud resources to be made anew and others to have nobody", func(ctx context.Context) error {
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		if err == nil && (got.Creates == 0 || got.Orphans == 0) {
			err = fmt.Errorf("there is %+v", got)
		}

		return err
	})
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	details, err := s.target.Velero(ctx, "restore", "describe", n.Namespace, "--details")
	must(t, err)
	t.Logf("without the guard: %+v\n%s", got, details)
	s.wantNobodyMisled(t, n)
}

// wantNobodyMisled checks that of what a restore has left nothing is held, paused or pinned, and that each MR that it has brought back has an XR which lists it.
func (s *suite) wantNobodyMisled(t *testing.T, n *tenant) {
	t.Helper()
	ctx := t.Context()
	instances, err := n.Instances(ctx, s.target)
	must(t, err)
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	lists := map[string]bool{}
	for _, u := range append(instances, xrs...) {
		policy, _, _ := unstructured.NestedString(u.Object, "spec", "compositionUpdatePolicy")
		modern, _, _ := unstructured.NestedString(u.Object, "spec", "crossplane", "compositionUpdatePolicy")
		if paused(&u) || u.GetAnnotations()[annotationHold] != "" || policy == "Manual" || modern == "Manual" {
			t.Errorf("%s %s is paused, held or pinned: %v, %q, %q", u.GetKind(), u.GetName(), u.GetAnnotations(), policy, modern)
		}
		for _, r := range n.Refs(&u) {
			lists[string(u.GetUID())+" "+r] = true
		}
	}
	managed, err := n.Managed(ctx, s.target)
	must(t, err)
	for _, u := range managed {
		c := metav1.GetControllerOf(&u)
		if c == nil || !lists[string(c.UID)+" "+u.GetKind()+"/"+u.GetName()] {
			t.Errorf("%s %s has no XR that lists it", u.GetKind(), u.GetName())
		}
	}
}

// testBehindGuard has Argo CD refused until all is adopted, and then go on by itself.
func (s *suite) testBehindGuard(t *testing.T, n *tenant) {
	ctx := t.Context()
	root, err := build.Root()
	must(t, err)
	must(t, s.target.ApplyFiles(ctx, filepath.Join(root, "example", "rbac", "guard.yaml")))
	r := commandAs(t, s.target, s.account(t, "velero", guardName).kubeconfig, "guard", "on", "--allow-user", "stack")
	if r.code != 0 || !strings.Contains(r.stdout, "what they create is refused") {
		t.Fatalf("guard on ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	t.Logf("guard on:\n%s%s", r.stdout, r.stderr)
	s.makeNamespace(t, n.Namespace)
	// In Git there is one more than in the backup, in a namespace of its own.
	fresh := &tenant{Platform: drill.Platform{Namespace: "fresh", Crossplane: s.version}, size: 1}
	must(t, fresh.Compose(ctx, s.target))
	s.makeNamespace(t, fresh.Namespace)
	a, more := s.syncs(t, n), s.syncs(t, fresh)
	s.awaitSync(t, n, a, "Argo CD to be refused all", func(_, refused map[string]int) map[string]int { return refused })
	if before, _, _ := a.counts(); len(before) > 0 {
		t.Fatalf("Argo CD was let create %v", before)
	}
	s.wantGuardProblem(t, "warning")
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	s.awaitCompleted(t, n.Namespace)
	s.wantGuardProblem(t, "problem")
	if r = command(t, s.target, "guard", "status"); r.code != 0 {
		t.Errorf("guard status ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r = command(t, s.target, "wait", "--restore", n.Namespace); r.code != 0 || !strings.Contains(r.stderr, "The guard is still up") {
		t.Errorf("wait ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if applied, _, _ := more.counts(); len(applied) > 0 {
		t.Errorf("Argo CD was let create %v before the guard was down", applied)
	}
	if r = command(t, s.target, "wait", "--restore", n.Namespace, "--guard-off"); r.code != 0 || !strings.Contains(r.stdout, "The guard is down") {
		t.Fatalf("wait --guard-off ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.awaitSync(t, fresh, more, "Argo CD to go on", func(applied, _ map[string]int) map[string]int { return applied })
	must(t, fresh.AwaitReady(ctx, s.target, fresh.size))
	s.settle(t, n)
	a.end()
	applied, refused, other := a.counts()
	t.Logf("refused %v, applied %v, %v", refused, applied, other)
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if diff := cmp.Diff(drill.Outcome{Adopted: len(n.before.Slots), Total: len(n.before.Slots)}, got); diff != "" {
		t.Errorf("behind the guard: -want, +got:\n%s", diff)
	}
	dead, err := n.DeadOwners(ctx, s.target)
	must(t, err)
	wishes, err := n.Wishes(ctx, s.target)
	must(t, err)
	if diff := cmp.Diff(n.wishes, wishes, cmpopts.EquateEmpty()); diff != "" || len(dead) > 0 {
		t.Errorf("behind the guard: dead owners %v; claims and XRs -before, +after:\n%s", dead, diff)
	}
	if r = command(t, s.target, "guard", "status"); r.code != 3 || !strings.Contains(r.stdout, "everybody can create") {
		t.Errorf("guard status ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// testRestoredPaused restores what Argo CD was let create paused before.
func (s *suite) testRestoredPaused(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.makeNamespace(t, n.Namespace)
	if r := command(t, s.target, "guard", "on", "-n", n.Namespace, "--paused", "--allow-user", "stack"); r.code != 0 {
		t.Fatalf("guard on --paused ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	a := s.syncs(t, n)
	s.awaitSync(t, n, a, "Argo CD to apply all", func(applied, _ map[string]int) map[string]int { return applied })
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	s.awaitCompleted(t, n.Namespace)
	if r := command(t, s.target, "wait", "--restore", n.Namespace, "--guard-off"); r.code != 0 {
		t.Errorf("wait --guard-off ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.settle(t, n)
	a.end()
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if !got.Sound() {
		t.Errorf("what was let in paused: %+v", got)
	}
	instances, err := n.Instances(ctx, s.target)
	must(t, err)
	for _, u := range instances {
		if annotations := u.GetAnnotations(); paused(&u) || len(annotations) > 0 {
			t.Errorf("%s has %v", u.GetName(), annotations)
		}
	}
}

// testNewClusterBehindGuard has the XRD come with the restore, while Argo CD waits for nothing else.
func (s *suite) testNewClusterBehindGuard(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Destroy())
	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{Name: "new", Crossplane: s.version, Plugin: true, VeleroArgs: oftener})
	must(t, err)
	must(t, s.target.Apply(ctx, []byte(gitOps)))
	s.makeNamespace(t, n.Namespace)
	if r := command(t, s.target, "guard", "on"); r.code != 1 || !strings.Contains(r.stderr, "--backup") {
		t.Errorf("without any XRD guard on ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.eventually(t, "the backup", func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "backup", "get", n.Namespace)

		return err
	})
	r := command(t, s.target, "guard", "on", "--backup", s.download(t, n.Namespace), "--allow-user", "stack")
	if r.code != 0 || !strings.Contains(r.stdout, "environments.platform.example.org") {
		t.Fatalf("guard on ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	a := s.syncs(t, n)
	must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	s.awaitCompleted(t, n.Namespace)
	if r = command(t, s.target, "guard", "status"); r.code != 0 {
		t.Errorf("guard status ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r = command(t, s.target, "wait", "--restore", n.Namespace, "--guard-off"); r.code != 0 {
		t.Errorf("wait --guard-off ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	s.awaitSync(t, n, a, "Argo CD to apply all", func(applied, _ map[string]int) map[string]int { return applied })
	s.settle(t, n)
	a.end()
	_, refused, _ := a.counts()
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	t.Logf("refused %v: %+v", refused, got)
	if !got.Sound() {
		t.Errorf("in a new cluster behind the guard: %+v", got)
	}
}

// wantGuardProblem checks how grave it is that the guard is up.
func (s *suite) wantGuardProblem(t *testing.T, severity string) {
	t.Helper()
	v, r := s.judge(t)
	for _, p := range v.Problems {
		if p.Code == "GuardUp" {
			if p.Severity != severity {
				t.Errorf("that the guard is up is a %s, and should be a %s: %s", p.Severity, severity, p.Reason)
			}

			return
		}
	}
	t.Errorf("validate does not say that the guard is up:\n%s%s", r.stdout, r.stderr)
}

// tenantRights let a tenant do in their namespace what they like, and with it what no tenant should.
const tenantRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: %[1]s, name: velero}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenant}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: velero}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tenant}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: tenant-namespace}
rules:
- {apiGroups: [""], resources: [namespaces], resourceNames: [%[1]s], verbs: [get, patch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tenant-namespace}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tenant-namespace}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: velero}]
`

// testGuardedTenant has a tenant of a guarded namespace, whose ServiceAccount is called like Velero's, try to get around the guard.
func (s *suite) testGuardedTenant(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Apply(ctx, fmt.Appendf(nil, tenantRights, n.Namespace)))
	s.makeNamespace(t, "elsewhere")
	if r := command(t, s.target, "guard", "on", "-n", n.Namespace); r.code != 0 {
		t.Fatalf("guard on ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	t.Cleanup(func() { s.guardOff(t) })
	tenant, admin := s.as(t, n.Namespace, "velero"), s.as(t, "argocd", "argocd-application-controller")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	another := func(in string) *unstructured.Unstructured {
		m := n.Manifest(0)
		m.SetName("another")
		m.SetNamespace(in)

		return m
	}
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings := policies.GroupVersion().WithResource("validatingadmissionpolicybindings")
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	create := func(client dynamic.Interface, in string, options metav1.CreateOptions, change ...func(*unstructured.Unstructured)) error {
		m := another(in)
		for _, c := range change {
			c(m)
		}
		p := n.Platform
		p.Namespace = in
		_, err := instancesOf(client, p).Create(ctx, m, options)

		return err
	}
	label := func(key, value string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
		_, err := tenant.Resource(namespaces).Patch(ctx, n.Namespace, types.MergePatchType, patch, metav1.PatchOptions{})

		return err
	}
	tries := map[string]struct {
		reason string
		try    func() error
		// by is who refuses it: the guard, or else RBAC.
		by string
	}{
		"Create":        {reason: "Nobody but Velero and Crossplane creates.", try: func() error { return create(tenant, n.Namespace, metav1.CreateOptions{}) }, by: guardName},
		"DryRun":        {reason: "Nor as if.", try: func() error { return create(tenant, n.Namespace, dry) }, by: guardName},
		"Administrator": {reason: "Nor who may do all else.", try: func() error { return create(admin, n.Namespace, dry) }, by: guardName},
		"Generated": {reason: "Whatever it is called.", try: func() error {
			return create(tenant, n.Namespace, dry, func(u *unstructured.Unstructured) { u.SetName(""); u.SetGenerateName("a-") })
		}, by: guardName},
		"Marked": {reason: "Or says of itself.", try: func() error {
			return create(tenant, n.Namespace, dry, func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"velero.io/restore-name": "r", "app.kubernetes.io/managed-by": "velero-plugin-for-crossplane"})
				u.SetAnnotations(map[string]string{"velero.crossplane.x-k8s.io/paused-by-guard": "true", "crossplane.io/paused": "true"})
			})
		}, by: guardName},
		"Labelled": {reason: "What the namespace is labelled with does not count.", try: func() error {
			for _, key := range []string{"kubernetes.io/metadata.name", "name", "velero.io/exclude-from-backup"} {
				_ = label(key, "velero")
			}

			return create(tenant, n.Namespace, dry)
		}, by: guardName},
		"Policy":  {reason: "Tenants have no right to the policy.", try: func() error { return tenant.Resource(policies).Delete(ctx, guardName, metav1.DeleteOptions{}) }},
		"Binding": {reason: "Nor to its binding.", try: func() error { return tenant.Resource(bindings).Delete(ctx, guardName, metav1.DeleteOptions{}) }},
	}
	for name, tc := range tries {
		t.Run(name, func(t *testing.T) {
			err := tc.try()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.by) || tc.by != "" && !strings.Contains(err.Error(), "guard off") {
				t.Errorf("%s got %v", tc.reason, err)
			}
		})
	}
	for what, err := range map[string]error{
		"Velero in the namespace":     create(s.as(t, "velero", "velero"), n.Namespace, dry),
		"Crossplane in the namespace": create(s.as(t, "crossplane-system", "crossplane"), n.Namespace, dry),
		"others elsewhere":            create(admin, "elsewhere", dry),
	} {
		if err != nil {
			t.Errorf("%s must be let create: %v", what, err)
		}
	}
	patch := []byte(`{"metadata":{"labels":{"mine":"yes"}}}`)
	if _, err := instancesOf(tenant, n.Platform).Patch(ctx, n.Name(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("What is there can be changed: %v", err)
	}
}

func (s *suite) guardOff(t *testing.T) {
	t.Helper()
	// The test's own context is over by then.
	if stdout, stderr, code, err := s.target.Plugin(context.WithoutCancel(t.Context()), "", "guard", "off"); err != nil || code != 0 {
		t.Errorf("guard off ended with %d, %v:\n%s%s", code, err, stdout, stderr)
	}
}

// testLetInPaused has Argo CD create what Crossplane does not reconcile until the guard is down.
func (s *suite) testLetInPaused(t *testing.T) {
	ctx := t.Context()
	n := &tenant{Platform: drill.Platform{Namespace: "letin", Crossplane: s.version}, size: few}
	must(t, n.Compose(ctx, s.target))
	s.makeNamespace(t, n.Namespace)
	on := []string{"guard", "on", "-n", n.Namespace, "--paused", "--allow-user", "stack"}
	if r := command(t, s.target, on...); r.code != 1 || !strings.Contains(r.stderr, "serves no MutatingAdmissionPolicy") {
		t.Fatalf("without such policies guard on --paused ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	// They are on by default from Kubernetes 1.36 on.
	must(t, s.target.AddArgs(stack.APIServer, "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"))
	must(t, s.target.Restart(ctx, stack.APIServer))
	if r := command(t, s.target, on...); r.code != 0 || !strings.Contains(r.stdout, "what they create is paused") {
		t.Fatalf("guard on --paused ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	a := s.syncs(t, n)
	s.awaitSync(t, n, a, "Argo CD to apply all", func(applied, _ map[string]int) map[string]int { return applied })
	instances, err := n.Instances(ctx, s.target)
	must(t, err)
	for _, u := range instances {
		if !paused(&u) {
			t.Errorf("%s was let in and is not paused: %v", u.GetName(), u.GetAnnotations())
		}
	}
	to := instancesOf(s.as(t, "argocd", "argocd-application-controller"), n.Platform)
	for what, patch := range map[string]string{
		"the pause": `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`,
		"the mark":  `{"metadata":{"annotations":{"velero.crossplane.x-k8s.io/paused-by-guard":null}}}`,
		"both":      `{"metadata":{"annotations":null}}`,
	} {
		if _, err := to.Patch(ctx, n.Name(0), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("%s can be taken off: %v", what, err)
		}
	}
	if r := command(t, s.target, "guard", "status"); r.code != 0 || !strings.Contains(r.stdout, n.Name(0)) {
		t.Errorf("guard status ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	managed, err := n.Managed(ctx, s.target)
	must(t, err)
	if len(managed) > 0 {
		t.Errorf("Crossplane has composed %d resources of what is paused", len(managed))
	}
	if r := command(t, s.target, "guard", "off"); r.code != 0 || !strings.Contains(r.stdout, n.Name(0)+" is not paused any more") {
		t.Errorf("guard off ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	must(t, n.AwaitReady(ctx, s.target, n.size))
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const guardName = "velero-plugin-for-crossplane-guard"

func TestGuardV2(t *testing.T) { testGuard(t, stack.V2) }

// testGuard loses a cluster whose instances are in Git too. It restores it while Argo CD applies
// them, from before the restore begins.
func testGuard(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	open := s.few(t, s.source, drill.Platform{Namespace: "unguarded"}, few)
	behind := s.few(t, s.source, drill.Platform{Namespace: "guarded"}, few)
	anew := s.few(t, s.source, drill.Platform{Namespace: "anew"}, 1)
	for _, n := range []*tenant{open, behind, anew} {
		s.backUp(t, s.source, n)
	}
	s.loseSource(t, open, behind)
	must(t, s.target.Apply(t.Context(), []byte(gitOps)))

	t.Run("Without", func(t *testing.T) { s.testUnguarded(t, open) })
	t.Run("With", func(t *testing.T) { s.testBehindGuard(t, behind) })
	t.Run("Tenant", func(t *testing.T) { s.testGuardedTenant(t, behind) })
	t.Run("NewCluster", func(t *testing.T) { s.testNewClusterBehindGuard(t, anew) })
}

// gitOps grants all rights to Argo CD, and to Velero and Crossplane where they create as themselves.
const gitOps = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: argocd}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, namespace: argocd, name: argocd-application-controller}
- {kind: ServiceAccount, namespace: velero, name: velero}
- {kind: ServiceAccount, namespace: crossplane-system, name: crossplane}
`

func (s *suite) makeNamespace(t *testing.T, name string) {
	t.Helper()
	must(t, s.target.Apply(t.Context(), []byte("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+name+"\n")))
}

// testUnguarded is the control: instances that Argo CD has applied first are composed again, and
// the old external resources have no MR that an XR controls.
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
	s.eventually(t, "cloud resources to be created again and others to be orphaned", func(ctx context.Context) error {
		got, err := n.Compare(ctx, s.target, s.cloud, n.before)
		if err == nil && (got.Creates == 0 || got.Orphans == 0) {
			err = fmt.Errorf("there is %+v", got)
		}

		return err
	})
	s.wantNoWrongMessage(t, n)
}

// wantNoWrongMessage checks that a restore has left no object held, paused or pinned, and that each
// restored MR has an XR that lists it.
func (s *suite) wantNoWrongMessage(t *testing.T, n *tenant) {
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

// applyGuard applies the policy of the example, with changes of its text. Velero and Crossplane are
// the user stack here.
func (s *suite) applyGuard(t *testing.T, changes ...string) {
	t.Helper()
	root, err := build.Root()
	must(t, err)
	b, err := os.ReadFile(filepath.Join(root, "example", "gitops", "guard.yaml"))
	must(t, err)
	changes = append(changes, `"system:serviceaccount:velero:velero",`, `"stack", "system:serviceaccount:velero:velero",`)
	must(t, s.target.Apply(t.Context(), []byte(strings.NewReplacer(changes...).Replace(string(b)))))
}

// guard applies the policy and waits until the API server enforces it.
func (s *suite) guard(t *testing.T, n *tenant, changes ...string) {
	t.Helper()
	s.applyGuard(t, changes...)
	admin := instancesOf(s.as(t, "argocd", "argocd-application-controller"), n.Platform)
	s.eventually(t, "the guard to be enforced", func(ctx context.Context) error {
		_, err := admin.Create(ctx, n.Manifest(0), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), guardName) {
			return nil
		}

		return fmt.Errorf("a user can create: %w", err)
	})
}

// guardBeforeXRD does so where nothing that is guarded is served yet: a kind that is shows when the
// policy is enforced.
func (s *suite) guardBeforeXRD(t *testing.T) {
	t.Helper()
	s.applyGuard(t, "[platform.example.org]", `[platform.example.org, ""]`, "[environments, xenvironments]", "[environments, xenvironments, resourcequotas]")
	admin := s.as(t, "argocd", "argocd-application-controller").Resource(schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"})
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": map[string]any{"name": "probe"}}}
	s.eventually(t, "the guard to be enforced", func(ctx context.Context) error {
		_, err := admin.Namespace(metav1.NamespaceDefault).Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), guardName) {
			return nil
		}

		return fmt.Errorf("a user can create: %w", err)
	})
}

// unguard deletes the policy and its binding. It also works when the test has ended.
func (s *suite) unguard(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []string{"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"} {
		r, err := s.target.Resource(ctx, schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}, "")
		must(t, err)
		must(t, r.Delete(ctx, guardName, metav1.DeleteOptions{}))
	}
}

// testBehindGuard checks that Argo CD is refused until all is adopted, and then goes on.
func (s *suite) testBehindGuard(t *testing.T, n *tenant) {
	ctx := t.Context()
	s.makeNamespace(t, n.Namespace)
	s.guard(t, n)
	// Git has one more instance than the backup, in a namespace of its own.
	fresh := &tenant{Platform: drill.Platform{Namespace: "fresh", Crossplane: s.version}, size: 1}
	must(t, fresh.Compose(ctx, s.target))
	s.makeNamespace(t, fresh.Namespace)
	a, more := s.syncs(t, n), s.syncs(t, fresh)
	s.awaitSync(t, n, a, "Argo CD to be refused all", func(_, refused map[string]int) map[string]int { return refused })
	if before, _, _ := a.counts(); len(before) > 0 {
		t.Fatalf("Argo CD was let create %v", before)
	}
	s.restoreBehindGuard(t, n)
	s.wantGuardUp(t, 1)
	if applied, _, _ := more.counts(); len(applied) > 0 {
		t.Errorf("Argo CD was let create %v behind the guard", applied)
	}
	s.unguard(t)
	s.awaitSync(t, fresh, more, "Argo CD to go on", func(applied, _ map[string]int) map[string]int { return applied })
	must(t, fresh.AwaitReady(ctx, s.target, fresh.size))
	s.settle(t, n)
	a.end()
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
	s.wantGuardUp(t, 0)
}

func (s *suite) restoreBehindGuard(t *testing.T, n *tenant) {
	t.Helper()
	s.restore(t, n, n.Namespace)
	if r := command(t, s.target, "wait", "--restore", n.Namespace); r.code != 0 {
		t.Errorf("wait ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// testNewClusterBehindGuard restores an XRD while Argo CD waits for nothing else.
func (s *suite) testNewClusterBehindGuard(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Destroy())
	var err error
	s.target, err = stack.NewCluster(ctx, s.host, stack.Options{Name: "new", Crossplane: s.version, Plugin: true, VeleroArgs: oftener})
	must(t, err)
	must(t, s.target.Apply(ctx, []byte(gitOps)))
	s.makeNamespace(t, n.Namespace)
	s.guardBeforeXRD(t)
	s.eventually(t, "the backup", func(ctx context.Context) error {
		_, err := s.target.Velero(ctx, "backup", "get", n.Namespace)

		return err
	})
	a := s.syncs(t, n)
	s.restoreBehindGuard(t, n)
	s.unguard(t)
	s.awaitSync(t, n, a, "Argo CD to apply all", func(applied, _ map[string]int) map[string]int { return applied })
	s.settle(t, n)
	a.end()
	got, err := n.Compare(ctx, s.target, s.cloud, n.before)
	must(t, err)
	if !got.Sound() {
		t.Errorf("in a new cluster behind the guard: %+v", got)
	}
}

// wantGuardUp checks how often validate warns that the guard is up.
func (s *suite) wantGuardUp(t *testing.T, want int) {
	t.Helper()
	v, r := s.judge(t)
	got := 0
	for _, p := range v.Problems {
		if p.Code == "GuardUp" && p.Severity == "warning" {
			got++
		}
	}
	if got != want {
		t.Errorf("validate warns %d times of the guard, and should %d times:\n%s%s", got, want, r.stdout, r.stderr)
	}
}

// tenantRights let a tenant do everything in their namespace.
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
`

// testGuardedTenant checks that a tenant of a guarded namespace, whose ServiceAccount has the name
// of Velero's, can't evade the guard.
func (s *suite) testGuardedTenant(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Apply(ctx, fmt.Appendf(nil, tenantRights, n.Namespace)))
	s.makeNamespace(t, "elsewhere")
	s.guard(t, n, "# - name: in-a-guarded-namespace", "- name: in-a-guarded-namespace", "#   expression:", "  expression:", "team-a", n.Namespace)
	t.Cleanup(func() { s.unguard(t) })
	tenant, admin := s.as(t, n.Namespace, "velero"), s.as(t, "argocd", "argocd-application-controller")
	create := func(client dynamic.Interface, in string, change func(*unstructured.Unstructured)) error {
		m, p := n.Manifest(0), n.Platform
		m.SetName("another")
		m.SetNamespace(in)
		change(m)
		p.Namespace = in
		_, err := instancesOf(client, p).Create(ctx, m, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})

		return err
	}
	unchanged := func(*unstructured.Unstructured) {}
	for what, tc := range map[string]struct {
		client  dynamic.Interface
		in      string
		change  func(*unstructured.Unstructured)
		allowed bool
	}{
		"the tenant":                   {client: tenant, in: n.Namespace, change: unchanged},
		"a user with all other rights": {client: admin, in: n.Namespace, change: unchanged},
		"the tenant, marked as Velero marks what it restores": {client: tenant, in: n.Namespace, change: func(u *unstructured.Unstructured) {
			u.SetGenerateName("a-")
			u.SetName("")
			u.SetLabels(map[string]string{labelRestore: "r", "app.kubernetes.io/managed-by": plugin})
			u.SetAnnotations(map[string]string{annotationPaused: "true"})
		}},
		"Velero":           {client: s.as(t, "velero", "velero"), in: n.Namespace, change: unchanged, allowed: true},
		"Crossplane":       {client: s.as(t, "crossplane-system", "crossplane"), in: n.Namespace, change: unchanged, allowed: true},
		"others elsewhere": {client: admin, in: "elsewhere", change: unchanged, allowed: true},
	} {
		err := create(tc.client, tc.in, tc.change)
		if tc.allowed && err != nil || !tc.allowed && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), guardName)) {
			t.Errorf("%s tried to create an instance and got: %v", what, err)
		}
	}
	patch := []byte(`{"metadata":{"labels":{"mine":"yes"}}}`)
	if _, err := instancesOf(tenant, n.Platform).Patch(ctx, n.Name(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("What is there can be changed: %v", err)
	}
}

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// An applier is a tool that applies manifests from Git, each with its own code.
type applier string

const (
	flux              applier = "flux"
	argocd            applier = "argocd"
	argocdServerSide  applier = "argocd-server-side"
	argocdReplace     applier = "argocd-replace"
	kubectlApply      applier = "kubectl-apply"
	kubectlServerSide applier = "kubectl-server-side"
	// kubectlAsArgocd takes over what was applied client-side, with Argo CD's field manager.
	kubectlAsArgocd applier = "kubectl-as-argocd"
	kubectlReplace  applier = "kubectl-replace"
)

// kubectlArgs returns the arguments of kubectl for the appliers that run it.
func kubectlArgs() map[applier][]string {
	return map[applier][]string{
		kubectlApply:      {"apply", "-f", "-"},
		kubectlServerSide: {"apply", "--server-side", "--force-conflicts", "-f", "-"},
		kubectlAsArgocd:   {"apply", "--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-"},
		kubectlReplace:    {"replace", "-f", "-"},
	}
}

// A git runs appliers. It has their programs, and a folder for their manifests.
type git struct {
	set  build.Set
	home string
}

func newGit(t *testing.T) *git {
	t.Helper()
	set, err := build.Ensure(t.Context(), os.Stderr, "applier", "kubectl")
	must(t, err)

	return &git{set: set, home: t.TempDir()}
}

// command returns the command with which an applier applies manifests.
func (g *git) command(ctx context.Context, c *stack.Cluster, by applier, manifests []*unstructured.Unstructured, args ...string) (*exec.Cmd, error) {
	l := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, m := range manifests {
		l.Items = append(l.Items, *m)
	}
	b, err := l.MarshalJSON()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(g.home, "manifests")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "manifests.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, err
	}
	as := "--as=" + string(by)
	kubectl, ok := kubectlArgs()[by]
	if ok {
		as = "--as=command"
		kubectl = slices.Concat([]string{"--", g.set["kubectl"].Path}, kubectl)
	}
	args = slices.Concat([]string{as, "--manifests=" + file, "--mark=" + annotationHold}, args, kubectl)
	cmd := exec.CommandContext(ctx, g.set["applier"].Path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "HOME="+g.home)

	return cmd, nil
}

// apply applies manifests once.
func (g *git) apply(ctx context.Context, c *stack.Cluster, by applier, manifests []*unstructured.Unstructured) error {
	cmd, err := g.command(ctx, c, by, manifests, "--once")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s cannot apply: %w\n%s", by, err, out)
	}

	return nil
}

// kubectl runs kubectl on a cluster.
func (g *git) kubectl(ctx context.Context, c *stack.Cluster, env []string, stdin *unstructured.Unstructured, args ...string) error {
	cmd := exec.CommandContext(ctx, g.set["kubectl"].Path, args...)
	cmd.Env = slices.Concat(os.Environ(), []string{"KUBECONFIG=" + c.Kubeconfig(), "HOME=" + g.home}, env)
	if stdin != nil {
		b, err := stdin.MarshalJSON()
		if err != nil {
			return err
		}
		cmd.Stdin = bytes.NewReader(b)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}

	return nil
}

// manifests returns what Git has for the instances of a tenant.
func (n *tenant) manifests() []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, n.size)
	for i := range all {
		all[i] = n.Manifest(i)
	}

	return all
}

// applied creates the instances of a tenant with an applier.
func (s *suite) applied(t *testing.T, g *git, by applier, p drill.Platform, size int) *tenant {
	t.Helper()
	n := s.few(t, s.source, p, 0)
	n.size = size
	must(t, g.apply(t.Context(), s.source, by, n.manifests()))

	return n
}

// An applyLoop applies manifests again and again, from the moment that their objects exist.
type applyLoop struct {
	by    applier
	stdin io.Closer
	ended chan error

	mu          sync.Mutex
	out, stderr bytes.Buffer
}

// applyAgain starts an applyLoop. The loop ends with the test if it is not stopped before.
func (g *git) applyAgain(t *testing.T, c *stack.Cluster, by applier, manifests []*unstructured.Unstructured) *applyLoop {
	t.Helper()
	a := &applyLoop{by: by, ended: make(chan error, 1)}
	cmd, err := g.command(t.Context(), c, by, manifests)
	must(t, err)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	a.stdin, cmd.Stdout, cmd.Stderr = stdin, lockedWriter{&a.mu, &a.out}, lockedWriter{&a.mu, &a.stderr}
	must(t, cmd.Start())
	go func() { a.ended <- cmd.Wait() }()

	return a
}

// A lockedWriter lets one goroutine write while others read.
type lockedWriter struct {
	mu *sync.Mutex
	to io.Writer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.to.Write(b)
}

// held counts, by name, how often an object was applied that was held just before.
func (a *applyLoop) held() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	held := map[string]int{}
	for line := range strings.Lines(a.out.String()) {
		if name, ok := strings.CutPrefix(line, "held "); ok {
			held[strings.TrimSpace(name)]++
		}
	}

	return held
}

// stop ends the loop and returns what it has printed to stderr.
func (a *applyLoop) stop() (string, error) {
	err := errors.Join(a.stdin.Close(), <-a.ended)
	a.mu.Lock()
	defer a.mu.Unlock()

	return a.stderr.String(), err
}

// A gitTenant has instances that one applier creates, and one applies again during the restore.
type gitTenant struct {
	*tenant

	made, again applier
	loop        *applyLoop
}

// gitTenants creates instances for each pair of appliers: the one that creates them and the one
// that applies them again.
func (s *suite) gitTenants(t *testing.T, g *git, pairs ...[2]applier) []*gitTenant {
	t.Helper()
	var all []*gitTenant
	for i, pair := range pairs {
		n := s.applied(t, g, pair[0], drill.Platform{Namespace: fmt.Sprintf("git%d", i)}, few)
		all = append(all, &gitTenant{tenant: n, made: pair[0], again: pair[1]})
	}

	return all
}

// backUpInGit backs up what the appliers have created. Then the source applies it again, as the
// target will: the result in the source is what the target must have.
func (s *suite) backUpInGit(t *testing.T, g *git, all []*gitTenant) {
	t.Helper()
	ctx := t.Context()
	for _, n := range all {
		s.backUp(t, s.source, n.tenant)
	}
	for _, n := range all {
		for range 2 { // A take-over from other managers may need two steps.
			must(t, g.apply(ctx, s.source, n.again, n.manifests()))
		}
	}
	for _, n := range all {
		must(t, s.source.Wait(ctx, patience, "what was applied again in "+n.Namespace+" to be on the XRs", func(ctx context.Context) error {
			return n.inherited(ctx, s.source)
		}))
		var err error
		n.wishes, err = n.Wishes(ctx, s.source)
		must(t, err)
		n.managers, err = n.Managers(ctx, s.source)
		must(t, err)
	}
}

// inherited returns an error if an XR does not have what its claim has. Crossplane copies all
// labels and annotations except Kubernetes' own.
func (n *gitTenant) inherited(ctx context.Context, c *stack.Cluster) error {
	instances, err := n.Instances(ctx, c)
	if err != nil {
		return err
	}
	xrs, err := n.Composites(ctx, c)
	if err != nil {
		return err
	}
	for _, claim := range instances {
		i := slices.IndexFunc(xrs, func(xr unstructured.Unstructured) bool { return strings.HasPrefix(xr.GetName(), claim.GetName()) })
		if i < 0 {
			return errors.New("no XR of " + claim.GetName())
		}
		has := [2]map[string]string{xrs[i].GetLabels(), xrs[i].GetAnnotations()}
		for j, from := range []map[string]string{claim.GetLabels(), claim.GetAnnotations()} {
			for key, value := range from {
				domain, _, _ := strings.Cut(key, "/")
				if !strings.HasSuffix(domain, "k8s.io") && !strings.HasSuffix(domain, "kubernetes.io") && has[j][key] != value {
					return fmt.Errorf("%s does not have %s", xrs[i].GetName(), key)
				}
			}
		}
	}

	return nil
}

func tenantsInGit(all []*gitTenant) []*tenant {
	var tenants []*tenant
	for _, n := range all {
		tenants = append(tenants, n.tenant)
	}

	return tenants
}

// testAppliedWhileHeld restores while an applier applies the instances again and again. The
// provider is down until each instance was applied while it was held.
func (s *suite) testAppliedWhileHeld(t *testing.T, g *git, all []*gitTenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	for _, n := range all {
		n.loop = g.applyAgain(t, s.target, n.again, n.manifests())
		must(t, n.StartRestore(ctx, s.target, n.Namespace, n.Namespace))
	}
	for _, n := range all {
		s.eventually(t, fmt.Sprintf("%s to apply all that is held in %s", n.again, n.Namespace), func(context.Context) error {
			held := n.loop.held()
			if len(held) != n.size {
				return fmt.Errorf("it has applied %v", held)
			}

			return nil
		})
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for _, n := range all {
		t.Run(fmt.Sprintf("%sOver%s", n.again, n.made), func(t *testing.T) {
			s.awaitCompleted(t, n.Namespace)
			s.settle(t, n.tenant)
			problems, err := n.loop.stop()
			must(t, err)
			t.Logf("applied while held: %v %s", n.loop.held(), problems)
			s.eventually(t, "all to be as without a restore in "+n.Namespace, func(ctx context.Context) error { return s.unsound(ctx, n.tenant) })
		})
	}
}

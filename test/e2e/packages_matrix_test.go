//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/crds"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

const (
	systemNamespace = "crossplane-system"
	inactiveState   = "Inactive"
)

var (
	mrdKind    = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceDefinition"}
	policyKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Kind: "ManagedResourceActivationPolicy"}
)

// testPackages loses a cluster whose platform the package manager has installed, and restores it
// into a cluster that has only Crossplane. Crossplane v1 has one runtime for all packages, so there
// the provider has no Deployment.
func testPackages(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	set, err := build.Ensure(ctx, os.Stderr, stack.Programs(stack.Options{Crossplane: version, Plugin: true})...)
	must(t, err)
	host, err := stack.NewHost(ctx, set, "", os.Stderr)
	must(t, err)
	t.Cleanup(func() { must(t, host.Close()) })
	s := &suite{host: host, cloud: api.NewClient(host.CloudURL()), version: version}
	dir, size := "v2", 3
	if version.IsV1() {
		dir, size = "v1.20", 4 // With the claim.
	}
	n := &shape{
		reason: "The package manager installs its packages again, and the objects that users created with them are unchanged.",
		Scene: drill.Scene{
			Name: "packaged", Dir: filepath.Join("testdata", dir, "packages"), Count: count, Size: size * count, Drift: true,
			BackupArgs: []string{"--include-cluster-resources=true"}, RestoreArgs: []string{"--include-cluster-resources=true"},
		},
	}

	images := newRegistry(t)
	s.publish(t, images, n)
	s.source = s.packaged(t, "source")
	s.install(t, s.source, images)
	s.upgrade(t, images)
	must(t, n.Offered(ctx, s.source))
	must(t, n.Make(ctx, s.source))
	must(t, s.source.RestartVelero(ctx))
	must(t, n.AwaitReady(ctx, s.source))
	s.giveExtra(t)
	must(t, drill.Scene{Name: bare, BackupArgs: n.BackupArgs}.BackUp(ctx, s.source))
	must(t, s.source.UsePlugin(ctx, true))
	s.store(t, n)
	before := s.ownership(t, s.source)
	must(t, s.source.Destroy())

	for _, installed := range []bool{false, true} {
		t.Run(map[bool]string{false: "Restored", true: "Installed"}[installed], func(t *testing.T) {
			s.restorePackages(t, n, images, n.Name, installed)
			s.testPackaged(t, n, before)
		})
	}
	t.Run("VeleroAlone", func(t *testing.T) {
		t.Run("Installed", func(t *testing.T) {
			s.restorePackages(t, n, images, bare, true)
			s.testInstalledAlone(t, n)
		})
		t.Run("Restored", func(t *testing.T) {
			s.restorePackages(t, n, images, bare, false)
			s.testRestoredAlone(t, before)
		})
	})
}

// restorePackages restores a backup in a new cluster, with the plugin if the plugin made the
// backup. installed is true if a user has installed the packages before.
func (s *suite) restorePackages(t *testing.T, n *shape, r *packageRegistry, backup string, installed bool) {
	t.Helper()
	ctx := t.Context()
	if s.target != nil {
		must(t, s.target.Destroy())
	}
	s.target = s.packaged(t, "target")
	if installed {
		s.install(t, s.target, r)
		must(t, n.Offered(ctx, s.target))
		must(t, s.target.RestartVelero(ctx))
	}
	if backup == n.Name {
		must(t, s.target.UsePlugin(ctx, true))
	}
	name := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(t.Name(), "TestMatrixPackages/"), "/", "-"))
	must(t, drill.Platform{}.StartRestore(ctx, s.target, name, backup, n.RestoreArgs...))
	if !installed {
		must(t, s.target.RunPackages(ctx))
	}
	s.awaitCompleted(t, name)
}

// install installs what a user installs in a cluster.
func (s *suite) install(t *testing.T, c *stack.Cluster, r *packageRegistry) {
	t.Helper()
	must(t, c.Apply(t.Context(), fmt.Appendf(nil, installation, r.host)))
	if !s.version.IsV1() {
		must(t, c.Apply(t.Context(), []byte(activation)))
	}
	must(t, c.RunPackages(t.Context()))
}

// packaged starts a cluster with Velero alone and only Crossplane installed.
func (s *suite) packaged(t *testing.T, name string) *stack.Cluster {
	t.Helper()
	c, err := stack.NewCluster(t.Context(), s.host, stack.Options{Name: name, Crossplane: s.version, Packaged: true, RBACManager: true, VeleroArgs: oftener})
	must(t, err)

	return c
}

// publish pushes each package to the registry once.
func (s *suite) publish(t *testing.T, r *packageRegistry, n *shape) {
	t.Helper()
	metas, err := stack.Parse([]byte(packageMeta))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(n.Dir, "platform.yaml"))
	must(t, err)
	platform, err := stack.Parse([]byte(strings.ReplaceAll(string(text), "${scene}", n.Name)))
	must(t, err)
	r.push(t, "shop/provider-cloud:v1.0.0", slices.Concat(metas[:1], providerCRDs(t))...)
	r.push(t, "shop/function-patch-and-transform:v1.0.0", metas[1])
	r.push(t, "shop/platform:v1.0.0", slices.Concat(metas[2:], platform)...)
}

func providerCRDs(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	entries, err := fs.ReadDir(crds.FS(), ".")
	must(t, err)
	for _, e := range entries {
		b, err := fs.ReadFile(crds.FS(), e.Name())
		must(t, err)
		objects, err := stack.Parse(b)
		must(t, err)
		all = append(all, objects...)
	}

	return all
}

// upgrade installs a newer version of the provider in the source, for an inactive revision.
func (s *suite) upgrade(t *testing.T, r *packageRegistry) {
	t.Helper()
	ctx := t.Context()
	metas, err := stack.Parse([]byte(packageMeta))
	must(t, err)
	metas[0].SetAnnotations(map[string]string{"meta.crossplane.io/description": "newer"})
	r.push(t, "shop/provider-cloud:v1.1.0", slices.Concat(metas[:1], providerCRDs(t))...)
	must(t, s.source.Apply(ctx, []byte(`
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: shop-provider-cloud
spec:
  package: registry.invalid/shop/provider-cloud:v1.1.0
`)))
}

// An owned object is the compared part of an object that the package manager creates or causes.
type owned struct {
	Owners []string
	State  any
}

// ownership returns the state of packages and their objects, with the owners of each.
func (s *suite) ownership(t *testing.T, c *stack.Cluster) map[string]owned {
	t.Helper()
	kind := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	all := map[string]owned{}
	var objects []unstructured.Unstructured
	kinds := []schema.GroupVersionKind{
		kind("pkg.crossplane.io", "v1", "Provider"), kind("pkg.crossplane.io", "v1", "ProviderRevision"),
		kind("pkg.crossplane.io", "v1", "Function"), kind("pkg.crossplane.io", "v1", "FunctionRevision"),
		kind("pkg.crossplane.io", "v1", "Configuration"), kind("pkg.crossplane.io", "v1", "ConfigurationRevision"),
		kind("pkg.crossplane.io", "v1beta1", "Lock"), kind("pkg.crossplane.io", "v1beta1", "ImageConfig"),
		kind("pkg.crossplane.io", "v1beta1", "DeploymentRuntimeConfig"), crdKind,
		kind("apiextensions.crossplane.io", "v1", "CompositeResourceDefinition"), kind("apiextensions.crossplane.io", "v1", "Composition"),
		kind("rbac.authorization.k8s.io", "v1", "ClusterRole"), kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
		kind("apps", "v1", "Deployment"), kind("", "v1", "Service"), kind("", "v1", "ServiceAccount"), kind("", "v1", "Secret"),
	}
	if !s.version.IsV1() {
		kinds = append(kinds, mrdKind, policyKind)
	}
	for _, gvk := range kinds {
		items, err := list(t.Context(), c, gvk, systemNamespace, "")
		must(t, err)
		objects = append(objects, items...)
	}
	alive := map[string]bool{}
	for _, u := range objects {
		alive[string(u.GetUID())] = true
	}
	for _, u := range objects {
		if u.GetKind() == "ClusterRole" && !strings.HasPrefix(u.GetName(), "crossplane:") || strings.HasSuffix(u.GetName(), ".velero.io") {
			continue
		}
		o := owned{State: stateOf(&u)}
		for _, ref := range u.GetOwnerReferences() {
			if s.version == stack.V20 && u.GetKind() == "CustomResourceDefinition" && ref.Kind == "ProviderRevision" {
				continue // After an upgrade of a provider, v2.0 leaves them to the revision that created them.
			}
			text := ref.Kind + " " + ref.Name
			if !alive[string(ref.UID)] {
				text += ", which is not there"
			}
			if ref.Controller != nil && *ref.Controller {
				text = "controller " + text
			}
			o.Owners = append(o.Owners, text)
		}
		slices.Sort(o.Owners)
		all[u.GetKind()+" "+u.GetName()] = o
	}
	if s.version == stack.V24 {
		all = withoutHashes(all, objects)
	}

	return all
}

// withoutHashes gives revisions of packages names without hashes. From v2.4 on the name of a
// revision depends on the generation of its package too, which differs in a new cluster.
func withoutHashes(all map[string]owned, objects []unstructured.Unstructured) map[string]owned {
	var names []string
	for _, u := range objects {
		if state, ok := stateOf(&u).(string); ok && strings.HasSuffix(u.GetKind(), "Revision") {
			names = append(names, u.GetName(), u.GetLabels()["pkg.crossplane.io/package"]+"-"+state)
		}
	}
	renamed, r := map[string]owned{}, strings.NewReplacer(names...)
	for name, o := range all {
		for i := range o.Owners {
			o.Owners[i] = r.Replace(o.Owners[i])
		}
		if texts, ok := o.State.([]string); ok {
			for i := range texts {
				texts[i] = r.Replace(texts[i])
			}
		}
		renamed[r.Replace(name)] = o
	}

	return renamed
}

// stateOf returns the compared state of an object without its owners.
func stateOf(u *unstructured.Unstructured) any {
	field := func(names ...string) any {
		v, _, _ := unstructured.NestedFieldCopy(u.Object, names...)

		return v
	}
	switch kind := u.GetKind(); {
	case strings.HasSuffix(kind, "Revision"):
		return field("spec", "desiredState")
	case kind == "Lock":
		var all []string
		packages, _ := u.Object["packages"].([]any)
		for _, p := range packages {
			m, _ := p.(map[string]any)
			all = append(all, fmt.Sprint(m["name"], " ", m["source"], " ", m["version"]))
		}
		slices.Sort(all)

		return all
	case kind == "ManagedResourceDefinition":
		return field("spec", "state")
	case kind == "ImageConfig", kind == "ManagedResourceActivationPolicy", kind == "Provider", kind == "Function", kind == "Configuration":
		return field("spec")
	default:
		return nil
	}
}

// testPackaged expects all to be unchanged, except inactive revisions, which are not restored.
func (s *suite) testPackaged(t *testing.T, n *shape, before map[string]owned) {
	s.testPackagedTree(t, n)
	if diff := cmp.Diff(withoutInactive(before), s.ownership(t, s.target)); diff != "" {
		t.Errorf("%s\n-before, +after:\n%s", n.reason, diff)
	}
	s.testExtra(t)
}

func (s *suite) testPackagedTree(t *testing.T, n *shape) {
	t.Helper()
	ctx := t.Context()
	must(t, n.AwaitReady(ctx, s.target))
	now, err := s.cloud.Journal(ctx, 0)
	must(t, err)
	s.testSettled(t, n, now[len(now)-1].Seq)
}

// withoutInactive removes inactive revisions, and the objects that they own.
func withoutInactive(all map[string]owned) map[string]owned {
	kept := map[string]owned{}
	isInactive := func(owner string) bool { return all[strings.TrimPrefix(owner, "controller ")].State == inactiveState }
	for name, o := range all {
		if o.State == inactiveState || len(o.Owners) == 1 && isInactive(o.Owners[0]) {
			continue
		}
		o.Owners = slices.DeleteFunc(slices.Clone(o.Owners), isInactive)
		kept[name] = o
	}

	return kept
}

// testRestoredAlone is a control: an inactive revision has lost its owner reference to the package,
// so it stays when the package is deleted. The fate of XRs depends on whether a function answers
// before all is restored. From v2.4 on the active revision has another name, and the package
// manager deletes one of the others.
func (s *suite) testRestoredAlone(t *testing.T, before map[string]owned) {
	after := s.ownership(t, s.target)
	if s.version == stack.V24 {
		return
	}
	for name, o := range before {
		if o.State == inactiveState && (after[name].State != inactiveState || len(after[name].Owners) > 0) {
			t.Errorf("docs/hazards.md says that %s has no owner, and it is %+v", name, after[name])
		}
	}
}

// testInstalledAlone is the control.
func (s *suite) testInstalledAlone(t *testing.T, n *shape) {
	must(t, s.target.Wait(t.Context(), patience, "Crossplane to compose again what Velero alone has restored", func(ctx context.Context) error {
		changes, err := n.Changes(ctx, s.cloud, n.ledger.Seq, n.ledger.External)
		if err == nil && len(changes) == 0 {
			err = errors.New("nothing has changed in the cloud")
		}

		return err
	}))
}

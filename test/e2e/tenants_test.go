package e2e

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// crown is a binding that no tenant may write. All the victim's objects have victim in their name.
const (
	crown  = "crown"
	victim = "victim"
)

const crownObject = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crown}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
`

func TestTenantsV2(t *testing.T) { testTenants(t, stack.V2) }

// testTenants lets tenants forge links to other tenants' objects. Their namespaces are backed up
// with the plugin, and everything is backed up without it. Then each forger's namespace alone is
// restored in a cluster that has no object of the victim.
func testTenants(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	s := newSuite(t, version)
	ctx := t.Context()
	forgeries := forgeriesOf(version)
	must(t, s.source.Apply(ctx, []byte(crownObject)))
	robbed := s.few(t, s.source, drill.Platform{Namespace: victim}, 1)
	var tenants []*tenant
	for _, f := range forgeries {
		f.tenant = s.few(t, s.source, drill.Platform{Namespace: f.namespace}, 1)
		tenants = append(tenants, f.tenant)
	}
	must(t, robbed.AwaitReady(ctx, s.source, 1))
	l := s.loot(t, robbed)
	for _, f := range forgeries {
		must(t, f.tenant.AwaitReady(ctx, s.source, 1))
		f.forge(t, s, f.tenant, l)
		before := len(asked(t, s.source, 0))
		backupWith(t, s.source, f.namespace, "--include-namespaces", f.namespace)
		f.asked = asked(t, s.source, before)
		f.contents = contents(t, s.source, f.namespace)
	}
	fair := s.withHonest(t, honest)
	tenants = append(tenants, fair)
	must(t, s.source.UsePlugin(ctx, false))
	everything := backupWith(t, s.source, "everything", clusterResources+"=true")
	s.tamper(t, everything, l)

	s.loseSource(t, tenants...)
	// Unchecked backups come first, while no object exists that they could match.
	for _, f := range forgeries {
		s.startForged(t, f, cmp.Or(f.from, "everything"))
	}
	for _, f := range forgeries {
		s.startForged(t, f, f.namespace)
	}
	written := s.written(t)
	for name, f := range forgeries {
		t.Run(name, func(t *testing.T) { s.testForgery(t, f, written) })
	}
	t.Run("Attacks", func(t *testing.T) { s.testAttacks(t, fair, l) })
	if version == stack.V2 {
		t.Run("Hostile", func(t *testing.T) { s.testHostile(t, forgeries) })
	}
}

// startForged restores the forger's namespace, and does not wait for adoption.
func (s *suite) startForged(t *testing.T, f *forgery, backup string) {
	t.Helper()
	restore := f.namespace + "-from-" + backup
	_, err := s.target.Velero(t.Context(), "restore", "create", restore, "--from-backup", backup, "--include-namespaces", f.namespace,
		"--item-operation-timeout", "1s")
	must(t, err)
	f.restores = append(f.restores, restore)
	must(t, drill.AwaitItems(t.Context(), s.target, restore))
}

// A forgery is the change by which a tenant tries to get other tenants' objects.
type forgery struct {
	reason    string
	namespace string
	forge     func(t *testing.T, s *suite, n *tenant, l *targets)

	// from is the backup that is restored first, "everything" if it is "".
	from string
	// check checks further results; nil for none.
	check func(t *testing.T, s *suite, f *forgery)

	tenant   *tenant
	contents map[string]string
	// asked are the requests of the plugin in its backup.
	asked    []stack.Request
	restores []string
}

// targets are the objects that forgers try to get.
type targets struct {
	instance, composite, composition, crown *unstructured.Unstructured
	managed                                 []unstructured.Unstructured
}

func (s *suite) loot(t *testing.T, robbed *tenant) *targets {
	t.Helper()
	ctx := t.Context()
	instances, err := robbed.Instances(ctx, s.source)
	must(t, err)
	xrs, err := robbed.Composites(ctx, s.source)
	must(t, err)
	mrs, err := robbed.Managed(ctx, s.source)
	must(t, err)
	binding, err := get(ctx, s.source, schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}, "", crown)
	must(t, err)
	kind := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}
	composition, err := get(ctx, s.source, kind, "", "environments-"+victim)
	must(t, err)

	return &targets{instance: &instances[0], composite: &xrs[0], composition: composition, crown: binding, managed: mrs}
}

// testForgery checks that neither the forger's backup nor a restore of the forger's namespace has
// any object that is not the forger's.
func (s *suite) testForgery(t *testing.T, f *forgery, written map[string][]string) {
	for path := range f.contents {
		if strings.Contains(path, victim) || strings.Contains(path, crown) {
			t.Errorf("%s The backup of %s has %s", f.reason, f.namespace, path)
		}
	}
	if len(f.contents) == 0 {
		t.Error("the backup is empty")
	}
	if f.check != nil {
		f.check(t, s, f)
	}
	for i, restore := range f.restores {
		mine := 0
		for _, object := range written[restore] {
			switch {
			case strings.Contains(object, victim):
				t.Errorf("%s The restore %s wrote %s, which is the victim's", f.reason, restore, object)
			case strings.Contains(object, f.namespace):
				mine++
			case strings.HasPrefix(object, "CustomResourceDefinition "), strings.HasPrefix(object, "CompositeResourceDefinition "):
			default:
				t.Errorf("%s The restore %s wrote %s", f.reason, restore, object)
			}
		}
		if i == 0 && mine == 0 {
			t.Errorf("the restore %s wrote nothing, so the test proves nothing", restore)
		}
	}
}

// written returns the objects that each restore created, as kind and namespace/name.
func (s *suite) written(t *testing.T) map[string][]string {
	t.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(s.target.REST())
	must(t, err)
	lists, err := disco.ServerPreferredResources()
	must(t, err)
	client, err := dynamic.NewForConfig(s.target.REST())
	must(t, err)
	const label = "velero.io/restore-name"
	written := map[string][]string{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		must(t, err)
		for _, r := range l.APIResources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			objects, err := client.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{LabelSelector: label})
			must(t, err)
			for _, u := range objects.Items {
				restore := u.GetLabels()[label]
				object := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
				if owner := metav1.GetControllerOf(&u); owner != nil && u.GetKind() == "Secret" { // On v1 the name of an XR's Secret is a UID.
					object += " of " + owner.Kind + " " + owner.Name
				}
				written[restore] = append(written[restore], object)
			}
		}
	}

	return written
}

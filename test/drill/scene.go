package drill

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Scene is a shape of tree that users have, as manifests in a directory of its own:
//
//	platform.yaml   XRDs and Compositions, in every cluster
//	source.yaml     what of the platform only the source has from the start
//	objects.yaml    what users create, Count times
//	change.yaml     what the platform team changes in the source when the instances are Ready
//	target.yaml     what of the platform only the target has
//	cure.yaml       what of the platform a user repairs when restored objects wait for it
//
// All but objects.yaml may be missing. A file like platform-v1.yaml is read in place of platform.yaml
// on Crossplane v1. In them ${scene} is the scene's name, ${store} is Store, ${n} is the number of the
// instance, ${cloud} and ${upjet} are the groups of the MRs of the cloud's providers, which have no
// namespace on v1, and ${usages} is that of Usages. Every name must begin with the scene's name and a dash, or be made up from such a
// name: the cloud's journal is filtered by it.
type Scene struct {
	// Name of the scene, and of the namespace of its instances.
	Name string
	// Dir has the manifests. Two scenes can share one.
	Dir string
	// Crossplane is the version that runs in the clusters; v2 if it is empty.
	Crossplane stack.Version
	// Count is how many instances there are of objects.yaml; 1 if it is 0.
	Count int
	// Size is how many objects the scene has when it is complete.
	Size int
	// Namespaces of what is composed; Name if there are none.
	Namespaces []string
	// Composed is true if XRs compose the namespaces.
	Composed bool
	// Store is the namespace that XRs publish their connection details to; Name if it is empty.
	Store string
	// BackupArgs and RestoreArgs are the arguments of the velero commands that choose what to back
	// up and restore; the namespaces if empty.
	BackupArgs, RestoreArgs []string
	// To is the namespace that a restore has mapped Name to; "" for none.
	To string
	// Others is true for the scene's bystanders: XRs and claims of another namespace, or with another
	// prefix if they or what they compose are cluster-scoped, that share its XRDs and Compositions.
	Others bool
	// OwnNames is true if all that bystanders create has names of its own.
	OwnNames bool
	// Kinds are compared in its namespaces beside those of which the scene has objects.
	Kinds []schema.GroupVersionKind
	// Status is true if a Picture has the status of the objects, too.
	Status bool
	// Drift is true if the target has other revisions than the source, so that an XR on Automatic
	// runs on another one than before.
	Drift bool
}

// Install applies the part of the platform that a cluster has from the start, and waits until it is
// served. Velero sees the new kinds at once only after a restart. The extra file is source.yaml or
// target.yaml.
func (s Scene) Install(ctx context.Context, c *stack.Cluster, extra string) error {
	all, err := s.readBoth(extra)
	if err != nil {
		return err
	}

	return serve(ctx, c, s.Name, all...)
}

// Put is Install without waiting.
func (s Scene) Put(ctx context.Context, c *stack.Cluster, extra string) error {
	all, err := s.readBoth(extra)
	if err != nil {
		return err
	}

	return c.ApplyObjects(ctx, all...)
}

// readBoth reads the platform and an extra file of it.
func (s Scene) readBoth(extra string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, file := range []string{"platform.yaml", extra} {
		objects, err := s.read(file, 1)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}

	return all, nil
}

// Change applies the platform team's changes once the instances exist.
func (s Scene) Change(ctx context.Context, c *stack.Cluster) error {
	return s.Apply(ctx, c, "change.yaml")
}

// Cure applies a user's repairs in the target.
func (s Scene) Cure(ctx context.Context, c *stack.Cluster) error {
	return s.Apply(ctx, c, "cure.yaml")
}

// Apply applies a file of the scene, and waits until what it defines is served.
func (s Scene) Apply(ctx context.Context, c *stack.Cluster, file string) error {
	objects, err := s.read(file, 1)
	if err != nil {
		return err
	}

	return serve(ctx, c, s.Name, objects...)
}

// Offered waits until the scene's platform is complete, by whichever way it came.
func (s Scene) Offered(ctx context.Context, c *stack.Cluster) error {
	objects, err := s.read("platform.yaml", 1)
	if err != nil {
		return err
	}

	return awaitServed(ctx, c, s.Name, objects...)
}

// serve applies XRDs and Compositions and waits until the XRDs are Established and Crossplane has
// revisions of the Compositions.
func serve(ctx context.Context, c *stack.Cluster, of string, objects ...*unstructured.Unstructured) error {
	if err := c.ApplyObjects(ctx, objects...); err != nil {
		return err
	}

	return awaitServed(ctx, c, of, objects...)
}

func awaitServed(ctx context.Context, c *stack.Cluster, of string, objects ...*unstructured.Unstructured) error {
	return c.Wait(ctx, stepTimeout, "the platform of "+of, func(ctx context.Context) error {
		for _, u := range objects {
			if err := served(ctx, c, u); err != nil {
				return err
			}
		}

		return nil
	})
}

func served(ctx context.Context, c *stack.Cluster, u *unstructured.Unstructured) error {
	switch u.GetKind() {
	case "CompositeResourceDefinition":
		live, err := get(ctx, c, u.GroupVersionKind(), "", u.GetName())
		if err != nil {
			return err
		}
		if _, claims, _ := unstructured.NestedMap(u.Object, "spec", "claimNames"); claims {
			err = stack.HasCondition(live, "Offered", "True")
		}

		return errors.Join(err, stack.HasCondition(live, "Established", "True"))
	case "Composition":
		revisions, err := list(ctx, c, revisionKind, "", "")
		if err != nil {
			return err
		}
		newest := newest(revisions, u.GetName(), nil)
		if have, want := resourcesOf(&newest), resourcesOf(u); newest.Object == nil || !slices.Equal(have, want) {
			return fmt.Errorf("the newest revision of %s has the resources %v, not %v", u.GetName(), have, want)
		}

		return nil
	default:
		return nil
	}
}

// newest returns the newest revision of a Composition that has the labels.
func newest(revisions []unstructured.Unstructured, composition string, selector map[string]any) unstructured.Unstructured {
	var newest unstructured.Unstructured
	highest := int64(0)
	for _, r := range revisions {
		has := r.GetLabels()
		matches := has["crossplane.io/composition-name"] == composition
		for name, value := range selector {
			matches = matches && has[name] == value
		}
		if n, _, _ := unstructured.NestedInt64(r.Object, "spec", "revision"); matches && n > highest {
			newest, highest = r, n
		}
	}

	return newest
}

var revisionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}

// Make creates the namespaces and the instances. They take a while to be Ready.
func (s Scene) Make(ctx context.Context, c *stack.Cluster) error {
	for _, name := range s.namespaces() {
		if s.Composed {
			break
		}
		if err := c.ApplyObjects(ctx, namespaceOf(name)); err != nil {
			return err
		}
	}
	objects, err := s.instances()
	if err != nil {
		return err
	}

	return c.ApplyObjects(ctx, objects...)
}

func (s Scene) namespaces() []string {
	all := []string{s.Name}
	switch {
	case s.To != "":
		return []string{s.To}
	case len(s.Namespaces) > 0:
		all = slices.Clone(s.Namespaces)
	case s.Store != "" && !s.Others:
		all = []string{s.Name, s.Store}
	}
	for i := range all {
		if s.Others {
			all[i] = others + all[i]
		}
	}

	return all
}

// others begins the namespaces of bystanders, and the names of those without a namespace.
const others = "others-"

// prefix returns what the names of the scene's cluster-scoped objects begin with.
func (s Scene) prefix() string {
	if s.Others {
		return others + s.Name + "-"
	}

	return s.Name + "-"
}

// instances returns the objects that users create.
func (s Scene) instances() ([]*unstructured.Unstructured, error) {
	all, err := s.read("objects.yaml", max(s.Count, 1))
	for _, u := range all {
		if s.To != "" && u.GetNamespace() == s.Name {
			u.SetNamespace(s.To)
		}
	}
	if err != nil || !s.Others {
		return all, err
	}
	var theirs []*unstructured.Unstructured
	for _, u := range all {
		isXR, namespaced := u.GroupVersionKind().Group == s.Name+".example.org", u.GetNamespace() == s.Name
		if !isXR && !namespaced {
			continue
		}
		if namespaced {
			u.SetNamespace(others + s.Name)
		}
		if isXR && !namespaced && !strings.HasPrefix(u.GetName(), others) {
			u.SetName(others + u.GetName())
		}
		theirs = append(theirs, u)
	}

	return theirs, nil
}

// Read reads a file of the scene as Apply does.
func (s Scene) Read(file string) ([]*unstructured.Unstructured, error) { return s.read(file, 1) }

// read reads a file n times, each time with another number in it. It returns nothing for a missing
// file.
func (s Scene) read(file string, n int) ([]*unstructured.Unstructured, error) { //nolint:cyclop // It is one step after another.
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(s.Dir, strings.TrimSuffix(file, ".yaml")+"-v1.yaml"))
	if !s.Crossplane.IsV1() || errors.Is(err, fs.ErrNotExist) {
		b, err = os.ReadFile(filepath.Join(s.Dir, file))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read scene %s: %w", s.Name, err)
	}
	store := s.Store
	if store == "" {
		store = s.Name
	}
	scope, usages := "m.", "protection.crossplane.io"
	if s.Crossplane.IsV1() {
		scope, usages = "", "apiextensions.crossplane.io"
	}
	var all []*unstructured.Unstructured
	for i := range n {
		text := string(b)
		// What a claim leads to on v1 is told apart by its name.
		if s.Others && file == "objects.yaml" && (s.OwnNames || s.Crossplane.IsV1()) {
			text = strings.ReplaceAll(text, "${scene}-", others+"${scene}-")
		}
		text = strings.NewReplacer("${scene}", s.Name, "${store}", store, "${cloud}", "cloud."+scope+"example.org", "${upjet}", "upjet."+scope+"example.org",
			"${usages}", usages, "${n}", fmt.Sprintf("%02d", i)).Replace(text)
		objects, err := stack.Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s of scene %s: %w", file, s.Name, err)
		}
		for _, u := range objects {
			if s.Crossplane.IsV1() && IsManaged(u) {
				u.SetNamespace("")
			}
			all = append(all, s.expand(u))
		}
	}

	return all, nil
}

// BackUp backs up the scene and waits until the backup is Completed. Backups run one after the
// other: Velero 1.18 sometimes leaves a second one in its queue for a minute.
func (s Scene) BackUp(ctx context.Context, c *stack.Cluster) error {
	return backUp(ctx, c, s.Name, s.backupArgs()...)
}

// EndOfBackup backs up the scene and returns the Backup when it has ended, in any phase.
func (s Scene) EndOfBackup(ctx context.Context, c *stack.Cluster) (*unstructured.Unstructured, error) {
	return endOfBackup(ctx, c, s.Name, s.backupArgs()...)
}

func (s Scene) backupArgs() []string {
	if len(s.BackupArgs) > 0 {
		return s.BackupArgs
	}

	return []string{"--include-namespaces", strings.Join(s.namespaces(), ",")}
}

// StartRestore waits until the cluster knows the backup, and starts to restore it.
func (s Scene) StartRestore(ctx context.Context, c *stack.Cluster) error {
	return startRestore(ctx, c, s.Name, s.Name, s.RestoreArgs...)
}

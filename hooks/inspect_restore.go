package hooks

import (
	"fmt"
	"maps"
	"os"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
)

// readRestore reads the manifest of a Restore from a file.
func readRestore(file string) (*unstructured.Unstructured, error) {
	b, err := os.ReadFile(file) //nolint:gosec // The user names the file.
	if err != nil {
		return nil, fmt.Errorf("cannot read the Restore: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.UnmarshalStrict(b, &u.Object); err != nil {
		return nil, fmt.Errorf("cannot read the Restore in %s: %w", file, err)
	}
	if u.GroupVersionKind().GroupKind() != live.KindRestore.GroupKind() {
		return nil, fmt.Errorf("cannot use %s: it is no Restore of velero.io", file)
	}

	return u, nil
}

func usage(format string, args ...any) error {
	return &exit{code: ExitUsage, err: fmt.Errorf(format, args...)}
}

// prepare sets the Restore of the dry run.
func (i *inspect) prepare() error {
	i.restore = &velerov1.Restore{}
	i.restore.Namespace, i.restore.Name = i.velero, "rehearsal"
	switch {
	case i.against:
	case len(i.mappings.Data()) > 0:
		return usage("cannot use --namespace-mappings without --against")
	case i.manifest != "":
		return usage("cannot use --restore without --against")
	}
	if i.manifest != "" {
		if err := i.readManifest(); err != nil {
			return err
		}
	}
	if len(i.mappings.Data()) > 0 {
		i.restore.Spec.NamespaceMapping = maps.Clone(i.restore.Spec.NamespaceMapping)
		if i.restore.Spec.NamespaceMapping == nil {
			i.restore.Spec.NamespaceMapping = map[string]string{}
		}
		maps.Copy(i.restore.Spec.NamespaceMapping, i.mappings.Data())
	}

	return nil
}

// readManifest reads the Restore. It refuses fields that the Restore of this Velero version does not
// have: a misspelled filter would select everything.
func (i *inspect) readManifest() error {
	u, err := readRestore(i.manifest)
	if err != nil {
		return err
	}
	name, namespace := i.restore.Name, i.restore.Namespace
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, i.restore, true); err != nil {
		return fmt.Errorf("cannot use the Restore in %s: %w", i.manifest, err)
	}
	if i.restore.Name == "" { // It can have generateName.
		i.restore.Name = name
	}
	i.restore.Namespace = namespace

	return nil
}

// fullNames replaces short names in the Restore's filters by resources, since only the API server
// knows them.
func (i *inspect) fullNames(cluster *live.Cluster) error {
	for _, filters := range []*[]string{&i.restore.Spec.IncludedResources, &i.restore.Spec.ExcludedResources} {
		full, err := cluster.WithoutShortNames(*filters)
		if err != nil {
			return err // It says what can't be read.
		}
		*filters = full
	}

	return nil
}

package live

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// SettingsLabels select the ConfigMap of settings: the label of all Velero plugins, and this one's.
const SettingsLabels = "velero.io/plugin-config,velero.crossplane.io/settings"

// Settings returns the data of the ConfigMap of settings in Velero's namespace; nil if there is
// none. It returns a setting.InvalidError if there are several, since one would be ignored.
func (c *Cluster) Settings(ctx context.Context, namespace string) (map[string]string, error) {
	found, err := c.SettingsIn(ctx, namespace)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, nil //nolint:nilnil // nil means the default settings.
	case len(found) > 1:
		return nil, setting.InvalidError{Err: fmt.Errorf("cannot choose between the ConfigMaps %s and %s, which both have the labels %s; remove one", found[0].Name,
			found[1].Name, SettingsLabels)}
	default:
		return found[0].Data, nil
	}
}

// SettingsIn returns all ConfigMaps of settings in the namespace; there should be at most one.
func (c *Cluster) SettingsIn(ctx context.Context, namespace string) ([]setting.Place, error) {
	found, err := c.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: setting.KindConfigMap}, namespace, metav1.ListOptions{LabelSelector: SettingsLabels})
	if err != nil {
		return nil, fmt.Errorf("cannot find the settings: %w", err)
	}
	var places []setting.Place
	for _, u := range found {
		data, _, err := unstructured.NestedStringMap(u.Object, "data")
		if err != nil {
			return nil, fmt.Errorf("cannot read the ConfigMap %s: %w", u.GetName(), err)
		}
		places = append(places, setting.Place{Kind: setting.KindConfigMap, Namespace: namespace, Name: u.GetName(), Data: data})
	}

	return places, nil
}

// SettingsOf returns the annotations of a Velero Backup or Restore as a place with settings.
func (c *Cluster) SettingsOf(ctx context.Context, kind, namespace, name string) (setting.Place, error) {
	u, err := c.Get(ctx, xp.Ref{APIVersion: KindRestore.GroupVersion().String(), Kind: kind, Namespace: namespace, Name: name})
	if isUnserved(err) {
		return setting.Place{}, fmt.Errorf("cannot find the %s %s/%s: there is none of this name; see: velero %s get -n %s", kind, namespace, name,
			strings.ToLower(kind), namespace)
	}
	if err != nil {
		return setting.Place{}, err
	}

	return setting.Place{Kind: kind, Namespace: namespace, Name: name, Data: u.GetAnnotations()}, nil
}

// Restore returns a Velero Restore. Errors are those of Get.
func (c *Cluster) Restore(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return c.Get(ctx, xp.Ref{APIVersion: KindRestore.GroupVersion().String(), Kind: KindRestore.Kind, Namespace: namespace, Name: name})
}

// ConfigMap returns the data of a ConfigMap. Errors are those of Get.
func (c *Cluster) ConfigMap(ctx context.Context, namespace, name string) (map[string]string, error) {
	u, err := c.Get(ctx, xp.Ref{APIVersion: "v1", Kind: setting.KindConfigMap, Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	if err != nil {
		return nil, fmt.Errorf("cannot read the ConfigMap %s/%s: %w", namespace, name, err)
	}

	return data, nil
}

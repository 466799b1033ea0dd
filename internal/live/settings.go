package live

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SettingsLabels are the labels of the ConfigMap of settings: the one that all ConfigMaps of Velero's plugins have, and this plugin's.
const SettingsLabels = "velero.io/plugin-config,velero.crossplane.io/settings"

// Settings returns the data of the ConfigMap of settings in the namespace, which is that of Velero; nil if there is none. It fails if there are
// several, of which one would not be heard.
func (c *Cluster) Settings(ctx context.Context, namespace string) (map[string]string, error) {
	found, err := c.List(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, namespace, metav1.ListOptions{LabelSelector: SettingsLabels})
	if err != nil {
		return nil, fmt.Errorf("cannot find the settings: %w", err)
	}
	switch len(found) {
	case 0:
		return nil, nil //nolint:nilnil // No settings are settings.
	case 1:
	default:
		return nil, fmt.Errorf("cannot choose between the ConfigMaps %s and %s, which both have the labels %s; remove one", found[0].GetName(), found[1].GetName(),
			SettingsLabels)
	}
	data, _, err := unstructured.NestedStringMap(found[0].Object, "data")
	if err != nil {
		return nil, fmt.Errorf("cannot read the ConfigMap %s: %w", found[0].GetName(), err)
	}

	return data, nil
}

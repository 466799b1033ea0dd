package controller

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// A Discoverer lists the resources that an API server serves.
type Discoverer interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Served returns the kinds of the group version that the API server serves. A Crossplane v1 cluster
// need not have the namespaced ones.
func Served(d Discoverer, gv schema.GroupVersion) ([]schema.GroupVersionKind, error) {
	l, err := d.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}

	if err != nil {
		return nil, fmt.Errorf("cannot discover the resources of %s: %w", gv, err)
	}

	served := map[string]bool{}
	for _, r := range l.APIResources {
		served[r.Kind] = true
	}

	var gvks []schema.GroupVersionKind

	for _, k := range api.Kinds() {
		if served[string(k)] {
			gvks = append(gvks, gv.WithKind(string(k)))
		}
	}

	return gvks, nil
}

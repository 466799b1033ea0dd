// Package apis has the kinds that the provider reconciles.
package apis

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/cluster/v1alpha1"
	namespaced "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/namespaced/v1alpha1"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.18.0 object paths=./... crd:crdVersions=v1 output:crd:dir=../crds
//go:generate go tool -modfile=../tools.mod angryjet generate-methodsets ./...

// AddToScheme adds every kind to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	if err := cluster.AddToScheme(s); err != nil {
		return fmt.Errorf("cannot add the cluster-scoped kinds: %w", err)
	}

	if err := namespaced.AddToScheme(s); err != nil {
		return fmt.Errorf("cannot add the namespaced kinds: %w", err)
	}

	return nil
}

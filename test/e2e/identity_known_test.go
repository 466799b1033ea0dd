package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// upjetKind is a kind of a provider that does not run here. Nothing changes a restored MR of it.
const upjetKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  scope: %[5]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[2]s, singular: %[4]s, categories: [crossplane, managed, aws]}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const lostName = `
apiVersion: %[1]s/v1beta1
kind: %[2]s
metadata: {%[4]s, labels: {scene: %[3]s}, finalizers: [finalizer.managedresource.crossplane.io]}
spec: {forProvider: {region: here}, providerConfigRef: {kind: ClusterProviderConfig, name: aws}}
`

// knownKinds returns two kinds of provider-upjet-aws. The plugin knows how the external-name of the
// first follows from its id, and does not know it of the other.
func (s *identity) knownKinds() (known, other schema.GroupVersionKind) {
	provider := "aws.m.upbound.io"
	if s.version.IsV1() {
		provider = "aws.upbound.io"
	}

	return schema.GroupVersionKind{Group: "ec2." + provider, Version: "v1beta1", Kind: "VPC"}, schema.GroupVersionKind{Group: "iam." + provider, Version: "v1beta1", Kind: "Policy"}
}

// These are namespaces, or names of cluster-scoped objects. Each has one MR of each of these kinds,
// whose external-names were lost. Velero alone backs up all but the first, and restores the last.
const (
	nameBackedUp = "known"
	nameRestored = "known-later"
	nameUnwanted = "known-unwanted"
	nameAlone    = "known-alone"
)

// defineKnown creates the CRDs of the kinds in a cluster.
func (s *identity) defineKnown(t *testing.T, c *stack.Cluster) {
	t.Helper()
	scope := "Namespaced"
	if s.version.IsV1() {
		scope = "Cluster"
	}
	known, other := s.knownKinds()
	for _, k := range []struct {
		gvk            schema.GroupVersionKind
		plural, single string
	}{{known, "vpcs", "vpc"}, {other, "policies", "policy"}} {
		s.applyYAML(t, c, fmt.Sprintf(upjetKind, k.gvk.Group, k.plural, k.gvk.Kind, k.single, scope))
	}
}

func (s *identity) applyYAML(t *testing.T, c *stack.Cluster, manifest string) {
	t.Helper()
	u := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(manifest), &u.Object))
	must(t, c.ApplyObjects(t.Context(), u))
}

// fillKnown creates MRs in the source that are observed and have no external-name.
func (s *identity) fillKnown(t *testing.T) {
	t.Helper()
	known, other := s.knownKinds()
	for _, namespace := range []string{nameBackedUp, nameRestored, nameUnwanted, nameAlone} {
		in, name := s.placeOf(namespace)
		place := "name: " + name
		if in != "" {
			place += ", namespace: " + in
			s.applyYAML(t, s.source, "{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")
		}
		for _, gvk := range []schema.GroupVersionKind{known, other} {
			s.applyYAML(t, s.source, fmt.Sprintf(lostName, gvk.Group, gvk.Kind, namespace, place))
			r, err := s.source.Resource(t.Context(), gvk, in)
			must(t, err)
			status := `{"status":{"atProvider":{"id":"id-of-` + namespace + `"}}}`
			_, err = r.Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			must(t, err)
		}
	}
}

// placeOf returns the namespace and the name of an MR that lost its external-name.
func (s *identity) placeOf(scene string) (namespace, name string) {
	if s.version.IsV1() {
		return "", scene
	}

	return scene, "lost"
}

// testKnown expects an MR of the known kind to get its external-name, from a backup with the plugin
// and from one without. It expects an MR of the other kind to be held.
func (s *identity) testKnown(t *testing.T) {
	known, other := s.knownKinds()
	for _, namespace := range []string{nameBackedUp, nameRestored} {
		if u := s.lostIn(t, known, namespace); u.GetAnnotations()[externalName] != "id-of-"+namespace || isOnHold(u) {
			t.Errorf("The VPC in %s must have its name and be released: %v", namespace, u.GetAnnotations())
		}
		if u := s.lostIn(t, other, namespace); u.GetAnnotations()[externalName] != "" || !isOnHold(u) || !strings.Contains(markOf(u), "id-of-"+namespace) {
			t.Errorf("The Policy in %s must be held and name the id that its provider stored: %v", namespace, u.GetAnnotations())
		}
	}
}

// testKnownUnwanted expects an MR of the known kind to be held if no setting allows it to be named.
func (s *identity) testKnownUnwanted(t *testing.T) {
	known, _ := s.knownKinds()
	if u := s.lostIn(t, known, nameUnwanted); u.GetAnnotations()[externalName] != "" || !isOnHold(u) {
		t.Errorf("The VPC must be held: %v", u.GetAnnotations())
	}
}

// testAloneKnown is the control: Velero alone restores the MR without a name, and its provider
// would create another external resource.
func (s *identity) testAloneKnown(t *testing.T) {
	known, _ := s.knownKinds()
	if u := s.lostIn(t, known, nameAlone); u.GetAnnotations()[externalName] != "" || isOnHold(u) {
		t.Errorf("The VPC has a name or is held, so the other tests prove nothing: %v", u.GetAnnotations())
	}
}

func (s *identity) lostIn(t *testing.T, gvk schema.GroupVersionKind, namespace string) *unstructured.Unstructured {
	t.Helper()
	in, name := s.placeOf(namespace)
	u, err := get(t.Context(), s.target, gvk, in, name)
	must(t, err)

	return u
}

// isOnHold reports whether the plugin holds an MR.
func isOnHold(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[annotationHold]

	return marked && paused(u)
}

package e2e

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// An applyWay is a way in which an applier applies manifests.
type applyWay struct {
	name, reason string
	// base are the "kubectl apply" arguments of an applier that comes first; nil for none.
	base []string
	// args are the applier's own arguments.
	args []string
}

func applyWays() []applyWay {
	serverSide := []string{"--server-side"}

	return []applyWay{
		{name: "server", reason: "A field that was applied server-side goes when it leaves the manifest.", args: serverSide},
		{name: "client", reason: "So does a field that was applied client-side, by the last-applied annotation.", args: []string{}},
		{
			name: "second", reason: "So does a field that a second applier forces, as Argo CD does.", base: serverSide,
			args: []string{"--server-side", "--force-conflicts", "--field-manager=argocd-controller"},
		},
	}
}

// A phase is the wanted state of an object at one time.
type phase struct {
	name    string
	extras  map[string]any
	labels  map[string]string
	remarks map[string]string
}

// phasesOf returns the phases in the order in which they are applied. The first comes before the
// backup. The dropped, added and changed fields include those that a hold changes.
func phasesOf(k sort) []phase {
	return []phase{
		{name: "First", extras: k.first, labels: map[string]string{"colour": "red", "size": "small"}, remarks: map[string]string{"example.org/note": "one"}},
		{name: "Dropped", labels: map[string]string{"size": "small"}},
		{name: "Added", extras: k.second, labels: map[string]string{"colour": "blue", "size": "large"}, remarks: map[string]string{"example.org/note": "two"}},
	}
}

// A sort is a kind of objects that users create.
type sort struct {
	name, kind, apiVersion string
	namespaced             bool
	// spec is common to all phases. first and second are fields of the first and the last.
	spec, first, second map[string]any
}

func userKinds(version stack.Version) []sort {
	policy := func(policy string) map[string]any {
		return choiceOf(version, map[string]any{"compositionUpdatePolicy": policy})
	}
	environment := sort{
		name: "instance", kind: "Environment", apiVersion: "platform.example.org/v1alpha1", namespaced: true,
		spec:  map[string]any{"region": "eu-central", "cidr": "10.0.0.0/16"},
		first: policy("Automatic"), second: policy("Manual"),
	}
	merge(environment.spec, choiceOf(version, map[string]any{"compositionRef": map[string]any{"name": "environments-" + managing}}))
	bucket := sort{
		name: "mr", kind: "Bucket", apiVersion: "cloud.m.example.org/v1alpha1", namespaced: true,
		spec: map[string]any{"forProvider": map[string]any{"region": "eu-central"}}, first: bucketSpecs()[0], second: bucketSpecs()[2],
	}
	if version != stack.V1 {
		return []sort{environment, bucket}
	}
	xr := environment
	xr.name, xr.kind, xr.namespaced = "xr", "XEnvironment", false
	bucket.apiVersion, bucket.namespaced = "cloud.example.org/v1alpha1", false

	return []sort{environment, xr, bucket}
}

// choiceOf returns the part of a spec that Crossplane owns, for an XR or a claim.
func choiceOf(version stack.Version, choice map[string]any) map[string]any {
	if version == stack.V1 {
		return choice
	}

	return map[string]any{"crossplane": choice}
}

// bucketSpecs returns what Buckets have in each phase beside their region.
func bucketSpecs() []map[string]any {
	return []map[string]any{
		{
			"managementPolicies": []any{"Observe", "Create", "Update", "LateInitialize"},
			"forProvider":        map[string]any{"tags": map[string]any{"a": "1", "b": "2"}},
		},
		{},
		{"managementPolicies": []any{"Observe", "Create", "Update"}, "forProvider": map[string]any{"tags": map[string]any{"b": "3", "c": "4"}}},
	}
}

// manifest returns the manifest of an object of a sort in a phase.
func (k sort) manifest(name string, p phase) *unstructured.Unstructured {
	spec := map[string]any{}
	merge(spec, k.spec)
	merge(spec, p.extras)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.apiVersion, "kind": k.kind, "spec": spec}}
	u.SetName(name)
	if k.namespaced {
		u.SetNamespace(managing)
	}
	labels := map[string]string{"scene": managing}
	maps.Copy(labels, p.labels)
	u.SetLabels(labels)
	u.SetAnnotations(p.remarks)

	return u
}

// merge adds the fields of more to an object, map by map.
func merge(object, more map[string]any) {
	for key, value := range more {
		inner, isMap := value.(map[string]any)
		if !isMap {
			object[key] = value

			continue
		}
		within, _ := object[key].(map[string]any)
		within = maps.Clone(within)
		if within == nil {
			within = map[string]any{}
		}
		merge(within, inner)
		object[key] = within
	}
}

package e2e

import (
	"testing"
)

// providerConfigs has a kind of ProviderConfig for a family of providers, in the group above that
// of the MRs.
const providerConfigs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusterproviderconfigs.m.example.org
spec:
  scope: Cluster
  group: m.example.org
  names:
    kind: ClusterProviderConfig
    plural: clusterproviderconfigs
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
---
apiVersion: m.example.org/v1beta1
kind: ClusterProviderConfig
metadata:
  name: default
spec:
  credentials:
    source: Secret
    secretRef: {namespace: keys, name: cloud, key: token}
---
apiVersion: v1
kind: Namespace
metadata:
  name: keys
---
apiVersion: v1
kind: Secret
metadata:
  namespace: keys
  name: cloud
stringData:
  token: '` + planted + `'
`

// testCredentials backs up a namespace whose MRs use a ProviderConfig of the platform. Its
// credentials are in the backup only if the user asks for them.
func (s *suite) testCredentials(t *testing.T, n *tenant) {
	must(t, s.target.Apply(t.Context(), []byte(providerConfigs)))
	must(t, s.target.RestartVelero(t.Context()))
	const config = "resources/clusterproviderconfigs.m.example.org/cluster/default.json"
	const secret = "resources/secrets/namespaces/keys/cloud.json"
	cases := map[string]struct {
		reason string
		args   []string
		secret bool
	}{
		"unasked": {reason: "Credentials are the platform's."},
		"asked":   {reason: "A platform team can want them.", args: []string{"--annotations", "velero.crossplane.io/provider-credentials=include"}, secret: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			backupWith(t, s.target, "credentials-"+name, append(tc.args, "--include-namespaces", n.Namespace)...)
			in := contents(t, s.target, "credentials-"+name)
			if _, ok := in[config]; !ok {
				t.Errorf("%s\nThe ProviderConfig that the MRs use is not in the backup.", tc.reason)
			}
			if _, ok := in[secret]; ok != tc.secret {
				t.Errorf("%s\nThat the credentials are in the backup is %v.", tc.reason, ok)
			}
		})
	}
}

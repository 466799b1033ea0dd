package e2e

// packages are a provider, whose revisions follow its package, and a configuration, whose owner
// chooses the revision. They are paused, since there is no registry.
const packages = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: providerconfigusages.acme.example.net
spec:
  group: acme.example.net
  scope: Cluster
  names:
    kind: ProviderConfigUsage
    listKind: ProviderConfigUsageList
    plural: providerconfigusages
    singular: providerconfigusage
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
---
apiVersion: pkg.crossplane.io/v1
kind: Provider
metadata:
  name: acme
  annotations:
    crossplane.io/paused: "true"
spec:
  package: registry.invalid/acme:v1
---
apiVersion: pkg.crossplane.io/v1
kind: Configuration
metadata:
  name: chosen
  annotations:
    crossplane.io/paused: "true"
spec:
  package: registry.invalid/chosen:v1
  revisionActivationPolicy: Manual
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: persons-own
`

// revisions are those that the package manager would have created.
const revisions = `
apiVersion: pkg.crossplane.io/v1
kind: ProviderRevision
metadata:
  name: acme-1
  annotations:
    crossplane.io/paused: "true"
  labels:
    pkg.crossplane.io/package: acme
spec:
  desiredState: Active
  image: registry.invalid/acme:v1
  revision: 1
---
apiVersion: pkg.crossplane.io/v1
kind: ConfigurationRevision
metadata:
  name: chosen-1
  annotations:
    crossplane.io/paused: "true"
  labels:
    pkg.crossplane.io/package: chosen
spec:
  desiredState: Active
  image: registry.invalid/chosen:v1
  revision: 1
`

// runtime is the objects that a revision of the provider would have created.
const runtime = `
apiVersion: apps/v1
kind: Deployment
metadata:
  namespace: crossplane-system
  name: acme-1
spec:
  replicas: 0
  selector:
    matchLabels:
      app: acme
  template:
    metadata:
      labels:
        app: acme
    spec:
      containers:
      - name: acme
        image: registry.invalid/acme:v1
---
apiVersion: v1
kind: ServiceAccount
metadata:
  namespace: crossplane-system
  name: acme-1
---
apiVersion: v1
kind: Service
metadata:
  namespace: crossplane-system
  name: acme-1
spec:
  ports:
  - port: 9443
`

// tuned is a ServiceAccount of a DeploymentRuntimeConfig. A user has given it a role in a cloud.
const tuned = `
apiVersion: v1
kind: ServiceAccount
metadata:
  namespace: crossplane-system
  name: acme
  annotations:
    ` + annotationRole + `: arn:aws:iam::1:role/acme
imagePullSecrets:
- name: registry
`

const annotationRole = "eks.amazonaws.com/role-arn"

// others are what other controllers of Crossplane and of providers would have created. The
// controller of each ClusterRole is the object that it is for.
const others = `
apiVersion: pkg.crossplane.io/v1beta1
kind: Lock
metadata:
  name: old
---
apiVersion: acme.example.net/v1beta1
kind: ProviderConfigUsage
metadata:
  name: acme-usage
  labels:
    crossplane.io/provider-config: default
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: crossplane:provider:acme-1:system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: crossplane:composite:environments.example.org:aggregate-to-crossplane
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: crossplane:provider:acme-1:system
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: crossplane:provider:acme-1:system
`

// operations are Crossplane v2's.
const operations = `
apiVersion: ops.crossplane.io/v1alpha1
kind: Operation
metadata:
  name: done
spec:` + template + `
---
apiVersion: protection.crossplane.io/v1beta1
kind: ClusterUsage
metadata:
  name: provider-protection-acme
  labels:
    crossplane.io/provider-protection: "true"
spec:
  reason: the provider has managed resources
  of:
    apiVersion: pkg.crossplane.io/v1
    kind: Provider
    resourceRef:
      name: acme
`

// recurring are operations that a restore would run again. One of each kind is paused by a user.
const recurring = `
apiVersion: ops.crossplane.io/v1alpha1
kind: CronOperation
metadata:
  name: nightly
spec:
  schedule: "0 0 1 1 *"
  operationTemplate:
    spec:` + template + `
---
apiVersion: ops.crossplane.io/v1alpha1
kind: CronOperation
metadata:
  name: asleep-nightly
  annotations:
    crossplane.io/paused: "true"
spec:
  schedule: "0 0 1 1 *"
  operationTemplate:
    spec:` + template + `
---
apiVersion: ops.crossplane.io/v1alpha1
kind: WatchOperation
metadata:
  name: watcher
spec:
  watch:
    apiVersion: v1
    kind: Node
  operationTemplate:
    spec:` + template + `
---
apiVersion: ops.crossplane.io/v1alpha1
kind: WatchOperation
metadata:
  name: asleep-watcher
  annotations:
    crossplane.io/paused: "true"
spec:
  watch:
    apiVersion: v1
    kind: Node
  operationTemplate:
    spec:` + template + `
`

const template = `
      mode: Pipeline
      pipeline:
      - step: do
        functionRef:
          name: function-patch-and-transform
`

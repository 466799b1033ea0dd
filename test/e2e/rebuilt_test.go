package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// packages are a provider, whose revisions follow its package, and a configuration, whose owner chooses the revision. They are paused, since
// there is no registry.
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

// revisions are what the packages' manager would have made.
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

// runtime is what a revision of the provider would have made.
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

// tuned is a ServiceAccount that a DeploymentRuntimeConfig has named, and to which somebody has given a role in a cloud.
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

// others are what other controllers of Crossplane and of providers would have made: ClusterRoles are controlled by what they are for.
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

// recurring are operations that would do something again when they are restored. Of each kind there is one that its owner has paused.
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

// rebuilt are objects that controllers make, and objects that people make, in the source.
type rebuilt struct{ made, kept, tuned, recurring []*unstructured.Unstructured }

func (s *suite) makeRebuilt(t *testing.T) *rebuilt {
	t.Helper()
	ctx := t.Context()
	apply := func(manifest string, owner func(u *unstructured.Unstructured) *unstructured.Unstructured) []*unstructured.Unstructured {
		objects, err := stack.Parse([]byte(manifest))
		must(t, err)
		for _, u := range objects {
			if o := owner(u); o != nil {
				o, err := get(ctx, s.source, o.GroupVersionKind(), "", o.GetName())
				must(t, err)
				yes := true
				u.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: &yes,
				}})
			}
			must(t, s.source.ApplyObjects(ctx, u))
		}

		return objects
	}
	none := func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }
	pkgs := apply(packages, none)
	provider, configuration := pkgs[1], pkgs[2]
	revs := apply(revisions, func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return map[string]*unstructured.Unstructured{"acme-1": provider, "chosen-1": configuration}[u.GetName()]
	})
	r := &rebuilt{made: revs[:1], kept: append(pkgs, revs[1])}
	r.made = append(r.made, apply(runtime, func(*unstructured.Unstructured) *unstructured.Unstructured { return revs[0] })...)
	r.tuned = apply(tuned, func(*unstructured.Unstructured) *unstructured.Unstructured { return revs[0] })
	r.made = append(r.made, apply(others, func(u *unstructured.Unstructured) *unstructured.Unstructured {
		switch {
		case strings.HasPrefix(u.GetName(), "crossplane:provider:"):
			return revs[0]
		case strings.HasPrefix(u.GetName(), "crossplane:composite:"):
			return s.xrd()
		default:
			return nil
		}
	})...)
	if s.version == stack.V2 {
		r.made = append(r.made, apply(operations, none)...)
		r.recurring = apply(recurring, none)
	}
	must(t, s.source.RestartVelero(ctx))

	return r
}

// xrd names the XRD of the instances.
func (s *suite) xrd() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiextensions.crossplane.io/v1")
	u.SetKind("CompositeResourceDefinition")
	u.SetName("environments.platform.example.org")
	if s.version == stack.V1 {
		u.SetName("x" + u.GetName())
	}

	return u
}

// testTunedAlone is the control: Velero alone brings back what somebody has put on a ServiceAccount, so a restore with the plugin must not bring less. It takes it
// away again.
func (s *suite) testTunedAlone(t *testing.T, r *rebuilt, backup string) {
	const restore = "accounts"
	ctx := t.Context()
	must(t, drill.Platform{}.StartRestore(ctx, s.target, restore, backup, "--include-namespaces", "crossplane-system", "--include-resources", "serviceaccounts"))
	s.awaitCompleted(t, restore)
	for _, u := range r.tuned {
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		if live.GetAnnotations()[annotationRole] != u.GetAnnotations()[annotationRole] {
			t.Errorf("Velero alone does not bring back what is on %s, so the test with the plugin proves nothing: %v", u.GetName(), live.Object)
		}
	}
	for _, u := range slices.Concat(r.tuned, r.made) {
		if u.GetKind() == "ServiceAccount" {
			remove(t, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		}
	}
}

// testRebuilt checks what a restore of everything has left to the control plane, and that it says so.
func (s *suite) testRebuilt(t *testing.T, r *rebuilt, restore string) {
	ctx := t.Context()
	logs, err := s.target.Velero(ctx, "restore", "logs", restore)
	must(t, err)
	for _, u := range r.made {
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if !apierrors.IsNotFound(err) {
			must(t, err)
			t.Errorf("%s %s was restored: %v", live.GetKind(), live.GetName(), live.GetLabels())
		}
		kind := regexp.MustCompile(`\b` + u.GetKind() + `\b`)
		told := 0
		for line := range strings.Lines(logs) {
			if strings.Contains(line, "ot restored") && kind.MatchString(line) {
				told++
			}
		}
		if told != 1 {
			t.Errorf("the log names %s %d times, not once", u.GetKind(), told)
		}
	}
	for _, u := range r.kept {
		live, err := get(ctx, s.target, u.GroupVersionKind(), "", u.GetName())
		must(t, err)
		for _, ref := range live.GetOwnerReferences() {
			owner, err := get(ctx, s.target, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), "", ref.Name)
			must(t, err)
			if owner.GetUID() != ref.UID {
				t.Errorf("%s %s is owned by %s, not %s", live.GetKind(), live.GetName(), ref.UID, owner.GetUID())
			}
		}
		if len(live.GetOwnerReferences()) != len(u.GetOwnerReferences()) {
			t.Errorf("%s %s has other owners than before: %v", live.GetKind(), live.GetName(), live.GetOwnerReferences())
		}
	}
	for _, u := range r.tuned {
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		secrets, _, _ := unstructured.NestedSlice(live.Object, "imagePullSecrets")
		if live.GetAnnotations()[annotationRole] != u.GetAnnotations()[annotationRole] || len(secrets) != 1 || len(live.GetOwnerReferences()) > 0 {
			t.Errorf("%s %s has lost what somebody had put on it, or has an owner that is not there: %v", live.GetKind(), live.GetName(), live.Object)
		}
	}
	for _, u := range r.recurring {
		live, err := get(ctx, s.target, u.GroupVersionKind(), "", u.GetName())
		must(t, err)
		_, held := live.GetAnnotations()[annotationHold]
		if !paused(live) || held == paused(u) {
			t.Errorf("%s %s was paused %v by its owner and came back with %v", u.GetKind(), u.GetName(), paused(u), live.GetAnnotations())
		}
		if !paused(u) {
			wantTold(t, "the log's problems of the restore", problems(logs), "level=warning", u.GetKind(), u.GetName(), "paused")
		}
	}
	u, err := get(ctx, s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}, "velero", restore)
	must(t, err)
	if n := warnings(u); n < int64(len(r.recurring)/2) {
		t.Error(fmt.Errorf("the Restore counts %d warnings", n))
	}
}

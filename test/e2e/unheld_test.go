package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A touch is what somebody does to an instance that is held, without meaning the hold.
type touch struct {
	reason string
	// make makes the instance in another way than all others are, if it is not nil.
	made applier
	// before is done to the instance before it is backed up, and setUp in the target before it is restored.
	before func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error
	setUp  func(ctx context.Context, s *suite, n *tenant) error
	// args go to the command that restores.
	args []string
	// do is done to what is held.
	do func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error
	// held tells what is wanted of the hold afterwards: whether the mark and whether the pause is there.
	want hold
}

type hold struct{ Marked, Paused bool }

var (
	stays = hold{Marked: true, Paused: true}
	gone  = hold{}
)

func (g *git) kubectl(ctx context.Context, c *stack.Cluster, env []string, stdin *unstructured.Unstructured, args ...string) error {
	return g.run(ctx, c, env, stdin, args...)
}

// live is the instance as it is.
func (n *tenant) live(ctx context.Context, c *stack.Cluster) (*unstructured.Unstructured, error) {
	m := n.Manifest(0)

	return get(ctx, c, m.GroupVersionKind(), m.GetNamespace(), m.GetName())
}

func (n *tenant) patch(ctx context.Context, c *stack.Cluster, kind types.PatchType, patch string) error {
	m := n.Manifest(0)
	r, err := c.Resource(ctx, m.GroupVersionKind(), m.GetNamespace())
	if err != nil {
		return err
	}
	_, err = r.Patch(ctx, m.GetName(), kind, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})

	return err
}

func by(who applier) func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
	return func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
		return g.apply(ctx, c, who, n.manifests())
	}
}

// exported is the instance as "kubectl get -o yaml" shows it, without what only the API server writes.
func (n *tenant) exported(ctx context.Context, c *stack.Cluster) (*unstructured.Unstructured, error) {
	u, err := n.live(ctx, c)
	if err != nil {
		return nil, err
	}
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.SetUID("")

	return u, nil
}

func touches() map[string]touch {
	edit := func(script string) func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
		return func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
			editor := filepath.Join(g.home, "edit-"+n.Namespace)
			if err := os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i -E '"+script+"' \"$1\"\n"), 0o700); err != nil {
				return err
			}
			m := n.Manifest(0)

			return g.kubectl(ctx, c, []string{"EDITOR=" + editor}, nil, "edit", "environments.platform.example.org", m.GetName(), "-n", m.GetNamespace())
		}
	}

	return map[string]touch{
		"flux":              {reason: "Flux takes over what kubectl applied.", made: kubectlApply, do: by(flux), want: stays},
		"argocd":            {reason: "Argo CD applies client-side unless it is told otherwise.", made: kubectlApply, do: by(argocd), want: stays},
		"argocdserverside":  {reason: "Argo CD applies server-side.", made: kubectlApply, do: by(argocdServerSide), want: stays},
		"kubectlapply":      {reason: "kubectl", made: kubectlApply, do: by(kubectlApply), want: stays},
		"kubectlserverside": {reason: "kubectl", made: kubectlApply, do: by(kubectlServerSide), want: stays},
		"kubectlasargocd":   {reason: "kubectl", made: kubectlApply, do: by(kubectlAsArgocd), want: stays},
		"unforced": {reason: "kubectl", made: kubectlServerSide, want: stays, do: func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
			return g.kubectl(ctx, c, nil, n.Manifest(0), "apply", "--server-side", "-f", "-")
		}},
		"unforcedother": {reason: "kubectl", made: kubectlApply, want: stays, do: func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
			return g.kubectl(ctx, c, nil, n.Manifest(0), "apply", "--server-side", "--field-manager=other", "-f", "-")
		}},
		"lastappliedhashold": {
			reason: "Somebody has applied what they had exported while it was held, and applies what is in Git then.", made: kubectlApply, want: stays,
			do: func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
				u, err := n.exported(ctx, c)
				if err != nil {
					return err
				}

				return errors.Join(g.kubectl(ctx, c, nil, u, "apply", "-f", "-"), by(kubectlApply)(ctx, g, c, n))
			},
		},
		"pausedingit": {
			reason: "It was paused in Git when it was backed up, and is not any more.", made: kubectlApply, want: stays,
			before: func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
				m := n.Manifest(0)
				m.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})

				return g.kubectl(ctx, c, nil, m, "apply", "-f", "-")
			},
			do: by(kubectlApply),
		},
		"unpausedingit": {
			reason: "Git says that it is not paused.", made: kubectlServerSide, want: stays,
			do: func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
				m := n.Manifest(0)
				m.SetAnnotations(map[string]string{"crossplane.io/paused": "false"})

				return g.kubectl(ctx, c, nil, m, "apply", "--server-side", "--force-conflicts", "-f", "-")
			},
		},
		"kubectlreplace": {reason: "What is replaced loses all that Git does not have.", made: kubectlApply, do: by(kubectlReplace), want: stays},
		"argocdreplace":  {reason: "Replace=true", made: kubectlApply, do: by(argocdReplace), want: stays},
		"replacedbyexport": {
			reason: "What was exported before the hold replaces what is held.", made: kubectlApply, want: stays,
			do: func(ctx context.Context, g *git, c *stack.Cluster, n *tenant) error {
				u, err := n.exported(ctx, c)
				if err != nil {
					return err
				}
				u.SetAnnotations(nil)

				return g.kubectl(ctx, c, nil, u, "replace", "-f", "-")
			},
		},
		"edit":            {reason: "edit", made: kubectlApply, do: edit("s/region: .*/region: eu-north/"), want: stays},
		"editannotations": {reason: "edit", made: kubectlApply, do: edit("/velero.crossplane.x-k8s.io|crossplane.io.paused/d"), want: stays},
		"jsonpatch": {reason: "json patch", made: kubectlApply, want: stays, do: func(ctx context.Context, _ *git, c *stack.Cluster, n *tenant) error {
			return n.patch(ctx, c, types.JSONPatchType, `[{"op":"add","path":"/metadata/annotations","value":{}}]`)
		}},
		"mergepatch": {reason: "merge patch", made: kubectlApply, want: stays, do: func(ctx context.Context, _ *git, c *stack.Cluster, n *tenant) error {
			return n.patch(ctx, c, types.MergePatchType, `{"metadata":{"annotations":null}}`)
		}},
		"unpaused": {reason: "unpaused", made: kubectlApply, want: stays, do: func(ctx context.Context, _ *git, c *stack.Cluster, n *tenant) error {
			return n.patch(ctx, c, types.MergePatchType, `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`)
		}},
		"modifier": {
			reason: "Velero changes what the plugin returns.", made: kubectlApply, want: stays, args: []string{"--resource-modifier-configmap", "modifier"},
			setUp: func(ctx context.Context, s *suite, n *tenant) error {
				return s.target.Apply(ctx, fmt.Appendf(nil, modifier, "modifier", n.Namespace, `      - operation: remove
        path: /metadata/annotations`))
			},
		},
		"policy": {
			reason: "A policy takes off annotations that it does not know.", made: kubectlApply, want: stays,
			setUp: func(ctx context.Context, s *suite, n *tenant) error {
				return s.target.Apply(ctx, fmt.Appendf(nil, policy, n.Namespace, "velero.crossplane.x-k8s.io/hold"))
			},
		},
		"policyall": {
			reason: "A policy takes off annotations that it does not know.", made: kubectlApply, want: stays,
			setUp: func(ctx context.Context, s *suite, n *tenant) error {
				return s.target.Apply(ctx, fmt.Appendf(nil, policyAll, n.Namespace))
			},
		},
		"update": {
			reason: "It is restored once more, over what is held.", made: kubectlApply, want: stays,
			do: func(ctx context.Context, _ *git, c *stack.Cluster, n *tenant) error {
				name := n.Namespace + "-update"
				if _, err := c.Velero(ctx, "restore", "create", name, "--from-backup", "touches", "--include-namespaces", n.Namespace, "--existing-resource-policy", "update"); err != nil {
					return err
				}

				return drill.AwaitItems(ctx, c, name)
			},
		},
	}
}

const modifier = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: %[1]s
  namespace: velero
data:
  rules.yaml: |
    version: v1
    resourceModifierRules:
    - conditions:
        groupResource: environments.platform.example.org
        namespaces: ["%[2]s"]
      patches:
%[3]s
`

const policyHead = `
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: %[1]s
spec:
  policyName: %[1]s
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata:
  name: %[1]s
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - apiGroups: [platform.example.org]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: ["*"]
  matchConditions:
  - name: mine
    expression: object.metadata.name.startsWith("%[1]s-") && has(object.metadata.annotations)
  mutations:
  - patchType: JSONPatch
    jsonPatch:
`

const policy = policyHead + `      expression: |
        "%[2]s" in object.metadata.annotations ?
        [JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("%[2]s")}] : []
`

const policyAll = policyHead + `      expression: |
        [JSONPatch{op: "remove", path: "/metadata/annotations"}]
`

// mutating has the API server of a cluster know MutatingAdmissionPolicies, which are on by default from Kubernetes 1.36 on.
func (s *suite) mutating(t *testing.T) {
	t.Helper()
	must(t, s.target.AddArgs(stack.APIServer, "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"))
	must(t, s.target.Restart(t.Context(), stack.APIServer))
}

func TestTouchesV2(t *testing.T) { testTouches(t, stack.V2) }

func TestTouchesV1(t *testing.T) { testTouches(t, stack.V1) }

func testTouches(t *testing.T, version stack.Version) {
	t.Helper()
	t.Parallel()
	ctx := t.Context()
	s := newSuite(t, version)
	g := newGit(t)
	all := touches()
	tenants := map[string]*tenant{}
	var list []*tenant
	var namespaces []string
	for name, c := range all {
		n := s.applied(t, g, c.made, drill.Platform{Namespace: name}, 1)
		tenants[name] = n
		list = append(list, n)
		namespaces = append(namespaces, name)
	}
	for name, n := range tenants {
		s.remember(t, s.source, n)
		if c := all[name]; c.before != nil {
			must(t, c.before(ctx, g, s.source, n))
		}
	}
	backupWith(t, s.source, "touches", "--include-namespaces", strings.Join(namespaces, ","))
	s.loseSource(t, list...)
	s.mutating(t)
	must(t, s.target.Stop(stack.CloudProvider))
	for name, n := range tenants {
		if c := all[name]; c.setUp != nil {
			must(t, c.setUp(ctx, s, n))
		}
		must(t, n.StartRestore(ctx, s.target, name, "touches", append([]string{"--include-namespaces", name, "--item-operation-timeout", "90s"}, all[name].args...)...))
	}
	for name, n := range tenants {
		must(t, drill.AwaitItems(ctx, s.target, name))
		u, err := n.live(ctx, s.target)
		must(t, err)
		t.Logf("%s before: %+v", name, holdOf(u))
		if c := all[name]; c.do != nil {
			if err := c.do(ctx, g, s.target, n); err != nil {
				t.Logf("%s: %v", name, err)
			}
		}
		u, err = n.live(ctx, s.target)
		must(t, err)
		t.Logf("%s after: %+v", name, holdOf(u))
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			n := tenants[name]
			r, err := drill.AwaitRestore(ctx, s.target, name)
			must(t, err)
			rctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			err = n.AwaitReady(rctx, s.target, 1)
			got, cerr := n.Compare(ctx, s.target, s.cloud, n.before)
			must(t, cerr)
			u, lerr := n.live(ctx, s.target)
			must(t, lerr)
			want := drill.Outcome{Adopted: len(n.before.Slots), Total: len(n.before.Slots)}
			t.Logf("RESULT %s: phase %s, %+v %+v ready: %v\n%s", name, drill.Phase(r), got, holdOf(u), err, drill.Problems(ctx, s.target, name))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

func holdOf(u *unstructured.Unstructured) hold {
	_, marked := u.GetAnnotations()[annotationHold]

	return hold{Marked: marked, Paused: paused(u)}
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// touchedBackup is the backup of all that is touched.
const touchedBackup = "touched"

// A touch is a change to a held instance that is not about the hold.
type touch struct {
	reason string
	// made is the applier that created the instance.
	made applier
	// inSource runs on the instance before it is backed up.
	inSource func(ctx context.Context, w *editor) error
	// setUp returns manifests that are applied in the target before the instance is restored.
	setUp func(n *tenant) []byte
	// args are arguments of the command that restores.
	args []string
	// do changes the held instance.
	do func(ctx context.Context, w *editor) error
	// stays is true if the hold stays, so that all is as well as without the touch. Where nothing
	// can keep the hold, the plugin must add it again in time, or the restore must report the fate
	// of the instance.
	stays bool
}

// An editor is the writer that changes the instance of a tenant.
type editor struct {
	git     *git
	cluster *stack.Cluster
	tenant  *tenant
}

func touches() map[string]touch {
	return map[string]touch{
		"Flux": {
			reason: "Flux takes over the fields that kubectl managed.",
			made:   kubectlApply, do: by(flux), stays: true,
		},
		"ArgoCD": {
			reason: "Argo CD applies client-side by default.",
			made:   kubectlApply, do: by(argocd), stays: true,
		},
		"ArgoCDServerSide": {
			reason: "Argo CD applies client-side in the name of kubectl before it applies server-side for the first time.",
			made:   kubectlApply, do: by(argocdServerSide), stays: true,
		},
		"ClientSide": {
			reason: "The last-applied configuration has no annotation of the hold.",
			made:   kubectlApply, do: by(kubectlApply), stays: true,
		},
		"ServerSideForced": {
			reason: "kubectl takes over the fields that it managed client-side, and all other fields of the manifest.",
			made:   kubectlApply, do: by(kubectlServerSide), stays: true,
		},
		"ServerSideOtherManager": {
			reason: "kubectl takes over the fields that it managed client-side, also under another name.",
			made:   kubectlApply, do: by(kubectlAsArgocd), stays: true,
		},
		"Unowned": {
			reason: "A field without a manager goes with the map that it is in. So does the hold, if the plugin does not manage it.",
			made:   kubectlApply,
			do: func(ctx context.Context, w *editor) error {
				return errors.Join(w.disown(ctx), by(kubectlAsArgocd)(ctx, w))
			},
		},
		"ServerSideUnforced": {
			reason: "An apply without a conflict needs no force.",
			made:   kubectlServerSide, do: kubectl("apply", "--server-side", "-f", "-"), stays: true,
		},
		"LastAppliedHasHold": {
			reason: "A user has applied an export of the held instance. An apply from Git then removes the fields that were applied last.",
			made:   kubectlApply,
			do: func(ctx context.Context, w *editor) error {
				u, err := w.exported(ctx)
				if err != nil {
					return err
				}

				return errors.Join(w.kubectl(ctx, u, "apply", "-f", "-"), by(kubectlApply)(ctx, w))
			},
		},
		"PausedInGitBefore": {
			reason: "It was paused in Git when it was backed up, and is not any more.",
			made:   kubectlApply,
			inSource: func(ctx context.Context, w *editor) error {
				return w.kubectl(ctx, w.pausing("true"), "apply", "-f", "-")
			},
			do: by(kubectlApply),
		},
		"NotPausedInGit": {
			reason: "The manifest in Git sets the pause to false, which wins over the hold.",
			made:   kubectlServerSide,
			do: func(ctx context.Context, w *editor) error {
				return w.kubectl(ctx, w.pausing("false"), "apply", "--server-side", "--force-conflicts", "-f", "-")
			},
		},
		"Replaced": {
			reason: "A replaced instance loses all fields that Git does not have, also its references.",
			made:   kubectlApply, do: by(kubectlReplace),
		},
		"ReplacedByArgoCD": {
			reason: "Replace=true is kubectl replace.",
			made:   kubectlApply, do: by(argocdReplace),
		},
		"ReplacedByExport": {
			reason: "The replacement has its references, and no annotations.",
			made:   kubectlApply,
			do: func(ctx context.Context, w *editor) error {
				u, err := w.exported(ctx)
				if err != nil {
					return err
				}
				u.SetAnnotations(nil)

				return w.kubectl(ctx, u, "replace", "-f", "-")
			},
		},
		"Edited": {
			reason: "An edit changes only the edited fields.",
			made:   kubectlApply, do: edited("s/ labels:/ labels:\\n    edited: \"true\"/"), stays: true,
		},
		"AnnotationsEdited": {
			reason: "A user removes annotations that they don't know.",
			made:   kubectlApply, do: edited("/velero.crossplane.x-k8s.io|crossplane.io.paused/d"),
		},
		"AnnotationsEmptied": {
			reason: "A JSON patch sets all annotations.",
			made:   kubectlApply, do: patched(types.JSONPatchType, `[{"op":"add","path":"/metadata/annotations","value":{}}]`),
		},
		"AnnotationsRemoved": {
			reason: "A merge patch removes all annotations.",
			made:   kubectlApply, do: patched(types.MergePatchType, `{"metadata":{"annotations":null}}`),
		},
		"PauseRemoved": {
			reason: "A user sees the pause, and not its cause.",
			made:   kubectlApply, do: patched(types.MergePatchType, `{"metadata":{"annotations":{"crossplane.io/paused":null}}}`),
		},
		"RestoredAgain": {
			reason: "A second Restore may overwrite objects that the first one holds.",
			made:   kubectlApply, args: []string{"--existing-resource-policy", "update"}, stays: true,
			do: func(ctx context.Context, w *editor) error {
				_, err := w.cluster.Velero(ctx, "restore", "create", w.tenant.Namespace+"-again", "--from-backup", touchedBackup,
					"--include-namespaces", w.tenant.Namespace, "--existing-resource-policy", "update")

				return err
			},
		},
		"ResourceModifier": {
			reason: "Velero's resource modifiers change the items that the actions have returned.",
			made:   kubectlApply, args: []string{"--resource-modifier-configmap", "modifier"},
			setUp: func(n *tenant) []byte { return fmt.Appendf(nil, modifier, n.Namespace) },
		},
		"PolicyForMark": {
			reason: "A policy removes the annotations that it does not know, and knows Crossplane's.",
			made:   kubectlApply,
			setUp: func(n *tenant) []byte {
				return fmt.Appendf(nil, policy, n.Namespace, `"`+annotationHold+`" in object.metadata.annotations ?
          [JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("`+annotationHold+`")}] : []`)
			},
		},
		"PolicyForAll": {
			reason: "A policy removes all annotations.",
			made:   kubectlApply,
			setUp: func(n *tenant) []byte {
				return fmt.Appendf(nil, policy, n.Namespace, `[JSONPatch{op: "remove", path: "/metadata/annotations"}]`)
			},
		},
	}
}

const modifier = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: modifier
  namespace: velero
data:
  rules.yaml: |
    version: v1
    resourceModifierRules:
    - conditions:
        groupResource: environments.platform.example.org
        namespaces: ["%s"]
      patches:
      - operation: remove
        path: /metadata/annotations
`

const policy = `
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
      expression: |
        %[2]s
`

// by returns a touch that applies the manifests in Git as an applier.
func by(who applier) func(ctx context.Context, w *editor) error {
	return func(ctx context.Context, w *editor) error {
		return w.git.apply(ctx, w.cluster, who, w.tenant.manifests())
	}
}

// kubectl returns a touch in which kubectl reads the manifest in Git.
func kubectl(args ...string) func(ctx context.Context, w *editor) error {
	return func(ctx context.Context, w *editor) error { return w.kubectl(ctx, w.tenant.Manifest(0), args...) }
}

// edited returns a touch in which "kubectl edit" opens an editor, which is sed with a script.
func edited(script string) func(ctx context.Context, w *editor) error {
	return func(ctx context.Context, w *editor) error {
		program := filepath.Join(w.git.home, "edit-"+w.tenant.Namespace)
		if err := os.WriteFile(program, []byte("#!/bin/sh\nexec sed -i -E '"+script+"' \"$1\"\n"), 0o700); err != nil { //nolint:gosec // kubectl runs it.
			return err
		}
		m := w.tenant.Manifest(0)

		return w.git.kubectl(ctx, w.cluster, []string{"EDITOR=" + program}, nil, "edit", "environments.platform.example.org", m.GetName(), "-n", m.GetNamespace())
	}
}

func patched(kind types.PatchType, patch string) func(ctx context.Context, w *editor) error {
	return func(ctx context.Context, w *editor) error {
		m := w.tenant.Manifest(0)
		r, err := w.cluster.Resource(ctx, m.GroupVersionKind(), m.GetNamespace())
		if err != nil {
			return err
		}
		_, err = r.Patch(ctx, m.GetName(), kind, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})

		return err
	}
}

func (w *editor) kubectl(ctx context.Context, stdin *unstructured.Unstructured, args ...string) error {
	return w.git.kubectl(ctx, w.cluster, nil, stdin, args...)
}

// pausing returns the instance's manifest in Git, with a value for the pause.
func (w *editor) pausing(value string) *unstructured.Unstructured {
	m := w.tenant.Manifest(0)
	m.SetAnnotations(map[string]string{"crossplane.io/paused": value})

	return m
}

// disown removes the plugin's entries from the managedFields of the instance.
func (w *editor) disown(ctx context.Context) error {
	u, err := w.tenant.live(ctx, w.cluster)
	if err != nil {
		return err
	}
	entries := slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == plugin })
	b, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": entries}})
	if err != nil {
		return err
	}

	return patched(types.JSONPatchType, string(b))(ctx, w)
}

// exported returns the instance as "kubectl get -o yaml" does, without what can't be applied.
func (w *editor) exported(ctx context.Context) (*unstructured.Unstructured, error) {
	u, err := w.tenant.live(ctx, w.cluster)
	if err != nil {
		return nil, err
	}
	u.SetManagedFields(nil)
	u.SetResourceVersion("")
	u.SetUID("")

	return u, nil
}

// live returns the current first instance.
func (n *tenant) live(ctx context.Context, c *stack.Cluster) (*unstructured.Unstructured, error) {
	m := n.Manifest(0)

	return get(ctx, c, m.GroupVersionKind(), m.GetNamespace(), m.GetName())
}

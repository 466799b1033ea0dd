package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// mustInclude makes Velero, since v1.18, restore the items that an action requests, whatever the
// restore excludes. It is for actions, but every tenant can write it.
const mustInclude = "restore.velero.io/must-include-additional-items"

func forgeriesOf(version stack.Version) map[string]*forgery {
	all := map[string]*forgery{
		"OwnObjects": {
			reason:    "Every tenant can write annotations, labels, owner references and, on v2, Usages. Only the lists and marks that a backup wrote count.",
			namespace: "scribe", forge: forgeOwn,
		},
		"Tampering": {
			reason:    "The lists on stored copies count no more than what the objects themselves could have.",
			namespace: tamperer, from: tampered, forge: func(*testing.T, *suite, *tenant, *targets) {},
		},
	}
	if version == stack.V1 {
		all["Claims"] = &forgery{
			reason:    "A claim can name any kind as its XR, and belongs to the XR that it names, which belongs to the claim that it names.",
			namespace: "claimant", forge: forgeClaims,
		}
		all["ConnectionSecret"] = &forgery{
			reason:    "A connection secret belongs to what controls it.",
			namespace: "leaker", forge: forgeSecretRef,
		}

		return all
	}
	all["Kinds"] = &forgery{
		reason:    "Kinds that are not served are requested once.",
		namespace: "inventor", forge: forgeKinds, check: checkKinds,
	}
	all["Hoard"] = &forgery{
		reason:    "An XR that lists thousands of objects, some of them impossible, is held and stops no other restore.",
		namespace: "hoarder", forge: forgeHoard,
	}
	all["Limits"] = &forgery{
		reason:    "Objects that an XR lists are looked up in its namespace only.",
		namespace: "warden", forge: forgeLimits, check: checkLimits,
	}
	all["ResourceRefs"] = &forgery{
		reason:    "An object that an XR lists is its own only if the XR controls it.",
		namespace: "lister", forge: forgeRefs,
	}

	return all
}

func forgeOwn(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	forgeAnnotations(t, s, n, l)
	forgeOwners(t, s, n, l)
	if s.version != stack.V1 {
		forgeUsage(t, s, n, l)
	}
}

// forgeAnnotations writes all annotations that could make a backup or a restore include more.
func forgeAnnotations(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	tree := fmt.Sprintf(`["clusterrolebindings.rbac.authorization.k8s.io//%s","%s/%s/%s","secrets/%s/%s-connection"]`,
		crown, resource(l.composite), l.composite.GetNamespace(), l.composite.GetName(), victim, l.instance.GetName())
	refs := fmt.Sprintf(`[{"apiVersion":%q,"kind":%q,"name":%q},{"apiVersion":%q,"kind":%q,"name":%q}]`,
		l.crown.GetAPIVersion(), l.crown.GetKind(), crown, l.managed[0].GetAPIVersion(), l.managed[0].GetKind(), l.managed[0].GetName())
	hold := `{"restore":"velero/forged","since":"2020-01-01T00:00:00Z","reason":"forged","resourceRefs":` + refs + `}`
	s.forge(t, n, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"velero.crossplane.io/restore-first":             tree,
		"velero.crossplane.io/unresolved-refs":           refs,
		oldHold:                                          hold,
		annotationHold:                                   hold,
		"velero.crossplane.io/claim-hold":                hold,
		"backup.velero.io/must-include-additional-items": "true",
		mustInclude:                                      "true",
	}}})
}

// forgeOwners creates a connection secret and an MR that claim to be the victim's. A cluster-scoped
// owner with its right UID keeps the garbage collector from deleting them.
func forgeOwners(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	owners := map[string]*unstructured.Unstructured{"binding": l.crown, "composition": l.composition}
	if s.version == stack.V1 {
		owners["composite"] = l.composite
	}
	labels := map[string]string{"crossplane.io/composite": l.composite.GetName(), "crossplane.io/claim-name": l.instance.GetName(), "crossplane.io/claim-namespace": victim}
	for name, owner := range owners {
		yes := true
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1"}}
		u.SetNamespace(n.Namespace)
		u.SetName(n.Namespace + "-" + name)
		u.SetLabels(labels)
		u.SetAnnotations(map[string]string{"crossplane.io/composition-resource-name": "bucket", mustInclude: "true"})
		u.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes,
		}})
		must(t, s.source.ApplyObjects(t.Context(), u))
		u = u.DeepCopy()
		u.SetKind("ConfigMap")
		delete(u.Object, "type")
		must(t, s.source.ApplyObjects(t.Context(), u))
	}
}

// forgeRefs makes an XR list the victim's objects. A pause keeps Crossplane from correcting it.
func forgeRefs(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	refs := []any{
		map[string]any{"apiVersion": l.crown.GetAPIVersion(), "kind": l.crown.GetKind(), "name": crown},
		map[string]any{"apiVersion": l.composite.GetAPIVersion(), "kind": l.composite.GetKind(), "name": l.composite.GetName(), "namespace": victim},
	}
	for _, u := range l.managed {
		refs = append(refs, map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "name": u.GetName(), "namespace": victim})
	}
	s.forge(t, n, map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true", mustInclude: "true"}},
		"spec":     map[string]any{"crossplane": map[string]any{"resourceRefs": refs}},
	})
}

// forgeUsage creates Usages of the victim's XR and of a cluster-scoped object.
func forgeUsage(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	for name, of := range map[string]*unstructured.Unstructured{"binding": l.crown, "composite": l.composite} {
		ref := map[string]any{"name": of.GetName()}
		if of.GetNamespace() != "" {
			ref["namespace"] = of.GetNamespace()
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "protection.crossplane.io/v1beta1", "kind": "Usage", "spec": map[string]any{
			"of": map[string]any{"apiVersion": of.GetAPIVersion(), "kind": of.GetKind(), "resourceRef": ref},
			"by": map[string]any{"apiVersion": l.composite.GetAPIVersion(), "kind": l.composite.GetKind(), "resourceRef": map[string]any{"name": n.Name(0)}},
		}}}
		u.SetNamespace(n.Namespace)
		u.SetName(n.Namespace + "-" + name)
		must(t, s.source.ApplyObjects(t.Context(), u))
	}
}

// forgeClaims creates claims that name the victim's XR, a binding, and an XR, as a cluster
// administrator could create it by mistake, that names the victim's claim.
func forgeClaims(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	spec := map[string]any{"region": "eu-central", "cidr": "10.0.0.0/16", "compositionRef": map[string]any{"name": "environments-" + n.Namespace}}
	xr := &unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(spec)}}
	must(t, unstructured.SetNestedMap(xr.Object, map[string]any{
		"apiVersion": l.instance.GetAPIVersion(), "kind": l.instance.GetKind(), "namespace": victim, "name": l.instance.GetName(),
	}, "spec", "claimRef"))
	xr.SetGroupVersionKind(l.composite.GroupVersionKind())
	xr.SetName("nobodys")
	xr.SetAnnotations(map[string]string{annotationPaused: "true"}) // Crossplane does not correct it.
	must(t, s.source.ApplyObjects(t.Context(), xr))
	for name, to := range map[string]*unstructured.Unstructured{"resource": l.composite, "binding": l.crown, "claim": xr} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(spec)}}
		must(t, unstructured.SetNestedMap(u.Object, map[string]any{"apiVersion": to.GetAPIVersion(), "kind": to.GetKind(), "name": to.GetName()}, "spec", "resourceRef"))
		u.SetGroupVersionKind(l.instance.GroupVersionKind())
		u.SetNamespace(n.Namespace)
		u.SetName(n.Namespace + "-" + name)
		u.SetAnnotations(map[string]string{annotationPaused: "true", mustInclude: "true"})
		u.SetFinalizers([]string{"finalizer.apiextensions.crossplane.io"})
		must(t, s.source.ApplyObjects(t.Context(), u))
	}
}

// forgeSecretRef makes an XR and its MRs publish their connection details in the victim's Secret.
func forgeSecretRef(t *testing.T, s *suite, n *tenant, l *targets) {
	t.Helper()
	ctx := t.Context()
	xrs, err := n.Composites(ctx, s.source)
	must(t, err)
	mrs, err := n.Managed(ctx, s.source)
	must(t, err)
	to := map[string]any{"writeConnectionSecretToRef": map[string]any{"namespace": victim, "name": l.instance.GetName() + "-connection"}}
	for _, u := range append(xrs, mrs...) {
		patch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true"}}, "spec": to}
		must(t, drill.Patch(ctx, s.source, &u, patch))
	}
}

// forge patches the forger's instance.
func (s *suite) forge(t *testing.T, n *tenant, patch map[string]any) {
	t.Helper()
	instances, err := n.Instances(t.Context(), s.source)
	must(t, err)
	must(t, drill.Patch(t.Context(), s.source, &instances[0], patch))
	if s.version != stack.V1 {
		return
	}
	wanted, _, _ := unstructured.NestedMap(patch, "metadata", "annotations")
	must(t, s.source.Wait(t.Context(), patience, "the annotations on the XR", func(ctx context.Context) error {
		xrs, err := n.Composites(ctx, s.source)
		if err != nil {
			return err
		}
		for key := range wanted {
			if key == annotationHold {
				continue // Crossplane takes it for one of Kubernetes' own, and does not copy it.
			}
			if _, ok := xrs[0].GetAnnotations()[key]; !ok {
				return fmt.Errorf("%s is not there", key)
			}
		}

		return nil
	}))
}

// resource returns the resource of an object in Velero's format: here it is the regular plural.
func resource(u *unstructured.Unstructured) string {
	return strings.ToLower(u.GetKind()) + "s." + u.GroupVersionKind().Group
}

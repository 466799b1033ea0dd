package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// testGuardedTenant checks that a tenant of a guarded namespace, whose ServiceAccount has the name
// of Velero's, can't evade the guard.
func (s *suite) testGuardedTenant(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Apply(ctx, fmt.Appendf(nil, tenantRights, n.Namespace)))
	s.makeNamespace(t, "elsewhere")
	s.guard(t, n, "# - name: in-a-guarded-namespace", "- name: in-a-guarded-namespace", "#   expression:", "  expression:", "team-a", n.Namespace)
	t.Cleanup(func() { s.unguard(t) })
	tenant, admin := s.as(t, n.Namespace, "velero"), s.as(t, "argocd", "argocd-application-controller")
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	another := func(in string) *unstructured.Unstructured {
		m := n.Manifest(0)
		m.SetName("another")
		m.SetNamespace(in)

		return m
	}
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings := policies.GroupVersion().WithResource("validatingadmissionpolicybindings")
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	create := func(client dynamic.Interface, in string, options metav1.CreateOptions, change ...func(*unstructured.Unstructured)) error {
		m := another(in)
		for _, c := range change {
			c(m)
		}
		p := n.Platform
		p.Namespace = in
		_, err := instancesOf(client, p).Create(ctx, m, options)

		return err
	}
	label := func(key, value string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
		_, err := tenant.Resource(namespaces).Patch(ctx, n.Namespace, types.MergePatchType, patch, metav1.PatchOptions{})

		return err
	}
	tries := map[string]struct {
		reason string
		try    func() error
		// by is the name of the guard if the guard refuses the request, and "" if RBAC does.
		by string
	}{
		"Create":        {reason: "Only Velero and Crossplane may create.", try: func() error { return create(tenant, n.Namespace, metav1.CreateOptions{}) }, by: guardName},
		"DryRun":        {reason: "A dry run is refused too.", try: func() error { return create(tenant, n.Namespace, dry) }, by: guardName},
		"Administrator": {reason: "A user with all other rights may not create either.", try: func() error { return create(admin, n.Namespace, dry) }, by: guardName},
		"Generated": {reason: "A generated name makes no difference.", try: func() error {
			return create(tenant, n.Namespace, dry, func(u *unstructured.Unstructured) { u.SetName(""); u.SetGenerateName("a-") })
		}, by: guardName},
		"Marked": {reason: "Labels and annotations of the object make no difference.", try: func() error {
			return create(tenant, n.Namespace, dry, func(u *unstructured.Unstructured) {
				u.SetLabels(map[string]string{"velero.io/restore-name": "r", "app.kubernetes.io/managed-by": "velero-plugin-for-crossplane"})
				u.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
			})
		}, by: guardName},
		"Labelled": {reason: "Labels of the namespace make no difference.", try: func() error {
			for _, key := range []string{"kubernetes.io/metadata.name", "name", "velero.io/exclude-from-backup"} {
				_ = label(key, "velero")
			}

			return create(tenant, n.Namespace, dry)
		}, by: guardName},
		"Policy":  {reason: "Tenants have no right to the policy.", try: func() error { return tenant.Resource(policies).Delete(ctx, guardName, metav1.DeleteOptions{}) }},
		"Binding": {reason: "Nor to its binding.", try: func() error { return tenant.Resource(bindings).Delete(ctx, guardName, metav1.DeleteOptions{}) }},
	}
	for name, tc := range tries {
		t.Run(name, func(t *testing.T) {
			err := tc.try()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.by) || tc.by != "" && !strings.Contains(err.Error(), "A restore comes first") {
				t.Errorf("%s got %v", tc.reason, err)
			}
		})
	}
	for what, err := range map[string]error{
		"Velero in the namespace":     create(s.as(t, "velero", "velero"), n.Namespace, dry),
		"Crossplane in the namespace": create(s.as(t, "crossplane-system", "crossplane"), n.Namespace, dry),
		"others elsewhere":            create(admin, "elsewhere", dry),
	} {
		if err != nil {
			t.Errorf("%s must be let create: %v", what, err)
		}
	}
	patch := []byte(`{"metadata":{"labels":{"mine":"yes"}}}`)
	if _, err := instancesOf(tenant, n.Platform).Patch(ctx, n.Name(0), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Errorf("What is there can be changed: %v", err)
	}
}

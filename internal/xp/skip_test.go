package xp_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestSkipReason(t *testing.T) {
	const pkg, ops, protection, rbac = "pkg.crossplane.io/v1", "ops.crossplane.io/v1alpha1", "protection.crossplane.io/v1beta1", "rbac.authorization.k8s.io/v1"
	byRevision := xptest.ControlledBy(xptest.Object(pkg, "ProviderRevision", "", "p-1"))
	byXRD := xptest.ControlledBy(xptest.XRD("xorders.example.org"))
	byXR := xptest.ControlledBy(xptest.XR("x"))
	of := xptest.Object
	cases := map[string]struct {
		reason string
		object *unstructured.Unstructured
		// want is part of the reason, "" if the object is restored.
		want string
	}{
		"Lock":      {reason: "A restored Lock hides missing packages.", object: of("pkg.crossplane.io/v1beta1", "Lock", "", "lock"), want: "the Lock"},
		"OtherLock": {reason: "A Lock of another group does not belong to Crossplane.", object: of("example.org/v1", "Lock", "", "l")},
		"Operation": {reason: "A restored Operation would run again.", object: of(ops, "Operation", "", "o"), want: "would run again"},
		"Cron":      {reason: "No controller creates a CronOperation.", object: of(ops, "CronOperation", "", "o")},
		"ProviderConfigUsage": {
			reason: "The MR creates its ProviderConfigUsage.",
			object: of("aws.example.org/v1", "ProviderConfigUsage", "", "u", xptest.Labelled("crossplane.io/provider-config", "default")),
			want:   "its managed resource makes it again",
		},
		"ClusterProviderConfigUsage": {
			reason: "The MR creates its ClusterProviderConfigUsage.",
			object: of("aws.example.org/v1", "ClusterProviderConfigUsage", "", "u", xptest.Labelled("crossplane.io/provider-config", "default")),
			want:   "its managed resource makes it again",
		},
		"UsageOfAnotherGroup": {
			reason: "A kind of the same name without Crossplane's label belongs to another project.",
			object: of("example.org/v1", "ProviderConfigUsage", "", "u"),
		},
		"ClusterUsage": {
			reason: "Crossplane creates the protection of a provider in use.",
			object: of(protection, "ClusterUsage", "", "u", xptest.Labelled("crossplane.io/provider-protection", "x")), want: "Crossplane makes it again",
		},
		"OwnClusterUsage": {reason: "No controller creates a user's ClusterUsage.", object: of(protection, "ClusterUsage", "", "u")},
		"ProviderRevision": {
			reason: "The package decides whether it activates a new revision, see ActivatesManually.", object: of(pkg, "ProviderRevision", "", "p-1"),
		},
		"Deployment": {
			reason: "The package manager creates the Deployment.",
			object: of("apps/v1", "Deployment", "crossplane-system", "p-1", byRevision), want: "the package p-1",
		},
		"Service":        {reason: "The package manager creates the Service.", object: of("v1", "Service", "crossplane-system", "p-1", byRevision), want: "the package p-1"},
		"ServiceAccount": {reason: "The package manager creates the ServiceAccount.", object: of("v1", "ServiceAccount", "crossplane-system", "p-1", byRevision), want: "the package p-1"},
		"Secret":         {reason: "The package manager creates the Secrets of its certificates.", object: of("v1", "Secret", "crossplane-system", "p-1", byRevision), want: "the package p-1"},
		"ComposedSecret": {reason: "Only a restore brings back the composed Secret of an XR.", object: of("v1", "Secret", "team-a", "s", byXR)},
		"SameKind":       {reason: "A Deployment of another group does not belong to a package.", object: of("example.org/v1", "Deployment", "team-a", "d", byRevision)},
		"PackageRole": {
			reason: "Crossplane's RBAC manager creates the role of a package.",
			object: of(rbac, "ClusterRole", "", "r", byRevision), want: "RBAC manager",
		},
		"Binding": {reason: "Crossplane's RBAC manager creates the binding of a package.", object: of(rbac, "ClusterRoleBinding", "", "r", byRevision), want: "RBAC manager"},
		"XRDRole": {reason: "Crossplane's RBAC manager creates the role of an XRD.", object: of(rbac, "ClusterRole", "", "r", byXRD), want: "RBAC manager"},
		"OrphanedRole": {
			reason: "A restore without this plugin has dropped the owner of the role.",
			object: of(rbac, "ClusterRole", "", "crossplane:provider:p-1:system"), want: "RBAC manager",
		},
		"OrphanedXRDRole": {
			reason: "A restore without this plugin has dropped the owner of the XRD's role.",
			object: of(rbac, "ClusterRole", "", "crossplane:composite:xorders.example.org:aggregate-to-edit"), want: "RBAC manager",
		},
		"RoleOfAnotherGroup": {reason: "Only a ClusterRole of RBAC is a role.", object: of("example.org/v1", "ClusterRole", "", "crossplane:provider:p-1:system")},
		"NamesakeRole":       {reason: "A user's role can contain the name.", object: of(rbac, "ClusterRole", "", "my:crossplane:provider:p-1")},
		"NamesakeDeployment": {reason: "The name has a meaning for roles only.", object: of("apps/v1", "Deployment", "a", "crossplane:provider:p-1")},
		"ComposedRole":       {reason: "Only a restore brings back the composed role of an XR.", object: of(rbac, "ClusterRole", "", "r", byXR)},
		"PackagesXRD":        {reason: "A package takes over the XRD that it contains.", object: xptest.XRD("xorders.example.org", byRevision)},
		"XRDsDeployment":     {reason: "An XRD runs no Deployment.", object: of("apps/v1", "Deployment", "team-a", "d", byXRD)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := xp.SkipReason(tc.object)
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestActivatesManually(t *testing.T) {
	for document, want := range map[string]bool{
		`{"spec":{"revisionActivationPolicy":"Manual"}}`: true, `{"spec":{"revisionActivationPolicy":"Automatic"}}`: false,
		`{"spec":{}}`: false, `{"spec":{"revisionActivationPolicy":1}}`: false, `{"spec":"Manual"}`: false,
	} {
		if got := xp.ActivatesManually(xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p", xptest.JSON(document))); got != want {
			t.Errorf("the default is Automatic\nActivatesManually(%s): got %v, want %v", document, got, want)
		}
	}
}

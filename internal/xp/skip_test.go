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
		"OtherLock": {reason: "A Lock of another group is somebody else's.", object: of("example.org/v1", "Lock", "", "l")},
		"Operation": {reason: "It would run again.", object: of(ops, "Operation", "", "o"), want: "would run again"},
		"Cron":      {reason: "Nothing makes a CronOperation.", object: of(ops, "CronOperation", "", "o")},
		"ProviderConfigUsage": {
			reason: "Its MR makes it.",
			object: of("aws.example.org/v1", "ProviderConfigUsage", "", "u", xptest.Labelled("crossplane.io/provider-config", "default")),
			want:   "its managed resource makes it again",
		},
		"ClusterProviderConfigUsage": {
			reason: "The same for a kind that only ends so.",
			object: of("aws.example.org/v1", "ClusterProviderConfigUsage", "", "u", xptest.Labelled("crossplane.io/provider-config", "default")),
			want:   "its managed resource makes it again",
		},
		"UsageOfAnotherGroup": {
			reason: "A kind of that name without Crossplane's label is somebody else's.",
			object: of("example.org/v1", "ProviderConfigUsage", "", "u"),
		},
		"ClusterUsage": {
			reason: "Crossplane protects a provider in use by itself.",
			object: of(protection, "ClusterUsage", "", "u", xptest.Labelled("crossplane.io/provider-protection", "x")), want: "Crossplane makes it again",
		},
		"OwnClusterUsage": {reason: "Nothing makes a person's own.", object: of(protection, "ClusterUsage", "", "u")},
		"Provider":        {reason: "Nothing makes a Provider.", object: of(pkg, "Provider", "", "p")},
		"ProviderRevision": {
			reason: "Whether one is made anew is up to its package, see ActivatesManually.", object: of(pkg, "ProviderRevision", "", "p-1"),
		},
		"Deployment": {
			reason: "The package manager runs it.",
			object: of("apps/v1", "Deployment", "crossplane-system", "p-1", byRevision), want: "the package p-1",
		},
		"Service":        {reason: "The same.", object: of("v1", "Service", "crossplane-system", "p-1", byRevision), want: "the package p-1"},
		"ServiceAccount": {reason: "The same.", object: of("v1", "ServiceAccount", "crossplane-system", "p-1", byRevision), want: "the package p-1"},
		"Secret":         {reason: "The same for its certificates.", object: of("v1", "Secret", "crossplane-system", "p-1", byRevision), want: "the package p-1"},
		"ComposedSecret": {reason: "What an XR composes nothing else makes.", object: of("v1", "Secret", "team-a", "s", byXR)},
		"OwnDeployment":  {reason: "Nobody makes what nobody owns.", object: of("apps/v1", "Deployment", "team-a", "d")},
		"SameKind":       {reason: "A Deployment of another group is somebody else's.", object: of("example.org/v1", "Deployment", "team-a", "d", byRevision)},
		"PackageRole": {
			reason: "Crossplane's RBAC manager makes it.",
			object: of(rbac, "ClusterRole", "", "r", byRevision), want: "RBAC manager",
		},
		"Binding": {reason: "The same.", object: of(rbac, "ClusterRoleBinding", "", "r", byRevision), want: "RBAC manager"},
		"XRDRole": {
			reason: "The same for an XRD.",
			object: of(rbac, "ClusterRole", "", "r", byXRD), want: "RBAC manager",
		},
		"OrphanedRole": {
			reason: "A restore without this plugin left it without its owner.",
			object: of(rbac, "ClusterRole", "", "crossplane:provider:p-1:system"), want: "RBAC manager",
		},
		"OrphanedXRDRole": {
			reason: "The same for an XRD.",
			object: of(rbac, "ClusterRole", "", "crossplane:composite:xorders.example.org:aggregate-to-edit"), want: "RBAC manager",
		},
		"OrphanedBinding": {
			reason: "The same for a binding.",
			object: of(rbac, "ClusterRoleBinding", "", "crossplane:provider:p-1:system"), want: "RBAC manager",
		},
		"RoleOfAnotherGroup": {reason: "Only a ClusterRole of RBAC is one.", object: of("example.org/v1", "ClusterRole", "", "crossplane:provider:p-1:system")},
		"NamesakeRole":       {reason: "A role that has the name in it is a person's.", object: of(rbac, "ClusterRole", "", "my:crossplane:provider:p-1")},
		"NamesakeDeployment": {reason: "Nothing else goes by its name.", object: of("apps/v1", "Deployment", "a", "crossplane:provider:p-1")},
		"OwnRole":            {reason: "Crossplane's own come with Crossplane.", object: of(rbac, "ClusterRole", "", "crossplane-admin")},
		"ComposedRole":       {reason: "What an XR composes nothing else makes.", object: of(rbac, "ClusterRole", "", "r", byXR)},
		"PackagesXRD":        {reason: "What a package brings it takes over.", object: xptest.XRD("xorders.example.org", byRevision)},
		"XRDsDeployment":     {reason: "An XRD runs nothing.", object: of("apps/v1", "Deployment", "team-a", "d", byXRD)},
		"Empty":              {reason: "Nothing is nothing.", object: &unstructured.Unstructured{}},
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
			t.Errorf("The default is Automatic.\nActivatesByHand(%s): got %v, want %v", document, got, want)
		}
	}
}

package hooks

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func (s *server) validation() *validation {
	return &validation{options: &options{velero: "velero"}, cluster: live.NewCluster(s, s)}
}

func codes(r *report.Report) []string {
	got := []string{}
	for _, p := range r.Problems {
		got = append(got, string(p.Code)+" "+p.Object.String())
	}

	return got
}

func TestValidateLooksAgain(t *testing.T) {
	x := xptest.XR("x", xptest.Reconciled())
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	cases := map[string]struct {
		reason string
		// comes is set if the MR is created between the two observations.
		comes bool
		want  []string
		looks int
	}{
		"Passing": {reason: "Crossplane lists a resource shortly before it creates it.", comes: true, want: []string{}, looks: 2},
		"Staying": {reason: "A reference that stays dangling is a problem.", want: []string{"Dangling Bucket b"}, looks: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(xptest.With(x, xptest.Refs(mr)))
			looks := 0
			s.PrependReactor("list", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
				looks++
				if looks == 2 && tc.comes {
					return false, nil, s.Tracker().Add(mr)
				}

				return false, nil, nil
			})
			r, err := s.validation().validateStable(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r)); diff != "" || looks != tc.looks {
				t.Errorf("%s\n%d looks; -want, +got:\n%s", tc.reason, looks, diff)
			}
			if r.Summary.Problems != len(tc.want) {
				t.Errorf("The summary must count the reported problems; got %+v", r.Summary)
			}
		})
	}
}

func TestValidateOfARestore(t *testing.T) {
	held := restored(xptest.XR("x"), adoption.Hold{})
	long := strings.Repeat("long-", 20)
	cases := map[string]struct {
		reason   string
		restore  string
		phase    string
		want     []string
		restores []report.Restore
	}{
		"UnderWay": {
			reason: "The running Restore still works on its holds.", restore: "gone", phase: "InProgress", want: []string{"Held XOrder x"}, restores: []report.Restore{{Name: "velero/gone", Phase: "InProgress"}},
		},
		"Gone": {
			reason: "No Restore works on the holds of a deleted one.", restore: "gone", want: []string{"LeakedHold XOrder x"}, restores: []report.Restore{{Name: "velero/gone", Phase: "Gone"}},
		},
		"Nothing": {
			reason: "A Restore without any object must be a problem.", restore: long, want: []string{"NotFound Restore velero/" + long}, restores: []report.Restore{{Name: "velero/" + long, Phase: "Gone"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(held)
			if tc.phase != "" {
				s = newServer(held, gone(tc.phase))
			}
			v := s.validation()
			v.restore = tc.restore
			r, err := v.validate(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if wrote := s.wrote(); len(wrote) > 0 {
				t.Errorf("%s\nValidate must change nothing; it wrote %v", tc.reason, wrote)
			}
			if diff := cmp.Diff(tc.restores, r.Restores); diff != "" {
				t.Errorf("%s\nrestores: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The Crossplane version is a problem of no tree, and each selection has it.
func TestValidateOfVersions(t *testing.T) {
	cases := map[string]struct {
		reason, version string
		want            []string
	}{
		"Broken":  {reason: "This version can't upgrade packages.", version: "v2.4.0", want: []string{"KnownDefect Deployment crossplane-system/crossplane"}},
		"Fine":    {reason: "The defect is fixed in this version.", version: "v2.4.2"},
		"Unknown": {reason: "A tag without a version does not show whether the defect is there.", version: "latest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := newServer(xptest.XR("x", xptest.Reconciled()), deploymentOf(tc.version)).validation()
			v.names = []string{"x"}
			r, err := v.validate(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r), cmpopts.EquateEmpty()); diff != "" || r.Failing(false) > 0 {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A guard that was left up is a warning. Other policies are not.
func TestValidateOfGuard(t *testing.T) {
	policy := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", name, o...)
	}
	s := newServer(xptest.XR("x", xptest.Reconciled()), policy("other"), policy("g", xptest.Labelled(diagnosis.LabelGuard, "true")))
	r, err := s.validation().validate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GuardUp ValidatingAdmissionPolicy g"}, codes(r)); diff != "" || r.Failing(false) > 0 {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// A package of which the cache has only a part is Healthy, and its kinds are not served.
func TestValidateOfTruncatedPackages(t *testing.T) {
	gone := xptest.XR("x", xptest.Reconciled(), xptest.Refs(xptest.Object("gone.example.org/v1", "Gone", "", "g")))
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    []string
	}{
		"Unserved": {
			reason: "The kind can be missing for this defect.", objects: []*unstructured.Unstructured{gone, deploymentOf("v2.4.2")},
			want: []string{"Dangling Gone g", "KnownDefect Deployment crossplane-system/crossplane"},
		},
		"Fixed":  {reason: "The kind is missing for another reason.", objects: []*unstructured.Unstructured{gone, deploymentOf("v2.4.3")}, want: []string{"Dangling Gone g"}},
		"Served": {reason: "All kinds are there.", objects: []*unstructured.Unstructured{xptest.XR("x", xptest.Reconciled()), deploymentOf("v2.4.2")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := newServer(tc.objects...).validation().validate(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Velero without this plugin is a problem of no tree, and each selection has it. It is the Velero of
// the flag --velero-namespace.
func TestValidateOfPlugin(t *testing.T) {
	velero := func(namespace string, initContainers ...any) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", namespace, "velero", xptest.Field([]any{map[string]any{"name": "velero"}}, "spec", "template", "spec", "containers"),
			xptest.Field(initContainers, "spec", "template", "spec", "initContainers"))
	}
	plugin := map[string]any{"name": "crossplane-contrib-velero-plugin-for-crossplane"}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		refused bool
		want    []string
	}{
		"Missing":   {reason: "A restore without the plugin does the damage.", objects: []*unstructured.Unstructured{velero("velero")}, want: []string{"PluginMissing Deployment velero/velero"}},
		"There":     {reason: "Velero runs the plugin.", objects: []*unstructured.Unstructured{velero("velero", plugin)}},
		"Elsewhere": {reason: "Another Velero does not count.", objects: []*unstructured.Unstructured{velero("velero"), velero("other", plugin)}, want: []string{"PluginMissing Deployment velero/velero"}},
		"NoVelero":  {reason: "validate works without Velero."},
		"Refused":   {reason: "The right is optional.", objects: []*unstructured.Unstructured{velero("velero")}, refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.objects, xptest.XR("x", xptest.Reconciled()))...)
			if tc.refused {
				s.PrependReactor("list", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", nil)
				})
			}
			v := s.validation()
			v.names = []string{"x"}
			r, err := v.validate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r), cmpopts.EquateEmpty()); diff != "" || r.Failing(false) > 0 || (r.Failing(true) > 0) != (tc.want != nil) {
				t.Errorf("%s\n%d problems; -want, +got:\n%s", tc.reason, r.Failing(true), diff)
			}
		})
	}
}

// A user without all rights that the check needs gets no result about a package's rights.
func TestValidateOfRights(t *testing.T) {
	binding := xptest.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "helm", xptest.JSON(`{"roleRef":{"kind":"ClusterRole","name":"edit"},`+
		`"subjects":[{"kind":"ServiceAccount","namespace":"crossplane-system","name":"helm-0123456789ab"}]}`))
	revision := xptest.Object(xp.GroupPackage+"/v1", "ProviderRevision", "", "helm-ba9876543210", xptest.Field("Active", "spec", "desiredState"))
	lists := func(s *server) (listed []string) {
		for _, a := range s.Actions() {
			if r := a.GetResource(); a.GetVerb() == "list" && (r.Group == "rbac.authorization.k8s.io" || r.Resource == "providerrevisions") {
				listed = append(listed, r.Resource)
			}
		}

		return listed
	}
	cases := map[string]struct {
		reason, refused string
		objects         []*unstructured.Unstructured
		want, listed    []string
	}{
		"Lost": {
			reason: "The package runs as another ServiceAccount now.", objects: []*unstructured.Unstructured{binding, revision}, want: []string{"RightsMisplaced ClusterRoleBinding helm"},
			listed: []string{"clusterrolebindings", "rolebindings", "providerrevisions"},
		},
		"NoBindings": {
			reason: "Without the bindings the check must not read more.", refused: "clusterrolebindings", objects: []*unstructured.Unstructured{binding, revision}, listed: []string{"clusterrolebindings"},
		},
		"NoRevisions": {
			reason: "Without the revisions the running package is unknown.", refused: "providerrevisions", objects: []*unstructured.Unstructured{binding, revision},
			listed: []string{"clusterrolebindings", "rolebindings", "providerrevisions"},
		},
		"Nothing": {reason: "The check must read revisions only if a binding needs them.", objects: []*unstructured.Unstructured{revision}, listed: []string{"clusterrolebindings", "rolebindings"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.objects, xptest.XR("x", xptest.Reconciled()))...)
			if tc.refused != "" {
				s.PrependReactor("list", tc.refused, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: tc.refused}, "", nil)
				})
			}
			v := s.validation()
			r, err := v.validate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.listed, lists(s)); diff != "" {
				t.Errorf("%s\nlists: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValidateOfALongName(t *testing.T) {
	const label = "long-long-long-long-long-long-long-long-long-long-long-loab5c92"
	name := strings.Repeat("long-", 20) + "x"
	v := newServer().validation()
	v.restore = name
	r, err := v.validate(context.Background())
	if err != nil || len(r.Problems) != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	_, after, _ := strings.Cut(r.Problems[0].Reason, "velero.io/restore-name=")
	value, _, _ := strings.Cut(after, ":")
	x := xptest.XR("x", xptest.Labelled("velero.io/restore-name", value), xptest.Reconciled())
	if len(value) != len(label) {
		t.Errorf("Velero's label values have at most 63 characters; got %s", value)
	}
	v = newServer(x).validation()
	v.restore = name
	if r, err = v.validate(context.Background()); err != nil || len(r.Problems) > 0 || len(r.Trees) != 1 || r.Trees[0].ID() != xp.RefTo(x).ID() {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A namespace that is not there is a typing error, and an empty one is not.
func TestValidateOfANamespace(t *testing.T) {
	claim := xptest.Claim("o", xptest.OfXR(xptest.XR("x")), xptest.Reconciled())
	x := xptest.XR("x", xptest.ClaimedBy(claim), xptest.Reconciled())
	cases := map[string]struct {
		reason    string
		namespace string
		refused   bool
		want      []string
		failing   int
	}{
		"There":   {reason: "It has a claim.", namespace: xptest.Namespace, want: []string{}},
		"Empty":   {reason: "It need not have any.", namespace: "empty", want: []string{}},
		"Typo":    {reason: "It does not exist.", namespace: "typo", want: []string{"NotFound Namespace typo"}, failing: 1},
		"Unknown": {reason: "It may not be read.", namespace: "typo", refused: true, want: []string{"NotFound Namespace typo"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(claim, x, xptest.Object("v1", "Namespace", "", "empty"))
			if tc.refused {
				s.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "typo", nil)
				})
			}
			v := s.validation()
			v.namespace = tc.namespace
			r, err := v.validate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r)); diff != "" || r.Failing(false) != tc.failing {
				t.Errorf("%s %d fail; -want, +got:\n%s", tc.reason, r.Failing(false), diff)
			}
		})
	}
}

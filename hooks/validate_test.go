package hooks

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func (s *server) validation() *validation {
	return &validation{options: &options{velero: "velero"}, cluster: cluster.New(s, s)}
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
			r, err := s.validation().validateStable(t.Context())
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

// refusing makes the server refuse a request. It has the verb and the resource.
func (s *server) refusing(verb, resource string) {
	s.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", nil)
	})
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("long-", 20)
	held, x := restored(xptest.XR("held"), hold.Hold{}), xptest.XR("x", xptest.Reconciled())
	claim := xptest.Claim("o", xptest.OfXR(x), xptest.Reconciled())
	claimed, empty := xptest.With(x, xptest.ClaimedBy(claim)), xptest.Object("v1", "Namespace", "", "empty")
	policy := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", name, o...)
	}
	unserved := xptest.With(x, xptest.Refs(xptest.Object("gone.example.org/v1", "Gone", "", "g")))
	velero := func(namespace string, initContainers ...any) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", namespace, "velero", xptest.Field([]any{map[string]any{"name": "velero"}}, "spec", "template", "spec", "containers"),
			xptest.Field(initContainers, "spec", "template", "spec", "initContainers"))
	}
	plugin := map[string]any{"name": "crossplane-contrib-velero-plugin-for-crossplane"}
	binding := bound("crossplane-system")
	revision := xptest.Object(xp.GroupPackage+"/v1", "ProviderRevision", "", "helm-ba9876543210", xptest.Field("Active", "spec", "desiredState"))
	of := func(u ...*unstructured.Unstructured) []*unstructured.Unstructured { return u }
	const defect, noPlugin = "KnownDefect Deployment crossplane-system/crossplane", "PluginMissing Deployment velero/velero"
	cases := map[string]struct {
		reason                   string
		objects                  []*unstructured.Unstructured
		restore, namespace, name string
		// refused are the verb and the resource of a request.
		refused string
		want    []string
		// failing is how many of them fail the command.
		failing int
		// phase is that of the Restore in the report.
		phase string
	}{
		"UnderWay": {reason: "The running Restore still works on its holds.", objects: of(held, gone("InProgress")), restore: "gone", want: []string{"Held XOrder held"}, failing: 1, phase: "InProgress"},
		"Gone":     {reason: "No Restore works on the holds of a deleted one.", objects: of(held), restore: "gone", want: []string{"LeakedHold XOrder held"}, failing: 1, phase: "Gone"},
		"Nothing":  {reason: "A Restore without any object must be a problem.", objects: of(held), restore: long, want: []string{"NotFound Restore velero/" + long}, failing: 1, phase: "Gone"},
		// The version of Crossplane, the guard and the plugin are problems of no tree, and each selection has them.
		"Broken":         {reason: "This version can't upgrade packages.", objects: of(x, deploymentOf("v2.4.0")), name: "x", want: []string{defect}},
		"Fixed":          {reason: "The defect is fixed in this version.", objects: of(x, deploymentOf("v2.4.2")), name: "x"},
		"UnknownVersion": {reason: "A tag without a version does not show whether the defect is there.", objects: of(x, deploymentOf("latest")), name: "x"},
		"Unserved":       {reason: "The kind can be missing for this defect.", objects: of(unserved, deploymentOf("v2.4.2")), want: []string{"Dangling Gone g", defect}, failing: 1},
		"UnservedFixed":  {reason: "The kind is missing for another reason.", objects: of(unserved, deploymentOf("v2.4.3")), want: []string{"Dangling Gone g"}, failing: 1},
		"Guard": {
			reason:  "A guard that was left up is a warning. Other policies are not.",
			objects: of(x, policy("other"), policy("g", xptest.Labelled(diagnosis.LabelGuard, "true"))), want: []string{"GuardUp ValidatingAdmissionPolicy g"},
		},
		"NoPlugin":      {reason: "A restore without the plugin does the damage.", objects: of(x, velero("velero")), name: "x", want: []string{noPlugin}},
		"Plugin":        {reason: "Velero runs the plugin.", objects: of(x, velero("velero", plugin)), name: "x"},
		"PluginOfOther": {reason: "Another Velero does not count.", objects: of(x, velero("velero"), velero("other", plugin)), name: "x", want: []string{noPlugin}},
		"PluginRefused": {reason: "The right is optional.", objects: of(x, velero("velero")), name: "x", refused: "list deployments"},
		"Rights": {
			reason: "The package runs as another ServiceAccount now.", objects: of(x, binding, revision), want: []string{"RightsMisplaced ClusterRoleBinding in-crossplane-system"}, failing: 1,
		},
		// A user without all rights that the check needs gets no result about a package's rights.
		"NoBindings":  {reason: "Without the bindings no lost one is known.", objects: of(x, binding, revision), refused: "list clusterrolebindings"},
		"NoRevisions": {reason: "Without the revisions the running package is unknown.", objects: of(x, binding, revision), refused: "list providerrevisions"},
		"Namespace":   {reason: "It has a claim.", objects: of(claim, claimed), namespace: xptest.Namespace},
		"Empty":       {reason: "A namespace need not have any.", objects: of(claim, claimed, empty), namespace: "empty"},
		"Typo":        {reason: "The namespace does not exist.", objects: of(claim, claimed), namespace: "typo", want: []string{"NotFound Namespace typo"}, failing: 1},
		"Hidden":      {reason: "The namespace may not be read.", objects: of(claim, claimed), namespace: "typo", refused: "get namespaces", want: []string{"NotFound Namespace typo"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(tc.objects...)
			if verb, resource, ok := strings.Cut(tc.refused, " "); ok {
				s.refusing(verb, resource)
			}
			v := s.validation()
			v.restore, v.namespace = tc.restore, tc.namespace
			if tc.name != "" {
				v.names = []string{tc.name}
			}
			r, err := v.validate(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, codes(r), cmpopts.EquateEmpty()); diff != "" || r.Failing(false) != tc.failing || r.Failing(true) != len(tc.want) && tc.namespace == "" {
				t.Errorf("%s\n%d fail; -want, +got:\n%s", tc.reason, r.Failing(false), diff)
			}
			if tc.restore != "" && (len(r.Restores) != 1 || r.Restores[0].Name != "velero/"+tc.restore || r.Restores[0].Phase != tc.phase) {
				t.Errorf("%s\nthe Restores are %v", tc.reason, r.Restores)
			}
			if wrote := s.wrote(); len(wrote) > 0 {
				t.Errorf("%s\nvalidate must change nothing; it wrote %v", tc.reason, wrote)
			}
		})
	}
}

// The check of rights reads revisions only if a binding needs them.
func TestValidateReadsRevisionsIfNeeded(t *testing.T) {
	s := newServer(xptest.Object(xp.GroupPackage+"/v1", "ProviderRevision", "", "helm-ba9876543210", xptest.Field("Active", "spec", "desiredState")))
	if _, err := s.validation().validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, a := range s.Actions() {
		if a.GetResource().Resource == "providerrevisions" {
			t.Errorf("got %v", a)
		}
	}
}

func TestValidateOfALongName(t *testing.T) {
	const label = "long-long-long-long-long-long-long-long-long-long-long-loab5c92"
	name := strings.Repeat("long-", 20) + "x"
	v := newServer().validation()
	v.restore = name
	r, err := v.validate(t.Context())
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
	if r, err = v.validate(t.Context()); err != nil || len(r.Problems) > 0 || len(r.Trees) != 1 || r.Trees[0].ID() != xp.RefTo(x).ID() {
		t.Errorf("got %+v, %v", r, err)
	}
}

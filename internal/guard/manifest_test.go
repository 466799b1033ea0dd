package guard

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestObjects(t *testing.T) {
	type rule struct {
		Group, Resources, Names string
	}
	type want struct {
		Kinds, Conditions, Operations []string
		Rules                         []rule
	}
	both := []string{"ValidatingAdmissionPolicy v1", "ValidatingAdmissionPolicyBinding v1"}
	probe := rule{Resources: "events", Names: Name}
	cases := map[string]struct {
		reason string
		guard  Guard
		want   want
	}{
		"All": {
			reason: "Each group gets one rule, and a guard of all namespaces needs no condition.",
			guard:  Guard{Kinds: []string{"b.example.org", "a.example.org", "c.other.org"}, Users: []string{"u", "v"}},
			want: want{
				Kinds: both, Operations: []string{"CREATE"},
				Conditions: []string{`request.resource.group == "" || !(request.userInfo.username in ["u", "v"])`},
				Rules:      []rule{{Group: "example.org", Resources: "b a"}, {Group: "other.org", Resources: "c"}, probe},
			},
		},
		"Namespaces": {
			reason: "The condition compares the names of the namespaces.",
			guard:  Guard{Kinds: []string{"*.example.org", "a.example.org"}, Namespaces: []string{"n", "o"}, Users: []string{"u"}},
			want: want{
				Kinds: both, Operations: []string{"CREATE"},
				Conditions: []string{
					`request.resource.group == "" || !(request.userInfo.username in ["u"])`,
					`request.resource.group == "" || !has(request.namespace) || request.namespace in ["n", "o"]`,
				},
				Rules: []rule{{Group: "example.org", Resources: "*"}, probe},
			},
		},
		"Hostile": {
			reason: "The policy quotes a user name, so the name can't end the CEL string.",
			guard:  Guard{Kinds: []string{"a.example.org"}, Users: []string{`"] || true || "" in ["`, `\`}},
			want: want{
				Kinds: both, Operations: []string{"CREATE"},
				Conditions: []string{`request.resource.group == "" || !(request.userInfo.username in ["\"] || true || \"\" in [\"", "\\"])`},
				Rules:      []rule{{Group: "example.org", Resources: "a"}, probe},
			},
		},
		"Paused": {
			reason: "The admitted objects must be paused and must stay paused.",
			guard:  Guard{Kinds: []string{"a.example.org"}, Users: []string{"u"}, Paused: true},
			want: want{
				Kinds:      append(both[:2:2], "MutatingAdmissionPolicy v1beta1", "MutatingAdmissionPolicyBinding v1beta1"),
				Operations: []string{"CREATE", "UPDATE"},
				Conditions: []string{`request.resource.group == "" || !(request.userInfo.username in ["u"])`},
				Rules:      []rule{{Group: "example.org", Resources: "a"}, probe},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := tc.guard.Objects("v1beta1")
			var got want
			for _, u := range objects {
				got.Kinds = append(got.Kinds, u.GetKind()+" "+u.GroupVersionKind().Version)
			}
			conditions, _, _ := unstructured.NestedSlice(objects[0].Object, "spec", "matchConditions")
			for _, c := range conditions {
				got.Conditions = append(got.Conditions, c.(map[string]any)["expression"].(string)) //nolint:forcetypeassert // The test is wrong otherwise.
			}
			rules, _, _ := unstructured.NestedSlice(objects[0].Object, "spec", "matchConstraints", "resourceRules")
			for _, r := range rules {
				texts := func(field string) []string {
					list, _, _ := unstructured.NestedStringSlice(r.(map[string]any), field) //nolint:forcetypeassert // The test is wrong otherwise.

					return list
				}
				got.Rules = append(got.Rules, rule{
					Group: strings.Join(texts("apiGroups"), " "), Resources: strings.Join(texts("resources"), " "), Names: strings.Join(texts("resourceNames"), " "),
				})
				if got.Operations == nil {
					got.Operations = texts("operations")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMessage(t *testing.T) {
	cases := map[string]struct {
		reason string
		by     string
		want   string
	}{
		"Known":   {reason: "The message names the author of the guard.", by: "alice", want: "put up by alice at monday"},
		"Unknown": {reason: "The author may be unknown.", want: "put up by an administrator at monday"},
		"Hostile": {reason: "The API server accepts one line only.", by: "a\nb\x1b[2J", want: "put up by a?b?[2J at monday"},
		"Long":    {reason: "The message limits the length of a name.", by: strings.Repeat("ä", 1000), want: "put up by " + strings.Repeat("ä", 100) + "... at monday"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Guard{CreatedBy: tc.by, Since: "monday"}).Message(); !strings.Contains(got, tc.want) || !strings.Contains(got, "guard off") {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFrom(t *testing.T) {
	g := Guard{Kinds: []string{"a.example.org"}, Namespaces: []string{"n"}, Users: []string{"u"}, Paused: true, CreatedBy: "alice", Since: "monday"}
	live := func(change ...xptest.Option) map[string]*unstructured.Unstructured {
		objects := map[string]*unstructured.Unstructured{}
		for _, u := range g.Objects("v1") {
			objects[u.GetKind()] = u
		}
		objects[KindValidating] = xptest.With(objects[KindValidating], change...)

		return objects
	}
	without := live()
	delete(without, KindMutatingBinding)
	cases := map[string]struct {
		reason  string
		live    map[string]*unstructured.Unstructured
		want    Guard
		changed []string
		foreign bool
	}{
		"Own":     {reason: "The live policy records the guard that it was made for.", live: live(), want: g},
		"Changed": {reason: "The comparison finds a weakened policy.", live: live(xptest.Field("Ignore", "spec", "failurePolicy")), want: g, changed: []string{KindValidating}},
		"Missing": {reason: "The comparison finds a missing policy.", live: without, want: g, changed: []string{KindMutatingBinding}},
		"Foreign": {reason: "A policy of that name without the plugin's label belongs to another author.", live: live(xptest.Without("metadata", "labels")), foreign: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := From(tc.live[KindValidating])
			if errors.Is(err, ErrForeign) != tc.foreign {
				t.Fatalf("%s got %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if tc.foreign {
				return
			}
			if diff := cmp.Diff(tc.changed, got.Differs(tc.live)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := From(xptest.With(live()[KindValidating], xptest.Annotated(Annotation, "{"))); err == nil || errors.Is(err, ErrForeign) {
		t.Errorf("a damaged policy still belongs to this plugin; got %v", err)
	}
}

var update = flag.Bool("update", false, "write the example")

// TestExample compares the example with the command's manifest. go test ./internal/guard -update
// writes it.
func TestExample(t *testing.T) {
	const file = "../../example/guard.yaml"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g := Guard{
		Kinds: []string{"environments.platform.example.org", "xenvironments.platform.example.org"},
		Users: []string{"system:serviceaccount:crossplane-system:crossplane", "system:serviceaccount:velero:velero"}, Since: "the beginning of this cluster",
	}
	comment, _, _ := strings.Cut(string(b), "apiVersion:")
	var documents []string
	for _, u := range g.Objects("v1") {
		y, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(y))
	}
	want := comment + strings.Join(documents, "---\n")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // The example is public.
			t.Fatal(err)
		}
		b = []byte(want)
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("The example must be what guard on makes; run go test ./internal/guard -update: -want, +got:\n%s", diff)
	}
}

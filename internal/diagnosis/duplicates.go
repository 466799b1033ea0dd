package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A name is what an external resource goes by. It need not be the name of one only: many are unique in a region, or in what they belong to.
type name struct {
	group, kind, config, external string
}

// checkDuplicates finds MRs that manage one external resource, each of which updates it, and the first of which to be deleted deletes it.
func (d *diagnosis) checkDuplicates() {
	named := map[name][]*unstructured.Unstructured{}
	for _, mr := range sorted(d.managed) {
		external := mr.GetAnnotations()[xp.AnnotationExternalName]
		if external == "" || xp.OnlyObserves(mr) {
			continue
		}
		n := name{group: family(mr.GroupVersionKind().Group), kind: mr.GetKind(), config: configOf(mr), external: external}
		others := named[n]
		named[n] = append(others, mr)
		at := slices.IndexFunc(others, func(other *unstructured.Unstructured) bool { return !differ(mr, other) })
		if at < 0 {
			continue
		}
		severity, manages := report.Warning, "may manage"
		if isSure(mr, others[at]) {
			severity, manages = report.Grave, "manages"
		}
		d.add(report.Duplicated, severity, xp.RefTo(mr), fmt.Sprintf("it %s the same external resource as %s: both have the external-name %s", manages,
			xp.String(others[at]), external),
			`find out which of the two is to manage it, set managementPolicies: ["Observe"] on the other, and then delete that`)
	}
}

// family is the API group without what tells namespaced MRs from cluster-scoped ones: both kinds manage the same external resources.
func family(group string) string {
	return strings.Replace(group, ".m.", ".", 1)
}

// configOf names the account that an MR's provider uses. Namespaces are left out, since a namespaced and a cluster-scoped config can be of one account.
func configOf(mr *unstructured.Unstructured) string {
	s, _, _ := unstructured.NestedString(mr.Object, "spec", "providerConfigRef", "name")

	return s
}

// identifiers are where providers say what an external resource is called everywhere.
var identifiers = [][]string{{"arn"}, {"id"}, {"selfLink"}, {"uid"}} //nolint:gochecknoglobals // It is a constant list.

// places are the fields of forProvider that names of external resources are unique in.
var places = [][]string{ //nolint:gochecknoglobals // It is a constant list.
	{"region"},
	{"location"},
	{"zone"},
	{"project"},
	{"resourceGroupName"},
	// A provider-kubernetes Object is named like itself, wherever what it manages is.
	{"manifest", "apiVersion"},
	{"manifest", "kind"},
	{"manifest", "metadata", "namespace"},
	{"manifest", "metadata", "name"},
}

// differ tells whether two MRs with one external-name manage different things all the same.
func differ(a, b *unstructured.Unstructured) bool {
	for under, fields := range map[string][][]string{"status.atProvider": identifiers, "spec.forProvider": places} {
		for _, field := range fields {
			path := append(strings.Split(under, "."), field...)
			of, inA, _ := unstructured.NestedString(a.Object, path...)
			other, inB, _ := unstructured.NestedString(b.Object, path...)
			if inA && inB && of != other {
				return true
			}
		}
	}

	return false
}

// isSure tells whether two MRs that don't differ manage the same for sure: their providers call it the same, or the external-name was not made of
// their own names, which are unique only in a namespace.
func isSure(a, b *unstructured.Unstructured) bool {
	for _, field := range identifiers {
		path := append([]string{"status", "atProvider"}, field...)
		of, inA, _ := unstructured.NestedString(a.Object, path...)
		other, inB, _ := unstructured.NestedString(b.Object, path...)
		if inA && inB && of == other && of != a.GetName() {
			return true
		}
	}
	external := a.GetAnnotations()[xp.AnnotationExternalName]

	return external != a.GetName() || external != b.GetName()
}

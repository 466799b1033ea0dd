package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A name is what an external resource goes by. It need not be the name of one only: many are unique
// in a region, or in what they belong to.
type name struct {
	group, kind, config, external string
}

// maxShared is from how many MRs on an external-name that they share is none that is to tell them
// apart, such as that of a subnet "default". Of those only what their provider calls them tells. It
// also bounds how many of them are compared with one another.
const maxShared = 16

// checkDuplicates finds MRs that manage one external resource, each of which updates it, and the
// first of which to be deleted deletes it.
func (d *diagnosis) checkDuplicates() {
	named, identified := map[name][]*unstructured.Unstructured{}, map[name]*unstructured.Unstructured{}
	for _, mr := range fullObjects(sorted(d.managed)) {
		external := mr.GetAnnotations()[xp.AnnotationExternalName]
		if external == "" || !changesOutside(mr) {
			continue
		}
		n := name{group: xp.GroupFamily(mr.GroupVersionKind().Group), kind: mr.GetKind(), config: configOf(mr), external: external}
		others := named[n]
		if len(others) < maxShared {
			named[n] = append(others, mr)
		}
		if other := identify(identified, n, mr); other != nil && !differ(mr, other) {
			d.duplicate(severityOf(mr, other), mr, other)

			continue
		}
		if len(others) == maxShared {
			continue
		}
		at := slices.IndexFunc(others, func(other *unstructured.Unstructured) bool { return !differ(mr, other) })
		switch {
		case at < 0:
		case isOwnName(mr) && isOwnName(others[at]) && (identifierOf(mr, "id") == "" || identifierOf(mr, "id") != identifierOf(others[at], "id")):
			// Names of objects are unique only in a namespace, and external-names that were made of
			// them need not be unique in more than that.
		default:
			d.duplicate(severityOf(mr, others[at]), mr, others[at])
		}
	}
}

func (d *diagnosis) duplicate(severity report.Severity, mr, other *unstructured.Unstructured) {
	manages := "manages"
	if severity == report.Warning {
		manages = "may manage"
	}
	d.found = append(d.found, report.Problem{
		Code: report.Duplicated, Severity: severity, Object: xp.RefTo(mr), Others: []xp.Ref{xp.RefTo(other)},
		Reason: fmt.Sprintf("it %s the same external resource as %s: both have the external-name %s", manages, xp.String(other),
			mr.GetAnnotations()[xp.AnnotationExternalName]),
		Next: `find out which of the two is to manage it, set managementPolicies: ["Observe"] on the other, and then delete that`,
	})
}

// changesOutside reports whether an MR's provider may change or delete its external resource. A
// copy that is held for being one is told of by its hold.
func changesOutside(mr *unstructured.Unstructured) bool {
	if h, err := adoption.HoldOf(mr); err == nil && h != nil && h.Clone != "" {
		return false
	}
	policies, ok := xp.ManagementPolicies(mr)
	may := func(actions ...string) bool {
		return !ok || slices.Contains(policies, "*") || slices.ContainsFunc(actions, func(a string) bool { return slices.Contains(policies, a) })
	}
	if mr.GetDeletionTimestamp() == nil {
		return may("Create", "Update", "Delete")
	}
	deletion, _, _ := unstructured.NestedString(mr.Object, "spec", "deletionPolicy")

	return deletion != "Orphan" && may("Delete")
}

// configOf names the account that an MR's provider uses. One in a namespace is that namespace's,
// whatever others are called.
func configOf(mr *unstructured.Unstructured) string {
	ref, _, _ := unstructured.NestedStringMap(mr.Object, "spec", "providerConfigRef")
	if ref["kind"] == "ProviderConfig" && mr.GetNamespace() != "" {
		return mr.GetNamespace() + "/" + ref["name"]
	}

	return ref["name"]
}

// identifiers are where providers say what an external resource is called everywhere.
var identifiers = []string{"arn", "selfLink", "uid", "id"} //nolint:gochecknoglobals // It is a constant list.

func identifierOf(mr *unstructured.Unstructured, field string) string {
	s, _, _ := unstructured.NestedString(mr.Object, "status", "atProvider", field)

	return s
}

// identify returns the MR of the same kind and external-name whose provider calls its external
// resource the same; nil if there is none yet. An identifier that the MR could have been named
// after says nothing.
func identify(seen map[name]*unstructured.Unstructured, n name, mr *unstructured.Unstructured) *unstructured.Unstructured {
	var found *unstructured.Unstructured
	for _, field := range identifiers {
		id := identifierOf(mr, field)
		if id == "" || id == mr.GetName() {
			continue
		}
		key := name{group: n.group, kind: n.kind, external: n.external + "\n" + field + "\n" + id}
		if other := seen[key]; other == nil {
			seen[key] = mr
		} else if found == nil {
			found = other
		}
	}

	return found
}

// severityOf says how sure it is that two MRs, which don't differ, manage the same. An
// external-name that was made of the names of both, or an identifier that does not say of which
// account it is, may be another's in another account.
func severityOf(a, b *unstructured.Unstructured) report.Severity {
	for _, field := range identifiers {
		id := identifierOf(a, field)
		if id != "" && id == identifierOf(b, field) && (field != "id" || strings.ContainsAny(id, "/:")) {
			return report.Grave
		}
	}
	if configOf(a) != configOf(b) || isOwnName(a) && isOwnName(b) {
		return report.Warning
	}

	return report.Grave
}

// differ reports whether two MRs with one external-name manage different things all the same: their
// providers call them differently, or they are in different places.
func differ(a, b *unstructured.Unstructured) bool {
	for _, field := range identifiers {
		if of, other := identifierOf(a, field), identifierOf(b, field); of != "" && other != "" && of != other {
			return true
		}
	}
	of, _, _ := unstructured.NestedMap(a.Object, "spec", "forProvider")
	other, _, _ := unstructured.NestedMap(b.Object, "spec", "forProvider")

	return differIn(of, other)
}

// differIn compares the fields that both have and that say where something is, or what it belongs
// to. What is in both places is the same.
func differIn(a, b map[string]any) bool {
	for field, of := range a {
		other, both := b[field]
		if !both {
			continue
		}
		switch of := of.(type) {
		case string:
			if s, ok := other.(string); ok && s != of && isPlace(field) {
				return true
			}
		case map[string]any:
			m, ok := other.(map[string]any)
			if ok && (strings.HasSuffix(field, "Ref") || field == "manifest" || field == "metadata") && differIn(of, m) {
				return true
			}
		}
	}

	return false
}

// isPlace reports whether a field says where an external resource is, what it belongs to, or which
// of several of one name it is.
func isPlace(field string) bool {
	switch field {
	case "name", "namespace", "region", "location", "zone", "project", "type", "kind", "apiVersion", "host", "cluster", "scope", "path", "owner", "organization",
		"repository", "database", "schema", "table", "user", "role", "group", "realm", "parent", "bucket", "key":
		return true
	}

	return slices.ContainsFunc([]string{"Name", "Id", "ID", "Arn", "ARN", "Namespace", "Link", "Uri", "URL", "Url"}, func(suffix string) bool {
		return strings.HasSuffix(field, suffix)
	})
}

// isOwnName reports whether an MR's external-name may have been made of its own.
func isOwnName(mr *unstructured.Unstructured) bool {
	return mr.GetAnnotations()[xp.AnnotationExternalName] == mr.GetName()
}

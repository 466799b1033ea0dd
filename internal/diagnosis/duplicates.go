package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A name identifies an external resource, though not always uniquely: many names are unique in a
// region or in a parent only.
type name struct {
	group, kind, config, external string
}

// maxShared is the number of MRs with one external-name from which on the name is not meant to be
// unique (such as a subnet "default"). Then only the provider's identifiers are compared. It also
// bounds the number of comparisons.
const maxShared = 16

// checkDuplicates finds MRs that manage the same external resource.
func (d *diagnosis) checkDuplicates() {
	named, identified := map[name][]*unstructured.Unstructured{}, map[name]*unstructured.Unstructured{}
	for _, mr := range fullObjects(d.with(isManaged | isNew)) {
		external := mr.GetAnnotations()[xp.AnnotationExternalName]
		if external == "" || !changesOutside(mr) {
			continue
		}
		n := name{group: xp.GroupFamily(mr.GroupVersionKind().Group), kind: mr.GetKind(), config: configOf(mr), external: external}
		duplicate := identify(identified, n, mr)
		if duplicate != nil && differ(mr, duplicate) {
			duplicate = nil
		}
		if others := named[n]; len(others) < maxShared {
			named[n] = append(others, mr)
			at := slices.IndexFunc(others, func(other *unstructured.Unstructured) bool { return !differ(mr, other) })
			if duplicate == nil && at >= 0 && !haveOwnNames(mr, others[at]) {
				duplicate = others[at]
			}
		}
		if duplicate != nil {
			d.addDuplicate(mr, duplicate)
		}
	}
}

func (d *diagnosis) addDuplicate(mr, other *unstructured.Unstructured) {
	severity, manages := report.Error, "manages"
	if !areSame(mr, other) {
		severity, manages = report.Warning, "may manage"
	}
	why := fmt.Sprintf("it %s the same external resource as %s: both have the external-name %s", manages, xp.String(other),
		xp.Annotation(mr, xp.AnnotationExternalName))
	d.add(reason.Duplicated, severity, xp.RefTo(mr), why,
		`decide which of the two manages it, set managementPolicies: ["Observe"] on the other, and then delete that`, xp.RefTo(other))
}

// haveOwnNames reports whether the external-names of two MRs may come from their own names, and their
// providers have not given both one id. Object names are unique in a namespace only.
func haveOwnNames(a, b *unstructured.Unstructured) bool {
	id := identifierOf(a, "id")

	return isOwnName(a) && isOwnName(b) && (id == "" || id != identifierOf(b, "id"))
}

// changesOutside reports whether an MR's provider may change or delete its external resource. A
// copy is held and reported with its hold.
func changesOutside(mr *unstructured.Unstructured) bool {
	if h, err := hold.Of(mr); err == nil && h != nil && h.Clone != "" {
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

// configOf returns the name of an MR's ProviderConfig, which stands for the account.
func configOf(mr *unstructured.Unstructured) string {
	ref := xp.Strings(mr.Object, "spec", "providerConfigRef")
	if ref["kind"] == "ProviderConfig" && mr.GetNamespace() != "" {
		return mr.GetNamespace() + "/" + ref["name"]
	}

	return ref["name"]
}

// identifiers are the fields of status.atProvider in which providers store a global identifier.
var identifiers = []string{"arn", "selfLink", "uid", "id"} //nolint:gochecknoglobals // It is a constant.

func identifierOf(mr *unstructured.Unstructured, field string) string {
	s, _, _ := unstructured.NestedString(mr.Object, "status", "atProvider", field)

	return s
}

// identify returns the MR with the same kind, external-name and provider identifier; nil if there
// is none yet. An identifier equal to the MR's name proves nothing.
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

// areSame reports whether it is certain that two MRs, which differ in no place, manage the same
// resource. Two external-names made of the MRs' names, or identifiers without an account, can be
// from different accounts.
func areSame(a, b *unstructured.Unstructured) bool {
	return configOf(a) == configOf(b) && (!isOwnName(a) || !isOwnName(b)) || slices.ContainsFunc(identifiers, func(field string) bool {
		id := identifierOf(a, field)

		return id != "" && id == identifierOf(b, field) && (field != "id" || strings.ContainsAny(id, "/:"))
	})
}

// differ reports whether two MRs with one external-name manage different resources: their
// identifiers or their places differ.
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

// differIn compares the fields that both have and that name a place or a parent.
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

// isPlace reports whether a field states where an external resource is, what it belongs to, or
// which of several with one name it is.
func isPlace(field string) bool {
	exact := []string{
		"name", "namespace", "region", "location", "zone", "project", "type", "kind", "apiVersion", "host", "cluster", "scope", "path", "owner", "organization",
		"repository", "database", "schema", "table", "user", "role", "group", "realm", "parent", "bucket", "key",
	}
	suffixes := []string{"Name", "Id", "ID", "Arn", "ARN", "Namespace", "Link", "Uri", "URL", "Url"}

	return slices.Contains(exact, field) || slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(field, suffix) })
}

// isOwnName reports whether an MR's external-name may come from its own name.
func isOwnName(mr *unstructured.Unstructured) bool {
	return mr.GetAnnotations()[xp.AnnotationExternalName] == mr.GetName()
}

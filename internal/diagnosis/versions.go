package diagnosis

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Versions returns the Crossplane versions that can run the objects, the installed packages, and
// the kinds of the XRDs.
func (o *Objects) Versions() []report.Version {
	versions := []report.Version{{Name: "Crossplane", Version: o.crossplane()}}
	if i := o.RanOn(); i.Version != "" {
		versions = append(versions, report.Version{Name: "Crossplane that ran", Version: i.Version})
	}
	for _, u := range fullObjects(o.with(isPlatform)) {
		switch {
		case u.GroupVersionKind().Group == xp.GroupPackage:
			image, _, _ := unstructured.NestedString(u.Object, "spec", "package")
			versions = append(versions, report.Version{Name: xp.String(u), Version: image})
		case xp.IsDefinition(u):
			versions = append(versions, report.Version{Name: "XRD " + u.GetName(), Version: definedKinds(u)})
		}
	}

	return versions
}

// crossplane returns the versions of Crossplane that can run the objects, and why others cannot.
func (o *Objects) crossplane() string {
	var old, modern []string
	for _, u := range o.with(isNative | isModern) {
		switch {
		case u.is(isNative):
			old = append(old, u.String()+" composes without a pipeline")
		case u.is(isModern):
			modern = append(modern, u.String()+" has the schema of v2")
		}
	}
	switch {
	case len(old) > 0 && len(modern) > 0:
		return fmt.Sprintf("no version runs all of it: %s; %s", firstOf(old), firstOf(modern))
	case len(old) > 0:
		return "v1 only: " + firstOf(old)
	case len(modern) > 0:
		return "v2 only: " + firstOf(modern)
	default:
		return "v1 or v2"
	}
}

func firstOf(list []string) string {
	if more := len(list) - 1; more > 0 {
		return fmt.Sprintf("%s, and %d more", list[0], more)
	}

	return list[0]
}

// definedKinds describes the kinds, versions and scope of an XRD.
func definedKinds(xrd *unstructured.Unstructured) string {
	var kinds, served []string
	for _, k := range xp.DefinitionKinds(xrd) {
		kinds = append(kinds, k.Kind)
	}
	versions, _, _ := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	for _, v := range versions {
		m, _ := v.(map[string]any)
		if name, _ := m["name"].(string); m["served"] == true {
			served = append(served, name)
		}
	}

	return fmt.Sprintf("%s in %s, %s scope", strings.Join(kinds, " and "), strings.Join(served, ", "), xp.ScopeOf(xrd))
}

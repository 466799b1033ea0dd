package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// AddRetired says that the API server does not serve a kind in a version, and in which it does. An
// object is the same in each.
func (s *Snapshot) AddRetired(version, served schema.GroupVersionKind) {
	if s.retired[version] == served {
		return
	}
	s.invalidateAll()
	s.retired[version] = served
}

// served returns the kind of what r names in the version in which it is served, if it is known to
// be in another than r says.
func (s *Snapshot) served(r xp.Ref) schema.GroupVersionKind {
	gvk := r.GroupVersionKind()
	if served, ok := s.retired[gvk]; ok {
		return served
	}

	return gvk
}

// checkVersions waits until the XR names what it composes in versions that are served: Crossplane
// reads each in the version of the reference, and reconciles nothing of the XR if there is none
// (crossplane internal/controller/apiextensions/composite, ObserveComposedResources). That it could
// not when it was backed up is as it was.
func (t *tree) checkVersions() {
	if t.hold.Failing != "" {
		return
	}
	refs, err := t.xr.ResourceRefs()
	if err != nil {
		return // checkRefs says so.
	}
	for _, r := range refs {
		served := t.snapshot.served(r)
		if served == r.GroupVersionKind() || !t.snapshot.Has(r) {
			continue
		}
		xr := xp.RefTo(t.xr.Unstructured)
		edit := xp.NewCommand("kubectl", "edit").On(xr.GroupVersionKind().GroupKind().String(), xr.Name)
		if xr.Namespace != "" {
			edit = edit.With("--namespace", xr.Namespace)
		}
		claim := ""
		if c, ok := t.xr.ClaimRef(); ok {
			claim = ", and before that in that of its claim " + c.String() + ", which Crossplane writes onto its XR"
		}
		t.wait(false, "%s: %s names it as %s, which is not served any more, and Crossplane reads it by that name; write %s there, and in its "+
			"compositionRevisionRef the name of a revision of its Composition that has that too%s: %s",
			r, xp.String(t.xr.Unstructured), r.APIVersion, served.GroupVersion(), claim, edit)
	}
}

// checkComposition waits for a revision of a Composition that is for the version in which
// Crossplane reads the XR: it runs no other (crossplane
// internal/controller/apiextensions/composite, APIConfigurator). That it could not when it was
// backed up is as it was.
func (t *tree) checkComposition(revision *unstructured.Unstructured) {
	xrd := t.snapshot.definitionOf(t.xr.GroupVersionKind().GroupKind())
	if xrd == nil || t.hold.Failing != "" {
		return
	}
	of, _, _ := unstructured.NestedString(revision.Object, "spec", "compositeTypeRef", "apiVersion")
	reads := xp.Referenced(xrd)
	if of == "" || reads == "" || of == reads {
		return
	}
	first, claim := "", ""
	if c, ok := t.xr.ClaimRef(); ok {
		first, claim = " of its claim "+c.String()+" and then", ", and that version into its claimRef"
	}
	t.wait(false, "CompositionRevision %s: it is for %s, and Crossplane reads %s as %s, to which the XRD %s refers; write a Composition for that, with the "+
		"same resources, into the compositionRef%s of the XR, and a revision of it into compositionRevisionRef%s, or have the XRD refer to %s again",
		revision.GetName(), of, xp.String(t.xr.Unstructured), reads, xrd.GetName(), first, claim, of)
}

package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// AddRetired records an unserved version of a kind, and a served one. Objects are the same in both.
func (s *Snapshot) AddRetired(version, served schema.GroupVersionKind) {
	if s.retired[version] == served {
		return
	}
	s.invalidateAll()
	s.retired[version] = served
}

// served returns the kind of r, in its served version if that is known to be another.
func (s *Snapshot) served(r xp.Ref) schema.GroupVersionKind {
	gvk := r.GroupVersionKind()
	if served, ok := s.retired[gvk]; ok {
		return served
	}

	return gvk
}

// checkVersions waits until the XR lists its composed resources in served versions. Crossplane
// reads each in the version of the reference, and if that is not served does not reconcile the XR
// (crossplane internal/controller/apiextensions/composite, ObserveComposedResources). It does not
// wait if the XR failed in the backup.
func (t *tree) checkVersions() {
	if t.hold.Failing != "" {
		return
	}
	refs, err := t.xr.ResourceRefs()
	if err != nil {
		return // checkRefs reports it.
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

// checkComposition waits for a CompositionRevision of the version in which Crossplane reads the XR,
// since it runs no other (crossplane internal/controller/apiextensions/composite, APIConfigurator).
// It does not wait if the XR failed in the backup.
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

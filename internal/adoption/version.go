package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
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
			claim = ", before that into that of its claim " + c.String() + ", since Crossplane copies it"
		}
		t.waitFor(r, false, reason.VersionNotServed.Messagef("%s: the resourceRefs of %s have it as %s, which is not served. Write %s there, and into "+
			"compositionRevisionRef a revision of its Composition with that version%s: %s",
			r, xp.String(t.xr.Unstructured), r.APIVersion, served.GroupVersion(), claim, edit))
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
	t.wait(false, reason.RevisionNotCompatible.Messagef("CompositionRevision %s: it is for %s, and Crossplane reads %s as %s, as the XRD %s says. Write a "+
		"Composition "+
		"for that, with the same resources, into the compositionRef%s of the XR, and its revision into compositionRevisionRef%s, or make the XRD refer to %s again",
		revision.GetName(), of, xp.String(t.xr.Unstructured), reads, xrd.GetName(), first, claim, of))
}

package adoption

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// sharedKey returns the key of an object in Snapshot.shared: planning finds XRDs by what they define,
// active FunctionRevisions by their Function, and CompositionRevisions by their Composition. ok is
// false for any other object.
func sharedKey(u *unstructured.Unstructured) (key xp.ID, ok bool) {
	switch gk := u.GroupVersionKind().GroupKind(); gk {
	case xp.KindDefinition.GroupKind():
		return xp.ID{Kind: gk.Kind}, true
	case xp.KindFunctionRevision.GroupKind():
		return xp.ID{Kind: gk.Kind, Name: xp.Label(u, xp.LabelPackage)}, xp.IsActive(u)
	case xp.KindRevision.GroupKind():
		return xp.ID{Kind: gk.Kind, Name: xp.Label(u, xp.LabelCompositionName)}, true
	default:
		return xp.ID{}, false
	}
}

// AddedAll records that all objects of a kind were added: others do not exist.
func (s *Snapshot) AddedAll(gk schema.GroupKind) {
	s.whole[gk] = true
	s.invalidateAll()
}

// PlatformNeeds returns the kinds of which all objects must be observed to find out whether
// Crossplane can reconcile the XRs that are about to be unpaused, and which revision it chooses for
// XRs that select one; none if there is no such XR.
func (s *Snapshot) PlatformNeeds() []schema.GroupVersionKind {
	needs, revisions := map[schema.GroupVersionKind]bool{}, map[xp.Ref]bool{}
	for _, f := range s.observed {
		if f.selects && f.hold != nil && f.hold.Pinned {
			needs[xp.KindRevision] = true
		}
		if !f.isAboutToRun() {
			continue
		}
		needs[xp.KindDefinition], revisions[f.revision] = true, true
		if len(f.hold.Environments) > 0 {
			needs[xp.KindEnvironment] = true
		}
	}
	for r := range revisions {
		if revision := s.Get(r); revision != nil && len(xp.Functions(revision)) > 0 {
			needs[xp.KindFunction], needs[xp.KindFunctionRevision] = true, true
		}
	}

	return slices.SortedFunc(maps.Keys(needs), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
}

// isAboutToRun reports whether an object is a held XR that the plugin unpauses when it is adopted.
func (f *observedObject) isAboutToRun() bool {
	return f.composite && f.paused && f.err == nil && f.hold != nil && f.hold.Clone == "" && !f.hold.OwnPause()
}

// checkPlatform waits until Crossplane can reconcile the XR. Before that each reconcile fails, and
// one that succeeds in part can delete composed resources.
func (t *tree) checkPlatform() {
	t.checkDefinitions()
	t.checkEnvironments()
	revision := t.snapshot.Get(revisionRef(t.xr))
	if !t.hold.Pinned || revision == nil {
		return // Another check reports what is missing.
	}
	t.checkPipeline(revision)
	t.checkRequired(revision)
}

// checkRequired waits until the XR's revision has what its steps require in the backup. An older
// Crossplane silently drops fields that it does not know, and a function that gets less can leave
// out composed resources. It ignores a revision that a user has chosen since.
func (t *tree) checkRequired(revision *unstructured.Unstructured) {
	if revision.GetName() != t.hold.Revision {
		return
	}
	has := xp.Required(revision)
	lost := slices.DeleteFunc(slices.Clone(t.hold.Required), func(r string) bool { return slices.Contains(has, r) })
	if len(lost) == 0 {
		return
	}
	t.wait(false, reason.RequirementsLost.Messagef("CompositionRevision %s: this Crossplane has dropped what its pipeline requires: %s. Delete the revision, "+
		"upgrade Crossplane and restore again, or write a Composition that does not require it, and its revision into compositionRevisionRef%s of %s",
		revision.GetName(), strings.Join(lost, ", "), t.ofClaim(), xp.String(t.xr.Unstructured)))
}

// ofClaim returns where to write a revision before the XR, for a message; "" for an XR without a claim.
func (t *tree) ofClaim() string {
	c, ok := t.xr.ClaimRef()
	if !ok {
		return ""
	}

	return " of its claim " + c.String() + " and then"
}

// checkPipeline waits until Crossplane can run a revision and its pipeline.
func (t *tree) checkPipeline(revision *unstructured.Unstructured) {
	t.checkComposition(revision)
	for _, name := range xp.Functions(revision) {
		t.checkFunction(name)
	}
	// Crossplane v2 checks this when a Function changes, and refuses to reconcile without it.
	if c, ok := xp.ConditionOf(revision, xp.ConditionValidPipeline); ok && c.Status != "True" {
		t.wait(false, reason.PipelineNotValid.Messagef("CompositionRevision %s: its pipeline is not valid: %s. Install Functions with the capabilities that it needs",
			revision.GetName(), c.Message))
	}
}

// checkEnvironments waits for the EnvironmentConfigs of the backup that the XR's pipeline names. A
// function that can do without one may leave out composed resources.
func (t *tree) checkEnvironments() {
	if !t.snapshot.whole[xp.KindEnvironment.GroupKind()] {
		return
	}
	for _, name := range t.hold.Environments {
		r := xp.Ref{APIVersion: xp.KindEnvironment.GroupVersion().String(), Kind: xp.KindEnvironment.Kind, Name: name}
		if t.snapshot.Get(r) == nil {
			t.waitFor(r, false, reason.EnvironmentConfigMissing.Messagef("%s: the pipeline reads it, and it is not in the cluster. Restore or create it", r))
		}
	}
}

// checkDefinitions waits for the XR's XRD, and until no XRD of a composed XR is being deleted.
func (t *tree) checkDefinitions() {
	own := t.xr.GroupVersionKind().GroupKind()
	switch xrd := t.snapshot.definitionOf(own); {
	case xrd == nil && t.snapshot.whole[xp.KindDefinition.GroupKind()]:
		t.wait(false, reason.XRDMissing.Messagef("%s: no XRD in the cluster defines it. Restore the XRD, or install the package that has it", own))
	case xrd == nil: // If no controller reconciles the XR, that is reported without it.
	case xrd.GetDeletionTimestamp() != nil:
		t.wait(false, reason.XRDTerminating.Messagef("%s: %s, and restore this again if it is gone", xp.String(t.xr.Unstructured), xp.XRDTerminating(xrd)))
	default:
		if c, ok := xp.ConditionOf(xrd, xp.ConditionEstablished); !ok || c.Status != "True" {
			t.wait(false, reason.XRDNotEstablished.Messagef("XRD %s: it is not Established%s. Check that Crossplane runs", xrd.GetName(), conditionText(c)))
		}
	}
	checked := map[schema.GroupKind]bool{own: true}
	for _, r := range t.hold.Refs {
		gk := r.GroupVersionKind().GroupKind()
		if checked[gk] {
			continue
		}
		checked[gk] = true
		if xrd := t.snapshot.definitionOf(gk); xrd != nil && xrd.GetDeletionTimestamp() != nil {
			t.wait(false, reason.XRDTerminating.Messagef("%s, which it composes: %s", gk, xp.XRDTerminating(xrd)))
		}
	}
}

func (s *Snapshot) definitionOf(gk schema.GroupKind) *unstructured.Unstructured {
	for _, xrd := range s.shared[xp.ID{Kind: xp.KindDefinition.Kind}] {
		if xp.Defines(xrd, gk) {
			return xrd
		}
	}

	return nil
}

// checkFunction waits for what Crossplane needs to call a Function (crossplane internal/xfn): an
// active revision with an endpoint. It waits for Healthy only if the condition exists: a Function
// that runs outside the package manager has none.
func (t *tree) checkFunction(name string) {
	function := t.snapshot.Get(xp.Ref{APIVersion: xp.KindFunction.GroupVersion().String(), Kind: xp.KindFunction.Kind, Name: name})
	if function == nil {
		if t.snapshot.whole[xp.KindFunction.GroupKind()] {
			t.wait(false, reason.FunctionNotInstalled.Messagef("Function %s: the pipeline of %s calls it, and it is not installed. Install "+
				"it", name, xp.String(t.xr.Unstructured)))
		}

		return
	}
	revisions := t.snapshot.shared[xp.ID{Kind: xp.KindFunctionRevision.Kind, Name: name}]
	for _, u := range slices.Concat([]*unstructured.Unstructured{function}, revisions) {
		for _, condition := range []string{xp.ConditionHealthy, xp.ConditionRevisionHealthy, xp.ConditionRuntimeHealthy} {
			if c, ok := xp.ConditionOf(u, condition); ok && c.Status != "True" {
				t.wait(false, reason.FunctionNotHealthy.Messagef("Function %s: it is not Healthy%s. See what its package needs", name, conditionText(c)))

				return
			}
		}
	}
	switch {
	case !t.snapshot.whole[xp.KindFunctionRevision.GroupKind()]:
	case len(revisions) == 0:
		t.wait(false, reason.FunctionNotActive.Messagef("Function %s: it has no active revision. Activate one", name))
	case xp.Endpoint(revisions[0]) == "":
		t.wait(false, reason.FunctionNotRunning.Messagef("Function %s: its active revision %s has no endpoint yet. Check that its Deployment "+
			"runs", name, revisions[0].GetName()))
	}
}

// conditionText returns the reason and message of a condition, in parentheses.
func conditionText(c xp.Condition) string {
	why := strings.TrimSpace(c.Reason + " " + c.Message)
	if why == "" {
		return ""
	}

	return " (" + why + ")"
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
	first, claim := t.ofClaim(), ""
	if first != "" {
		claim = ", and that version into its claimRef"
	}
	t.wait(false, reason.RevisionNotCompatible.Messagef("CompositionRevision %s: it is for %s, and Crossplane reads %s as %s, as the XRD %s says. Write a "+
		"Composition for that, with the same resources, into the compositionRef%s of the XR, and its revision into compositionRevisionRef%s, or make the XRD "+
		"refer to %s again", revision.GetName(), of, xp.String(t.xr.Unstructured), reads, xrd.GetName(), first, claim, of))
}

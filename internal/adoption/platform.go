package adoption

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A platform is what all XRs share, as observed.
type platform struct {
	definitions []*unstructured.Unstructured
	// functions are the active revisions, by the name of their Function.
	functions map[string][]*unstructured.Unstructured
	// revisions are the CompositionRevisions, by the name of their Composition.
	revisions map[string][]*unstructured.Unstructured
	// whole are the kinds of which all objects were added.
	whole map[schema.GroupKind]bool
}

// add indexes an object that planning finds by more than its name.
func (p *platform) add(u *unstructured.Unstructured) {
	switch {
	case xp.IsDefinition(u):
		p.definitions = append(p.definitions, u)
	case u.GroupVersionKind().GroupKind() == xp.KindFunctionRevision.GroupKind() && xp.IsActive(u):
		if p.functions == nil {
			p.functions = map[string][]*unstructured.Unstructured{}
		}
		name := u.GetLabels()[xp.LabelPackage]
		p.functions[name] = append(p.functions[name], u)
	case xp.IsRevision(u):
		if p.revisions == nil {
			p.revisions = map[string][]*unstructured.Unstructured{}
		}
		name := u.GetLabels()[xp.LabelCompositionName]
		p.revisions[name] = append(p.revisions[name], u)
	}
}

// remove is the reverse of add.
func (p *platform) remove(u *unstructured.Unstructured) {
	same := func(o *unstructured.Unstructured) bool { return o == u }
	switch name := u.GetLabels(); {
	case xp.IsDefinition(u):
		p.definitions = slices.DeleteFunc(p.definitions, same)
	case u.GroupVersionKind().GroupKind() == xp.KindFunctionRevision.GroupKind():
		p.functions[name[xp.LabelPackage]] = slices.DeleteFunc(p.functions[name[xp.LabelPackage]], same)
	case xp.IsRevision(u):
		p.revisions[name[xp.LabelCompositionName]] = slices.DeleteFunc(p.revisions[name[xp.LabelCompositionName]], same)
	}
}

// AddedAll records that all objects of a kind were added: others do not exist.
func (s *Snapshot) AddedAll(gk schema.GroupKind) {
	if s.platform.whole == nil {
		s.platform.whole = map[schema.GroupKind]bool{}
	}
	s.platform.whole[gk] = true
	s.invalidateAll()
}

// PlatformNeeds returns the kinds of which all objects must be observed to find out whether
// Crossplane can reconcile the XRs that are about to be unpaused, and which revision it chooses for
// XRs that select one; none if there is no such XR.
func (s *Snapshot) PlatformNeeds() []schema.GroupVersionKind {
	var needs []schema.GroupVersionKind
	about, reading, selecting, revisions := false, false, false, map[xp.Ref]bool{}
	for _, f := range s.observed {
		selecting = selecting || f.selects && f.hold != nil && f.hold.Pinned
		if !s.isAboutToRun(f) {
			continue
		}
		about, revisions[f.revision] = true, true
		reading = reading || len(f.hold.Environments) > 0
	}
	if about {
		needs = append(needs, xp.KindDefinition)
	}
	if s.runFunctions(revisions) {
		needs = append(needs, xp.KindFunction, xp.KindFunctionRevision)
	}
	if reading {
		needs = append(needs, xp.KindEnvironment)
	}
	if selecting {
		needs = append(needs, xp.KindRevision)
	}

	return needs
}

// isAboutToRun reports whether an object is a held XR that the plugin unpauses when it is adopted.
func (s *Snapshot) isAboutToRun(f *observedObject) bool {
	return f.composite && f.paused && f.err == nil && f.hold != nil && f.hold.Clone == "" && !f.hold.ownPause()
}

// runFunctions reports whether one of the revisions has a pipeline of functions.
func (s *Snapshot) runFunctions(revisions map[xp.Ref]bool) bool {
	for r := range revisions {
		if revision := s.Get(r); revision != nil && len(xp.Functions(revision)) > 0 {
			return true
		}
	}

	return false
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
	claim := ""
	if c, ok := t.xr.ClaimRef(); ok {
		claim = " of its claim " + c.String() + " and then"
	}
	t.wait(false, reason.RequirementsLost.Messagef("CompositionRevision %s: this Crossplane has dropped what its pipeline requires: %s. Delete the revision, "+
		"upgrade Crossplane and restore again, or write a Composition that does not require it, and its revision into compositionRevisionRef%s of %s",
		revision.GetName(), strings.Join(lost, ", "), claim, xp.String(t.xr.Unstructured)))
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
	if !t.snapshot.platform.whole[xp.KindEnvironment.GroupKind()] {
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
	case xrd == nil && t.snapshot.platform.whole[xp.KindDefinition.GroupKind()]:
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
	for _, xrd := range s.platform.definitions {
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
		if t.snapshot.platform.whole[xp.KindFunction.GroupKind()] {
			t.wait(false, reason.FunctionNotInstalled.Messagef("Function %s: the pipeline of %s calls it, and it is not installed. Install "+
				"it", name, xp.String(t.xr.Unstructured)))
		}

		return
	}
	revisions := t.snapshot.platform.functions[name]
	for _, u := range append([]*unstructured.Unstructured{function}, revisions...) {
		for _, condition := range []string{xp.ConditionHealthy, xp.ConditionRevisionHealthy, xp.ConditionRuntimeHealthy} {
			if c, ok := xp.ConditionOf(u, condition); ok && c.Status != "True" {
				t.wait(false, reason.FunctionNotHealthy.Messagef("Function %s: it is not Healthy%s. See what its package needs", name, conditionText(c)))

				return
			}
		}
	}
	switch {
	case !t.snapshot.platform.whole[xp.KindFunctionRevision.GroupKind()]:
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

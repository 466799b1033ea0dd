package diagnosis

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkPlatform finds XRs whose CompositionRevision or XRD is not in the backup.
func (d *diagnosis) checkPlatform() {
	definitions := fullObjects(d.with(isDefinition))
	for _, xr := range d.with(isComposite) {
		c := xp.CompositeFrom(xr.full())
		revision := xp.Ref{APIVersion: xp.GroupAPIExtensions + "/v1", Kind: "CompositionRevision", Name: c.Revision()}
		if revision.Name != "" && d.get(revision) == nil {
			d.add(reason.RevisionMissing, report.Error, xr.Ref, "it uses "+revision.String()+", which is not in the backup",
				"a restore holds it until that revision is in the cluster. Back up again with the plugin, which includes it, or put it into the cluster first")
		}
		gk := xr.GroupVersionKind().GroupKind()
		if !slices.ContainsFunc(definitions, func(xrd *unstructured.Unstructured) bool { return xp.Defines(xrd, gk) }) {
			d.add(reason.DefinitionMissing, report.Error, xr.Ref, "the XRD of its kind is not in the backup",
				"back up again with the plugin, which includes it, or apply it in the cluster before you restore")
		}
	}
}

// checkPipelineInputs finds objects that an XR's functions read besides its composed resources, and
// that the backup lacks or may lack.
func (d *diagnosis) checkPipelineInputs() {
	reported := map[xp.Ref]bool{}
	for _, xr := range d.with(isComposite) {
		r := xp.Ref{APIVersion: xp.GroupAPIExtensions + "/v1", Kind: "CompositionRevision", Name: xp.CompositeFrom(xr.full()).Revision()}
		revision := d.get(r)
		if revision == nil || reported[r] {
			continue
		}
		reported[r] = true
		reads := xp.PipelineInputsOf(revision.full())
		for _, name := range reads.Environments {
			environment := xp.Ref{APIVersion: xp.KindEnvironment.GroupVersion().String(), Kind: xp.KindEnvironment.Kind, Name: name}
			if d.get(environment) == nil && !d.IsUnread(environment) {
				d.add(reason.EnvironmentMissing, report.Warning, environment, "the pipeline of "+r.String()+" reads it, and it is not in the backup",
					"if it existed, create it in the cluster before a restore: a function that finds less can leave out composed resources, and Crossplane deletes these")
			}
		}
		if len(reads.Others) > 0 {
			d.add(reason.PipelineReads, report.Warning, r, reads.String(), "the backup can lack that. If so, create it in the cluster before a restore: "+
				"a function that finds less can leave out composed resources, and Crossplane deletes these")
		}
	}
}

// checkDefinitions finds XRDs that are being deleted. The deletion ends with the last XR.
func (d *diagnosis) checkDefinitions() {
	for _, xrd := range fullObjects(d.with(isDefinition)) {
		if deleted := xrd.GetDeletionTimestamp(); deleted != nil && (d.Now.Sub(deleted.Time) >= stuckAfter || d.hasAnyOf(xrd)) {
			d.add(reason.XRDTerminating, report.Error, xp.RefTo(xrd), "it is being deleted", xp.XRDTerminating(xrd))
		}
	}
}

// hasAnyOf reports whether an XRD has XRs or claims. Without any its deletion takes a moment only.
func (d *diagnosis) hasAnyOf(xrd *unstructured.Unstructured) bool {
	return slices.ContainsFunc(d.with(isComposite|isClaim), func(u *object) bool {
		return xp.Defines(xrd, u.GroupVersionKind().GroupKind())
	})
}

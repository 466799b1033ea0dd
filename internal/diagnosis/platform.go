package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func revisionRef(xr *object) xp.Ref {
	return xp.Ref{APIVersion: xp.GroupAPIExtensions + "/v1", Kind: "CompositionRevision", Name: xp.CompositeFrom(xr.full()).Revision()}
}

// checkPlatform finds XRs whose CompositionRevision or XRD is not in the backup.
func (d *diagnosis) checkPlatform() {
	definitions := fullObjects(d.ofKind(xp.KindDefinition.GroupKind()))
	for _, xr := range d.with(isComposite) {
		if revision := revisionRef(xr); revision.Name != "" && d.get(revision) == nil {
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

// checkPipelineInputs finds what functions read and the backup lacks or may lack.
func (d *diagnosis) checkPipelineInputs() {
	const create = "create it in the cluster before a restore: a function that finds less can leave out composed resources, and Crossplane deletes these"
	used := map[xp.Ref]bool{}
	for _, xr := range d.with(isComposite) {
		used[revisionRef(xr)] = true
	}
	for r := range used {
		revision := d.get(r)
		if revision == nil {
			continue
		}
		reads := xp.PipelineInputsOf(revision.full())
		for _, name := range reads.Environments {
			environment := xp.Ref{APIVersion: xp.KindEnvironment.GroupVersion().String(), Kind: xp.KindEnvironment.Kind, Name: name}
			if d.get(environment) == nil && !d.IsUnread(environment) {
				d.add(reason.EnvironmentMissing, report.Warning, environment, "the pipeline of "+r.String()+" reads it, and it is not in the backup",
					"if it existed, "+create)
			}
		}
		if len(reads.Others) > 0 {
			d.add(reason.PipelineReads, report.Warning, r, reads.String(), "the backup can lack that. If so, "+create)
		}
	}
}

// checkDefinitions finds XRDs that are being deleted. The deletion ends with the last XR.
func (d *diagnosis) checkDefinitions() {
	for _, xrd := range fullObjects(d.ofKind(xp.KindDefinition.GroupKind())) {
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

var kindCRD = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// checkActivations finds kinds of MRs that no policy in the backup activates.
func (d *diagnosis) checkActivations() {
	policies := fullObjects(d.ofKind(xp.KindActivationPolicy.GroupKind()))
	groups, kinds := map[string]bool{}, map[schema.GroupKind]bool{}
	for _, o := range d.with(isManaged | isNew) {
		gk := o.GroupVersionKind().GroupKind()
		groups[gk.Group], kinds[gk] = true, true
	}
	for _, o := range d.ofKind(kindCRD) {
		// Crossplane gives a CRD the name of its MRD, so the name includes the group.
		if _, group, _ := strings.Cut(o.Name, "."); !groups[group] {
			continue
		}
		crd := o.full()
		name, defined := definedBy(crd)
		r := xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: name}
		if !defined || !kinds[xp.ManagedKind(crd)] || d.IsUnread(r) ||
			slices.ContainsFunc(policies, func(u *unstructured.Unstructured) bool { return xp.Activates(u, name) }) {
			continue
		}
		why := "no ManagedResourceActivationPolicy in the backup activates it, and a restore does not change an existing one"
		if d.get(r) == nil {
			why = "managed resources in the backup need it, and the backup has neither it nor a ManagedResourceActivationPolicy that activates it"
		}
		d.add(reason.NotActivated, report.Warning, r, why,
			"if its provider has the capability safe-start, make sure that it is active in the cluster that you restore into, or "+xp.HowToActivate(name))
	}
}

// definedBy returns the name of the MRD that owns a CRD.
func definedBy(crd *unstructured.Unstructured) (name string, ok bool) {
	for _, o := range crd.GetOwnerReferences() {
		if o.Kind == xp.KindManagedDefinition.Kind && strings.HasPrefix(o.APIVersion, xp.GroupAPIExtensions+"/") {
			return o.Name, true
		}
	}

	return "", false
}

// Versions returns the Crossplane versions that can run the objects, the packages and the XRDs.
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
	old, modern := firstOf(o.with(isNative), "composes without a pipeline"), firstOf(o.with(isModern), "has the schema of v2")
	switch {
	case old != "" && modern != "":
		return "no version runs all of it: " + old + "; " + modern
	case old != "":
		return "v1 only: " + old
	case modern != "":
		return "v2 only: " + modern
	default:
		return "v1 or v2"
	}
}

func firstOf(objects []*object, what string) string {
	switch n := len(objects); n {
	case 0:
		return ""
	case 1:
		return objects[0].String() + " " + what
	default:
		return fmt.Sprintf("%s %s, and %d more", objects[0], what, n-1)
	}
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

// Defects returns a warning for each known defect of the Crossplane version in a cluster, or of the
// one where a backup was made. An unknown version has none. unserved is true if the cluster lacks a
// kind that something needs.
func Defects(of Subject, i adoption.Installation, unserved bool) []report.Problem {
	problems := make([]report.Problem, 0, 1)
	for _, d := range i.Defects(unserved) {
		why, next := "Crossplane "+i.Version+" "+d.What, "upgrade Crossplane to "+d.Before+" or later"
		if of == Backup {
			why, next = "the source cluster ran Crossplane "+i.Version+", which "+d.What, "restore into "+d.Before+" or later"
		} else if d.Until != "" {
			next += "; until then " + d.Until
		}
		problems = append(problems, report.Problem{Code: reason.KnownDefect, Severity: report.Warning, Object: i.Ref(), Reason: why, Next: next})
	}

	return problems
}

// LacksComposed reports whether an XR composes a kind that is not served, unless it is inactive.
func (o *Objects) LacksComposed(s ClusterState) bool {
	return slices.ContainsFunc(o.Composed(), func(gvk schema.GroupVersionKind) bool {
		return o.unserved[gvk.GroupKind()] && s.inactive(gvk.GroupKind()) == ""
	})
}

// RanOn returns the Crossplane whose Deployment is among the objects, if any.
func (o *Objects) RanOn() adoption.Installation {
	deployments := fullObjects(o.ofKind(adoption.KindDeployment.GroupKind()))

	return adoption.FindInstallation(slices.DeleteFunc(deployments, func(u *unstructured.Unstructured) bool { return !adoption.IsOfCrossplane(u) }))
}

// PluginMissing returns the warning about a Velero server without this plugin.
func PluginMissing(server xp.Ref) report.Problem {
	return report.Problem{
		Code: reason.PluginMissing, Severity: report.Warning, Object: server,
		Reason: "no init container of Velero's server brings this plugin, so Velero restores without holds, and external resources can be created twice or deleted",
		Next:   "add it before the next backup or restore, as docs/install.md shows",
	}
}

// LabelGuard is on the policy of example/gitops/guard.yaml and on its binding.
const LabelGuard = "velero.crossplane.x-k8s.io/guard"

// KindGuard is the kind of the policy.
var KindGuard = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"}

// GuardUp returns the warning about such a policy that is still there.
func GuardUp(policy *unstructured.Unstructured) report.Problem {
	return report.Problem{
		Code: reason.GuardUp, Severity: report.Warning, Object: xp.RefTo(policy),
		Reason: "only Velero and Crossplane can create claims and XRs since " + policy.GetCreationTimestamp().UTC().Format(time.RFC3339),
		Next: "when everything restored is adopted: " + xp.NewCommand("kubectl", "delete", "validatingadmissionpolicies,validatingadmissionpolicybindings").
			Word("-l").Word(LabelGuard).String(),
	}
}

package backupitem

import (
	"context"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/externalname"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// identify warns of an MR whose external resource is not known for sure. If its external-name
// follows from the ID in its status, it writes that onto the stored copy. The live MR is for its
// owner to correct.
func (t *Tree) identify(ctx context.Context, u *unstructured.Unstructured, backup *velerov1.Backup) {
	if !xp.IsManaged(u) {
		return
	}
	switch identity := xp.IdentityOf(u); identity {
	case xp.CreatePending:
		t.warnOfRisk(u, "are being created", reason.CreatePending.Messagef("is being created, so a restore of this backup holds it until a user has looked for its "+
			"external resource. Back up again when it is created. If it stays so, look for the external resource in the cloud, and remove its annotation %s",
			xp.AnnotationCreatePending))
	case xp.Unknown, xp.Recoverable:
		t.identifyUnnamed(ctx, u, identity, backup)
	case xp.Known:
		if xp.IsNeverObserved(u) {
			t.warnOfRisk(u, "have an external-name under which upjet has found nothing yet", reason.NotObserved.Messagef("has an external-name, and upjet has found "+
				"nothing under it yet: its status.atProvider is empty. A restore of this backup lets it only observe until its provider finds its external resource, "+
				"and creates none, unless the setting %s is false. If there is none, it stays so, and the restore names it. Back up again when it is Ready",
				setting.NameObserve))
		}
	case xp.NeverCreated:
	}
}

// identifyUnnamed is identify for an MR without an external-name that may have an external
// resource.
func (t *Tree) identifyUnnamed(ctx context.Context, u *unstructured.Unstructured, identity xp.Identity, backup *velerov1.Backup) {
	gk := u.GroupVersionKind().GroupKind()
	settings, err := t.settings(backup)
	if err != nil {
		w := unknownSetting(u, "the settings "+setting.NameFromID+" and "+setting.NameUnnamed, err, "The backup ignores them")
		w.log(t.log, w.why.About(w.of.String()))
		settings.NoneKnown = true // A setting may require it.
	}
	id, _ := xp.ProviderID(u)
	name, known := externalname.Of(gk, id, settings)
	if slices.Contains(settings.Unnamed, gk) && !name.Chosen {
		xp.SetFlag(u, xp.FieldUnnamed, true)

		return
	}
	if !known && !name.Chosen {
		name = externalname.Name{External: id, By: "for all other MRs of its kind"}
	}
	if identity == xp.Recoverable {
		t.identifyByID(ctx, u, id, name, known)

		return
	}
	if xp.MayCreate(u) {
		t.warnOfRisk(u, unnamedText, reason.IdentityMissing.Messagef("has no external-name, so its external resource is unknown. %s. If no MR of its kind ever has "+
			"one, add %s to the setting %s", unidentifiedText, gk, setting.NameUnnamed))
	}
}

// identifyByID is identifyUnnamed for an MR with an ID in its status.
func (t *Tree) identifyByID(ctx context.Context, u *unstructured.Unstructured, id string, name externalname.Name, known bool) {
	gk := u.GroupVersionKind().GroupKind()
	why := ""
	if !name.Chosen {
		if why = t.whyUntrusted(ctx, u, id, name, known); why != "" && known {
			xp.SetFlag(u, xp.FieldDoubted, true)
		}
	}
	switch {
	case why == "":
		t.warnOfRisk(u, unnamedText+", and the backup has it from their ids", reason.IdentityMissing.Messagef("has no external-name. The backup has it from "+
			"status.atProvider.id, as %s. Its provider can create a second external resource when it restarts: set its annotation %s to %s", name.By,
			xp.AnnotationExternalName, name.External))
		xp.Annotate(u, xp.AnnotationExternalName, name.External)
	case xp.MayCreate(u):
		t.warnOfRisk(u, unnamedText, reason.IdentityMissing.Messagef("has no external-name, and its status.atProvider.id %s may be another name: %s. %s. If the id "+
			"is the external-name of all MRs of its kind, add %s to the setting %s. If no MR of its kind ever has one, add it to %s", id, why, unidentifiedText, gk,
			setting.NameFromID, setting.NameUnnamed))
	}
}

const unnamedText = "have no external-name"

// unidentifiedText is what happens to an MR without a sure identity, and the next step.
const unidentifiedText = "A restore of this backup holds it, and its provider can create a second external resource when it restarts. Set its annotation " +
	xp.AnnotationExternalName + " to the name of its external resource in the cloud, and back up again"

// whyUntrusted returns why an MR's ID gives no external-name, "" if it does. All other MRs of the
// kind that have both must have matching ones. If the kind's rule is known, no others are needed.
func (t *Tree) whyUntrusted(ctx context.Context, u *unstructured.Unstructured, id string, name externalname.Name, known bool) string {
	p, err := t.resolver.peerNamesOf(ctx, u, known)
	switch {
	case err != nil:
		return "the other MRs of its kind can't be read: " + err.Error()
	case p.isTaken(id, name.External):
		return "another MR of its kind has that external-name"
	case p.nameless[id] > 1:
		return "another MR of its kind has the same id"
	case p.differ != "":
		return p.differ + " has an external-name that differs from its id"
	case !known && !p.agree:
		return "no other MR of its kind has an external-name to compare with, and the plugin has no rule for the kind"
	default:
		return ""
	}
}

// peerNames are the external-names and IDs of the MRs of a kind.
type peerNames struct {
	// nameOf returns the external-name for an ID.
	nameOf func(id string) string
	// agree means that the names of an MR match that its provider has found, and differ names an MR
	// whose names don't.
	agree  bool
	differ string
	// named has the IDs by external-name, "" for an MR without an ID.
	named map[string][]string
	// nameless has the number of MRs without an external-name, by ID.
	nameless map[string]int
}

// isTaken reports whether another MR manages the external resource. If the external-name is only a
// part of the ID, several may have it.
func (p *peerNames) isTaken(id, external string) bool {
	ids, taken := p.named[external]

	return taken && (external == id || slices.Contains(ids, id) || slices.Contains(ids, ""))
}

func (p *peerNames) add(mr *unstructured.Unstructured) {
	id, ok := xp.ProviderID(mr)
	name := mr.GetAnnotations()[xp.AnnotationExternalName]
	if name == "" {
		p.nameless[id]++

		return
	}
	ids := p.named[name]
	if id != name { // Most MRs have the same for both, and there can be very many.
		ids = append(ids, id)
	}
	p.named[name] = ids
	if !ok || xp.IdentityOf(mr) != xp.Known {
		return
	}
	switch synced, _ := xp.ConditionOf(mr, xp.ConditionSynced); {
	case p.nameOf(id) != name:
		p.differ = xp.String(mr)
	case synced.Status == "True":
		// Any user can write an external-name. Only with a correct one does the provider find
		// anything.
		p.agree = true
	}
}

// peerNamesOf reads the MRs of u's kind, once. If the kind's rule is known, it gives the
// external-name for an ID, else the ID is the name.
func (res *Resolver) peerNamesOf(ctx context.Context, u *unstructured.Unstructured, known bool) (peerNames, error) {
	gk := u.GroupVersionKind().GroupKind()
	key := listKey{GroupKind: gk, selector: "peers"}
	if known {
		key.selector = "known"
	}

	return cached(res.lists, key, func() (peerNames, error) {
		p := peerNames{named: map[string][]string{}, nameless: map[string]int{}, nameOf: func(id string) string { return id }}
		if known {
			p.nameOf = func(id string) string {
				name, _ := externalname.Known(gk, id)

				return name.External
			}
		}
		err := res.each(ctx, u.GroupVersionKind(), "", metav1.ListOptions{}, p.add)

		return p, err
	})
}

// keepConditions copies the conditions Ready and Synced of u to a trimmed copy of it, and how far a
// Pod or Job had come.
func keepConditions(trimmed, u *unstructured.Unstructured) {
	var conditions []any
	for _, t := range []string{xp.ConditionReady, xp.ConditionSynced} {
		if c, ok := xp.ConditionOf(u, t); ok {
			conditions = append(conditions, map[string]any{"type": t, "status": c.Status})
		}
	}
	if len(conditions) > 0 {
		trimmed.Object["status"] = map[string]any{"conditions": conditions}
	}
	xp.KeepProgress(trimmed, u)
}

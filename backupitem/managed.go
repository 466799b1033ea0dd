package backupitem

import (
	"context"
	"slices"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/externalname"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// identify warns of an MR whose external resource is not known for sure. If its external-name
// follows from the ID in its status, it writes that onto the stored copy. The live MR is for its
// owner to correct.
func (t *Tree) identify(ctx context.Context, u *unstructured.Unstructured, backup *velerov1.Backup) {
	if !xp.IsManaged(u) || xp.IsComposite(u) || xp.IsClaim(u) {
		return
	}
	switch identity := xp.IdentityOf(u); identity {
	case xp.CreatePending:
		t.warnOfRisk(ctx, u, nil, xp.String(u)+" is being created, so a restore of this backup will hold it and ask a person to look for its external resource. "+
			"Back up again when it is created; if it stays like that, look for the external resource yourself, and remove its annotation "+xp.AnnotationCreatePending)
	case xp.Unknown, xp.Recoverable:
		t.identifyUnnamed(ctx, u, identity, backup)
	case xp.Known:
		if xp.IsNeverObserved(u) {
			t.warnOfRisk(ctx, u, nil, xp.String(u)+" has an external-name, and upjet has not found anything under that yet: its status.atProvider is empty. "+
				"A restore of this backup lets it only observe until its provider finds its external resource, and makes none, unless the setting "+
				setting.NameObserve+" is false. If there is none it stays so, and is named. Back up again when it is Ready")
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
		gap{
			of: xp.RefTo(u), what: "the settings " + setting.NameFromID + " and " + setting.NameUnnamed,
			why: err.Error() + ". It is stored as without them. Correct the settings, then back up again",
		}.warn(t.log)
		settings.NoneKnown = true // A setting may require it.
	}
	id, _ := xp.ProviderID(u)
	name, known := externalname.Of(gk, id, settings)
	if slices.Contains(settings.Unnamed, gk) && !name.Chosen {
		xp.SetUnnamed(u)

		return
	}
	if identity == xp.Recoverable {
		t.identifyByID(ctx, u, id, name, known)

		return
	}
	if xp.MayCreate(u) {
		t.warnOfRisk(ctx, u, nil, xp.String(u)+" has no external-name, so nothing says which external resource it manages. "+unidentifiedText+
			"; or, if none of its kind ever has one, add "+gk.String()+" to the setting "+setting.NameUnnamed)
	}
}

// identifyByID is identifyUnnamed for an MR with an ID in its status.
func (t *Tree) identifyByID(ctx context.Context, u *unstructured.Unstructured, id string, name externalname.Name, known bool) {
	gk := u.GroupVersionKind().GroupKind()
	why := ""
	if !name.Chosen {
		if why = t.whyUntrusted(ctx, u, id, name, known); why != "" && known {
			xp.SetDoubted(u)
		}
		if !known {
			name = externalname.Name{External: id, By: "is true of all others of its kind"}
		}
	}
	switch {
	case why == "":
		xp.SetExternalName(u, name.External)
		t.warnOfRisk(ctx, u, logrus.Fields{"externalName": name.External}, xp.String(u)+" has no external-name; its stored copy has it from status.atProvider.id, "+
			"as "+name.By+". Its provider, when it is restarted, can make a second external resource: set its annotation "+xp.AnnotationExternalName+" to "+
			name.External)
	case xp.MayCreate(u):
		t.warnOfRisk(ctx, u, logrus.Fields{"reason": why}, xp.String(u)+" has no external-name, and that its status.atProvider.id "+id+" would be it is not known: "+
			why+". "+unidentifiedText+"; or, if the id is the external-name of all of its kind, add "+gk.String()+" to the setting "+setting.NameFromID+
			", or, if none of its kind ever has one, to "+setting.NameUnnamed)
	}
}

// unidentifiedText is what happens to an MR without a sure identity, and the next step.
const unidentifiedText = "A restore of this backup will hold it; and its provider, when it is restarted, can make a second external resource. " +
	"Set its annotation " +
	xp.AnnotationExternalName + " to what its external resource is called in the cloud, and back up again"

// whyUntrusted returns why an MR's ID gives no external-name, "" if it does. All other MRs of the
// kind that have both must have matching ones. If the kind's rule is known, no others are needed.
func (t *Tree) whyUntrusted(ctx context.Context, u *unstructured.Unstructured, id string, name externalname.Name, known bool) string {
	p, err := t.resolver.peerNamesOf(ctx, u, known)
	switch {
	case err != nil:
		return "the others of its kind can't be read: " + err.Error()
	case p.isTaken(id, name.External, known):
		return "another of its kind has that for its external-name"
	case p.nameless[id] > 1:
		return "its provider calls another of its kind the same"
	case p.differ != "":
		return p.differ + " has another external-name than its id"
	case !known && !p.agree:
		return "no other of its kind has an external-name that could tell, and it is none of the kinds of which that is known"
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
func (p *peerNames) isTaken(id, external string, known bool) bool {
	if !known {
		external = id
	}
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
	if p, ok := res.lists.Get(key); ok {
		return p.(peerNames), nil //nolint:forcetypeassert // The cache has only these.
	}
	p := peerNames{named: map[string][]string{}, nameless: map[string]int{}, nameOf: func(id string) string { return id }}
	if known {
		p.nameOf = func(id string) string {
			name, _ := externalname.Known(gk, id)

			return name.External
		}
	}
	if err := res.each(ctx, u.GroupVersionKind(), "", metav1.ListOptions{}, p.add); err != nil {
		return peerNames{}, err
	}
	res.lists.Add(key, p)

	return p, nil
}

// keepConditions copies the conditions Ready and Synced of u to a trimmed copy of it.
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
}

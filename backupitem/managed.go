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

// identify warns of an MR that nothing says for sure which external resource it manages. If it is
// known that what its provider calls that is the external-name, it writes it onto the stored copy.
// The live MR is its owner's to mend.
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

// identifyUnnamed is identify for an MR without an external-name, of which there may be an external
// resource.
func (t *Tree) identifyUnnamed(ctx context.Context, u *unstructured.Unstructured, identity xp.Identity, backup *velerov1.Backup) {
	gk := u.GroupVersionKind().GroupKind()
	settings, err := t.settings(backup)
	if err != nil {
		gap{
			of: xp.RefTo(u), what: "the settings " + setting.NameFromID + " and " + setting.NameUnnamed,
			why: err.Error() + ". It is stored as without them. Correct the settings, then back up again",
		}.warn(t.log)
		settings.NoneKnown = true // Somebody may have said so.
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

// identifyByID is identifyUnnamed for an MR that has what its provider calls its external resource.
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

// unidentifiedText is what comes of an MR without a sure identity, and what to do.
const unidentifiedText = "A restore of this backup will hold it; and its provider, when it is restarted, can make a second external resource. " +
	"Set its annotation " +
	xp.AnnotationExternalName + " to what its external resource is called in the cloud, and back up again"

// whyUntrusted returns why no external-name can be made of an MR's id, "" if one can: all others of
// the kind that have both have the one that follows from the other. If it is known how that is for
// the kind, there need not be others.
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

// peerNames are what the MRs of a kind say of the two names that each of them has.
type peerNames struct {
	// nameOf returns the external-name that follows from an id.
	nameOf func(id string) string
	// agree says that one that its provider has found has the one that follows from the other, and
	// differ names one that has not.
	agree  bool
	differ string
	// named are the external-names, and the ids of those that have one. An id is "" if there is
	// none.
	named map[string][]string
	// nameless says how many without an external-name have the id.
	nameless map[string]int
}

// isTaken reports whether another manages what the id and the external-name are of. Where the
// external-name is a part of the id only, others may have the same.
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
	if id != name { // Most have the same for both, and there can be very many.
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
		// Anybody can write an external-name; only with one that is right does the provider find
		// anything.
		p.agree = true
	}
}

// peerNamesOf reads the MRs of u's kind, once. The external-name follows from the id as it is known
// of the kind, else it is the id.
func (res *Resolver) peerNamesOf(ctx context.Context, u *unstructured.Unstructured, known bool) (peerNames, error) {
	gk := u.GroupVersionKind().GroupKind()
	key := listKey{GroupKind: gk, selector: "peers"}
	if known {
		key.selector = "known"
	}
	if p, ok := res.lists.Get(key); ok {
		return p.(peerNames), nil //nolint:forcetypeassert // Nothing else is put in.
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

// keepConditions gives a trimmed copy of u what of its status says how well it is.
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

package backupitem

import (
	"context"
	"slices"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// identify warns of an MR that nothing says for sure which external resource it manages. If it is known that what its provider calls that is the
// external-name, it writes it onto the stored copy. The live MR is its owner's to mend.
func (t *Tree) identify(ctx context.Context, u *unstructured.Unstructured, backup *velerov1.Backup) {
	if !xp.IsManaged(u) || xp.IsComposite(u) || xp.IsClaim(u) {
		return
	}
	identity := xp.IdentityOf(u)
	log := t.log.WithFields(logrus.Fields{"object": xp.String(u), "identity": string(identity)})
	switch identity { //nolint:exhaustive // The others are safe.
	case xp.InFlight:
		log.Warn(xp.String(u) + " is being created, so a restore of this backup will hold it and ask a person to look for its external resource. Back up again " +
			"when it is created; if it stays like that, look for the external resource yourself, and remove its annotation " + xp.AnnotationCreatePending)
	case xp.Unknown, xp.Recoverable:
		t.identifyUnnamed(ctx, u, identity, backup)
	}
}

// identifyUnnamed is identify for an MR without an external-name, of which there may be an external resource.
func (t *Tree) identifyUnnamed(ctx context.Context, u *unstructured.Unstructured, identity xp.Identity, backup *velerov1.Backup) {
	gk := u.GroupVersionKind().GroupKind()
	settings, err := t.settings(backup)
	if err != nil {
		gap{
			of: xp.RefTo(u), what: "the settings " + setting.NameFromID + " and " + setting.NameUnnamed,
			why: err.Error() + ". It is stored as without them. Correct the settings, then back up again",
		}.warn(t.log)
	}
	id, _ := xp.ProviderID(u)
	log := t.log.WithFields(logrus.Fields{"object": xp.String(u), "identity": string(identity)})
	fromID := slices.Contains(settings.FromID, gk)
	why := ""
	switch {
	case slices.Contains(settings.Unnamed, gk) && !fromID:
		xp.SetUnnamed(u)

		return
	case identity == xp.Recoverable && !fromID:
		why = t.mistrust(ctx, u, id)
	}
	switch {
	case identity == xp.Recoverable && why == "":
		xp.SetExternalName(u, id)
		log.WithField("externalName", id).Warn(xp.String(u) + " has no external-name; its stored copy has it from status.atProvider.id. Its provider, when it is " +
			"restarted, can make a second external resource: set its annotation " + xp.AnnotationExternalName + " to " + id)
	case !xp.MayCreate(u):
	case identity == xp.Recoverable:
		log.WithField("reason", why).Warn(xp.String(u) + " has no external-name, and that its status.atProvider.id " + id + " would be it is not known: " + why +
			". " + unidentified + "; or, if the id is the external-name of all of its kind, add " + gk.String() + " to the setting " + setting.NameFromID +
			", or, if none of its kind ever has one, to " + setting.NameUnnamed)
	default:
		log.Warn(xp.String(u) + " has no external-name, so nothing says which external resource it manages. " + unidentified + "; or, if none of its kind ever has " +
			"one, add " + gk.String() + " to the setting " + setting.NameUnnamed)
	}
}

// unidentified is what comes of an MR without a sure identity, and what to do.
const unidentified = "A restore of this backup will hold it; and its provider, when it is restarted, can make a second external resource. Set its annotation " +
	xp.AnnotationExternalName + " to what its external resource is called in the cloud, and back up again"

// mistrust tells why the id of an MR can't be taken for its external-name, "" if it can: all others of the kind that have both have the same for both.
func (t *Tree) mistrust(ctx context.Context, u *unstructured.Unstructured, id string) string {
	p, err := t.links.peersOf(ctx, u)
	if err != nil {
		return "the others of its kind can't be read: " + err.Error()
	}
	switch {
	case p.named[id]:
		return "another of its kind has that for its external-name"
	case p.differ != "":
		return p.differ + " has another external-name than its id"
	case !p.agree:
		return "no other of its kind has an external-name that could tell"
	default:
		return ""
	}
}

// peers are what the MRs of a kind say of the two names that each of them has.
type peers struct {
	// agree says that one that its provider has found has the same for both, and differ names one that has not.
	agree  bool
	differ string
	// named are the external-names.
	named map[string]bool
}

func (p *peers) add(mr *unstructured.Unstructured) {
	id, ok := xp.ProviderID(mr)
	name := mr.GetAnnotations()[xp.AnnotationExternalName]
	p.named[name] = true
	if !ok || name == "" || xp.IdentityOf(mr) != xp.Named {
		return
	}
	switch synced, _ := xp.ConditionOf(mr, xp.ConditionSynced); {
	case id != name:
		p.differ = xp.String(mr)
	case synced.Status == "True":
		// Anybody can write an external-name; only with one that is right does the provider find anything.
		p.agree = true
	}
}

// peersOf reads the MRs of u's kind, once.
func (l *Links) peersOf(ctx context.Context, u *unstructured.Unstructured) (peers, error) {
	key := shelf{GroupKind: u.GroupVersionKind().GroupKind(), selector: "peers"}
	if p, ok := l.shelves.Get(key); ok {
		return p.(peers), nil //nolint:forcetypeassert // Nothing else is put in.
	}
	p := peers{named: map[string]bool{}}
	if err := l.each(ctx, u.GroupVersionKind(), "", metav1.ListOptions{}, p.add); err != nil {
		return peers{}, err
	}
	l.shelves.Add(key, p)

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

package diagnosis

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// checkUIDs finds composed objects that have the UID of an XR above them, or of its claim, in a field
// that a restore can't carry over to the new UID.
func (d *diagnosis) checkUIDs() {
	const next = "let the Composition take the value from a name, the namespace, or a label or field of the XR that has the old value, then back up again. "
	for _, o := range d.with(isComposed) {
		if o.controller == "" {
			continue
		}
		u := o.full()
		if !xp.HasUID(u) {
			continue
		}
		uids, claims := d.uidsAbove(o)
		var identity, immutable []string
		for _, f := range xp.UIDFields(u, uids...) {
			switch {
			case o.is(isManaged|isComposite|isForged) && (f.IsIdentity(u) || f.NamesSecret() && claims[f.UID]):
				identity = append(identity, f.Path)
			case f.UID == o.controller && f.IsImmutable(u):
				immutable = append(immutable, f.Path)
			}
		}
		if len(identity) > 0 {
			d.add(reason.UIDInIdentity, report.Warning, o.Ref, "it has the UID of an XR or claim above it in its "+strings.Join(identity, " and its ")+
				". A restored one has another, and Crossplane would write that there", next+"A restore of this backup holds the XR until a user releases it")
		}
		if len(immutable) > 0 {
			d.add(reason.UIDInImmutable, report.Warning, o.Ref, "it has the UID of its XR in its "+strings.Join(immutable, " and its ")+
				", which can't be changed. A restored XR has another UID", next+"After a restore of this backup, Crossplane can't reconcile the XR until a user deletes "+
				"this object")
		}
	}
}

// uidsAbove returns the UIDs of the XRs above an object and of their claim, and which of them are
// claims.
func (d *diagnosis) uidsAbove(o *object) (uids []types.UID, claims map[types.UID]bool) {
	const most = 16
	claims = map[types.UID]bool{}
	uids = append(uids, o.controller) // The backup can lack the XR.
	for range most {
		if o = d.byUID[o.controller]; o == nil || !o.is(isComposite|isForged) {
			break
		}
		uids = append(uids, o.uid)
		if r, ok := xp.CompositeFrom(o.full()).ClaimRef(); ok {
			if claim := d.get(r); claim != nil {
				uids, claims[claim.uid] = append(uids, claim.uid), true
			}
		}
		if o.controller == "" {
			break
		}
	}

	return uids, claims
}

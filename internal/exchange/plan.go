package exchange

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Snapshot is the input of a Plan.
type Snapshot struct {
	Live, Saved Tree
	// Others and SavedOthers are all live and backed-up MRs of the kinds below the live root.
	Others, SavedOthers []*unstructured.Unstructured
	// SameNames are the live objects with the names of those below the saved root.
	SameNames []*unstructured.Unstructured
}

// An Item is an object to delete.
type Item struct {
	Object *unstructured.Unstructured
	Ref    xp.Ref
	UID    types.UID
	// Managed is set if it is an MR, and External is the MR's external-name.
	Managed  bool
	External string
	// Stays is why its external resource stays; "" if that is deleted too.
	Stays string
	// Guarded is set if its own policies keep the external resource.
	Guarded bool
}

// key returns what a user confirms of an item.
func (i Item) key() string {
	return strings.Join([]string{string(i.UID), i.External, strconv.FormatBool(i.Managed && i.Stays == "")}, "\n")
}

// A Return is an object of the backup that the next restore creates.
type Return struct {
	Ref      xp.Ref
	External string
	// Back is set if the object exists already.
	Back bool
}

// A Plan is what an exchange of one XR or claim does.
type Plan struct {
	Root xp.Ref
	// Refused is why it can't be done; none if it can.
	Refused []reason.Message
	// OnlyRestoreLeft is set if only the restore remains to be done.
	OnlyRestoreLeft bool
	Items           []Item
	Returns         []Return
	// Foreign are listed objects that don't belong to the XR, and that an exchange never changes.
	Foreign []xp.Ref
}

// Deletes returns the items whose external resource is deleted with them.
func (p Plan) Deletes() []Item {
	return slices.DeleteFunc(slices.Clone(p.Items), func(i Item) bool { return !i.Managed || i.Stays != "" || i.External == "" })
}

// Unconfirmed returns the items of p that a user has not confirmed.
func (p Plan) Unconfirmed(confirmed Plan) []string {
	known := map[string]bool{}
	for _, i := range confirmed.Items {
		known[i.key()] = true
	}
	var beyond []string
	for _, i := range p.Items {
		if !known[i.key()] {
			beyond = append(beyond, i.Ref.String())
		}
	}

	return beyond
}

// Plan plans the exchange.
func (s *Snapshot) Plan() Plan {
	p := Plan{Root: xp.RefTo(s.Live.Root), Foreign: s.Live.Foreign}
	p.Refused = s.refuseRoot()
	if len(p.Refused) > 0 {
		return p
	}
	taken := s.managedElsewhere()
	for _, u := range s.Live.Below {
		i := s.item(u, taken)
		p.Items = append(p.Items, i)
		if why := s.refuseItem(u, i); !why.IsZero() {
			p.Refused = append(p.Refused, of(i.Ref, why))
		}
	}
	p.Refused = append(p.Refused, s.refuseSaved()...)
	for _, u := range s.Saved.Below {
		p.Returns = append(p.Returns, Return{
			Ref: xp.RefTo(u), External: externalOf(u), Back: s.findLive(u) != nil && !s.Live.has(u),
		})
	}
	p.OnlyRestoreLeft = IsMarked(s.Live.Root) && len(p.Items) == 0 && !xp.HasComposed(s.Live.Root)
	if len(p.Refused) == 0 && s.isSame(p) {
		p.Refused = refuse(reason.NothingToExchange, "it composes the same resources as in the backup, so there is nothing to exchange")
	}

	return p
}

// isSame reports whether the same objects would be deleted and come back.
func (s *Snapshot) isSame(p Plan) bool {
	if len(p.Items) == 0 || len(p.Items) != len(p.Returns) {
		return false
	}
	returns := map[xp.ID]string{}
	for _, r := range p.Returns {
		returns[r.Ref.ID()] = r.External
	}

	return !slices.ContainsFunc(p.Items, func(i Item) bool {
		external, ok := returns[i.Ref.ID()]

		return !ok || external != i.External
	})
}

// A name identifies an external resource.
type name struct{ family, kind, external string }

func namesOf(mr *unstructured.Unstructured) []name {
	var names []name
	add := func(external string) {
		if external != "" {
			names = append(names, name{family: xp.GroupFamily(mr.GroupVersionKind().Group), kind: mr.GetKind(), external: external})
		}
	}
	add(externalOf(mr))
	if id, ok := xp.ProviderID(mr); ok {
		add(id)
	}

	return names
}

func externalOf(u *unstructured.Unstructured) string {
	return xp.Annotation(u, xp.AnnotationExternalName)
}

// managedElsewhere returns the external resources of MRs that are in the backup or stay, with the
// reason.
func (s *Snapshot) managedElsewhere() map[name]string {
	taken := map[name]string{}
	for _, u := range s.Others {
		if s.Live.has(u) {
			continue
		}
		for _, n := range namesOf(u) {
			taken[n] = xp.String(u) + " manages it"
		}
	}
	for _, u := range s.SavedOthers {
		for _, n := range namesOf(u) {
			taken[n] = xp.String(u) + " of the backup manages it"
		}
	}

	return taken
}

func (s *Snapshot) item(u *unstructured.Unstructured, taken map[name]string) Item {
	i := Item{Object: u, Ref: xp.RefTo(u), UID: u.GetUID(), Managed: !xp.IsComposite(u) && isManaged(u)}
	if !i.Managed {
		return i
	}
	i.External = externalOf(u)
	if i.Guarded = !Deletes(u); i.Guarded {
		i.Stays = "its own policies keep it"
	}
	for _, n := range namesOf(u) {
		if why := taken[n]; why != "" {
			i.Stays = why
		}
	}

	return i
}

// findLive returns the live object with the name of one of the backup; nil if there is none.
func (s *Snapshot) findLive(saved *unstructured.Unstructured) *unstructured.Unstructured {
	n := slices.IndexFunc(s.SameNames, func(u *unstructured.Unstructured) bool { return xp.RefTo(u).ID() == xp.RefTo(saved).ID() })
	if n < 0 {
		return nil
	}

	return s.SameNames[n]
}

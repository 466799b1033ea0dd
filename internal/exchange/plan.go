package exchange

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Snapshot is what a Plan is made from.
type Snapshot struct {
	Live, Saved Tree
	// Others are the live MRs of the kinds that are below the live root, those among them, and
	// SavedOthers all MRs of these kinds in the backup.
	Others, SavedOthers []*unstructured.Unstructured
	// There are the live objects that are called like those below the saved root.
	There []*unstructured.Unstructured
}

// An Item is an object that goes.
type Item struct {
	Object *unstructured.Unstructured
	Ref    xp.Ref
	UID    types.UID
	// Managed says that it is an MR, and External is the external-name of that.
	Managed  bool
	External string
	// Stays is why its external resource stays; "" if that goes too.
	Stays string
	// Guarded says that its own settings have it stay.
	Guarded bool
}

// key is what of an item was confirmed.
func (i Item) key() string {
	return strings.Join([]string{string(i.UID), i.External, strconv.FormatBool(i.Managed && i.Stays == "")}, "\n")
}

// A Return is something of the backup that the next restore brings back.
type Return struct {
	Ref      xp.Ref
	External string
	// Back says that it is there already.
	Back bool
}

// A Plan says what an exchange of one XR or claim does.
type Plan struct {
	Root xp.Ref
	// Refused is why it can't be done; none if it can.
	Refused []string
	// Over says that only the restore is to do.
	Over    bool
	Items   []Item
	Returns []Return
	// Foreign is what the XR lists of somebody else's, which nobody touches.
	Foreign []xp.Ref
}

// Deletes returns the items that go with their external resource.
func (p Plan) Deletes() []Item {
	return slices.DeleteFunc(slices.Clone(p.Items), func(i Item) bool { return !i.Managed || i.Stays != "" || i.External == "" })
}

// Beyond returns what of p was not in what somebody has confirmed.
func (p Plan) Beyond(confirmed Plan) []string {
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

// Plan decides.
func (s *Snapshot) Plan() Plan {
	p := Plan{Root: xp.RefTo(s.Live.Root), Foreign: s.Live.Foreign}
	p.Refused = s.refuseRoot()
	if len(p.Refused) > 0 {
		return p
	}
	taken := s.taken()
	for _, u := range s.Live.Below {
		i := s.item(u, taken)
		p.Items = append(p.Items, i)
		if why := s.refuseItem(u, i); why != "" {
			p.Refused = append(p.Refused, i.Ref.String()+": "+why)
		}
	}
	p.Refused = append(p.Refused, s.refuseSaved()...)
	for _, u := range s.Saved.Below {
		p.Returns = append(p.Returns, Return{
			Ref: xp.RefTo(u), External: externalOf(u), Back: s.there(u) != nil && !s.Live.has(u),
		})
	}
	p.Over = IsMarked(s.Live.Root) && len(p.Items) == 0 && !xp.HasComposed(s.Live.Root)
	if len(p.Refused) == 0 && s.isSame(p) {
		p.Refused = append(p.Refused, "it composes what it did in the backup, so there is nothing to exchange")
	}

	return p
}

// isSame reports whether what would go is what would come back.
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

// A name is what an external resource may be known by.
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

// taken returns who needs an external resource: MRs of the backup, and live ones that do not go.
func (s *Snapshot) taken() map[name]string {
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
		i.Stays = "its own policies say so"
	}
	for _, n := range namesOf(u) {
		if why := taken[n]; why != "" {
			i.Stays = why
		}
	}

	return i
}

// there returns the live object that is called like one of the backup; nil if there is none.
func (s *Snapshot) there(saved *unstructured.Unstructured) *unstructured.Unstructured {
	n := slices.IndexFunc(s.There, func(u *unstructured.Unstructured) bool { return xp.RefTo(u).ID() == xp.RefTo(saved).ID() })
	if n < 0 {
		return nil
	}

	return s.There[n]
}

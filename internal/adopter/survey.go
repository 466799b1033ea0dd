package adopter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// parallelSurveyLists is how many kinds are listed at a time: a cluster can have a thousand.
const parallelSurveyLists = 8

// A Scope limits a Survey.
type Scope struct {
	// Namespace limits the Survey to trees with objects in it; "" means all.
	Namespace string
	// Velero is the namespace of Velero.
	Velero string
}

// A Survey is what was read of a cluster to judge its trees.
type Survey struct {
	*diagnosis.Objects

	State diagnosis.ClusterState
	// Restores are Velero's Restores by namespace/name. Unread is why those in Velero's own
	// namespace could not be read; nil if they were, or if Velero is not installed.
	Restores map[string]report.Restore
	Unread   error

	surveyor *surveyor
}

// PlansAfter returns the plans if a user consented to adopt what refs name. It reads nothing.
func (s *Survey) PlansAfter(ctx context.Context, refs []xp.Ref) map[xp.ID]adoption.Plan {
	if len(refs) == 0 {
		return s.State.Plans
	}
	for _, r := range refs {
		s.surveyor.snapshot.Consent(r)
	}

	return s.surveyor.plans(ctx)
}

// ReadSurvey reads the trees of the cluster, and what is needed to find out what they wait for. It
// lists each kind once: first the kinds in Crossplane's categories, then the other kinds that XRs
// compose. It lists a kind a second time if an object is not among those with Crossplane's labels.
// It reads only the metadata of Secrets. The Objects record the kinds that can't be read;
// ReadSurvey fails if none can.
func ReadSurvey(ctx context.Context, c *cluster.Cluster, scope Scope) (*Survey, error) {
	if err := c.Discover(); err != nil {
		return nil, err
	}
	s := &surveyor{
		cluster: c, scope: scope, objects: diagnosis.NewObjects(), snapshot: adoption.NewSnapshot(hold.Unverified), extents: map[schema.GroupKind]extent{},
		categories: map[string]map[schema.GroupKind]bool{},
	}
	s.objects.Limit(scope.Namespace)
	s.snapshot.SetTime(c.ServerNow())
	s.snapshot.WithoutSecrets()
	isInactive := c.Inactive()
	inactive := func(gk schema.GroupKind) string { return isInactive(ctx, gk) }
	s.snapshot.Definitions(inactive)
	if err := s.readTrees(ctx); err != nil {
		return nil, err
	}
	if err := s.readHolds(ctx); err != nil {
		return nil, err
	}
	restores, phases, unread := s.readRestores(ctx)

	return &Survey{
		Objects: s.objects, Restores: restores, Unread: unread, surveyor: s,
		State: diagnosis.ClusterState{Now: c.ServerNow(), Plans: s.plans(ctx), Restores: phases, Inactive: inactive},
	}, ctx.Err()
}

// An extent is how much of a kind was listed.
type extent int

const (
	// labelled is what has the label by which Crossplane's objects are selected.
	labelled extent = iota + 1
	whole
)

type surveyor struct {
	cluster *cluster.Cluster
	scope   Scope

	mu       sync.Mutex
	objects  *diagnosis.Objects
	snapshot *adoption.Snapshot
	extents  map[schema.GroupKind]extent
	// categories are the kinds in each of Crossplane's categories.
	categories map[string]map[schema.GroupKind]bool
	kindsRead  int
	// undecided are cluster-scoped XRs that may have nothing in the namespace.
	undecided []*unstructured.Unstructured
	// firstError is the error of the first kind that could not be read.
	firstError error
}

// A request is a list of a kind.
type request struct {
	schema.GroupVersionKind

	selector string
}

func (s *surveyor) readTrees(ctx context.Context) error {
	requests, err := s.firstRequests(ctx)
	if err != nil {
		return err
	}
	if err := s.list(ctx, requests); err != nil {
		return err
	}
	s.addUndecided()
	if s.kindsRead == 0 {
		return fmt.Errorf("cannot read any kind of claims, XRs or managed resources: %w; see docs/validate.md for the rights that are needed, and give -n if they "+
			"are for one namespace", s.firstError)
	}

	return s.listWanted(ctx, func() sets.Set[schema.GroupKind] {
		wanted := sets.New[schema.GroupKind]()
		for _, r := range s.objects.Missing() {
			wanted.Insert(r.GroupVersionKind().GroupKind())
		}
		for _, gvk := range s.objects.Controllers() {
			wanted.Insert(gvk.GroupKind())
		}

		return wanted
	}, false)
}

// firstRequests returns the requests for the kinds in Crossplane's categories, for Usages and for
// XRDs.
func (s *surveyor) firstRequests(ctx context.Context) ([]request, error) {
	var requests []request
	for _, category := range []string{xp.CategoryComposite, xp.CategoryClaim, xp.CategoryManaged} {
		kinds, unread, err := s.cluster.Kinds(ctx, category)
		if err != nil {
			return nil, err
		}
		for gv, why := range unread {
			// Only extension API servers, which are often down, have these groups (kubernetes
			// api-approved).
			if group, _, _ := strings.Cut(gv, "/"); !strings.HasSuffix(group, ".k8s.io") {
				s.objects.AddBroken(schema.GroupKind{Group: group, Kind: "*"}, why)
			}
		}
		s.categories[category] = map[schema.GroupKind]bool{}
		for _, gvk := range kinds {
			s.categories[category][gvk.GroupKind()] = true
			if r, ok := s.nextRequest(gvk); ok {
				requests = append(requests, r)
			}
		}
	}
	if len(requests) == 0 {
		return nil, errors.New("cannot find any kind of claims, XRs or managed resources: the API server serves none in the categories claim, composite and " +
			"managed; is Crossplane installed, and are its XRDs and providers?")
	}

	return append(requests, s.requests(sets.New(append(xp.UsageKinds(), xp.KindDefinition.GroupKind())...))...), nil
}

// nextRequest returns the next request for a kind; ok is false if the kind was read completely.
func (s *surveyor) nextRequest(gvk schema.GroupVersionKind) (r request, ok bool) {
	gk := gvk.GroupKind()
	_, namespaced, err := s.cluster.Resource(gvk)
	// Any cluster-scoped XR can have composed resources in any namespace. MRs are limited, since
	// there are many more.
	isMR, limited := s.categories[xp.CategoryManaged][gk], err == nil && !namespaced && s.scope.Namespace != ""
	switch {
	case s.extents[gk] == whole:
		return request{}, false
	case s.extents[gk] == labelled, gk == xp.KindDefinition.GroupKind(), s.isRoot(gk), isMR && !limited:
		s.extents[gk] = whole

		return request{GroupVersionKind: gvk}, true
	case gk == cluster.KindSecret.GroupKind():
		s.extents[gk] = whole // The survey must not read other Secrets.
	default:
		s.extents[gk] = labelled
	}
	if isMR {
		return request{GroupVersionKind: gvk, selector: xp.LabelClaimNamespace + "=" + s.scope.Namespace}, true
	}

	return request{GroupVersionKind: gvk, selector: xp.LabelComposite}, true
}

func (s *surveyor) isRoot(gk schema.GroupKind) bool {
	return s.categories[xp.CategoryComposite][gk] || s.categories[xp.CategoryClaim][gk]
}

// listWanted lists the kinds that wanted returns until there is nothing more to list: first what has
// the label of Crossplane, unless all is set.
func (s *surveyor) listWanted(ctx context.Context, wanted func() sets.Set[schema.GroupKind], all bool) error {
	for {
		requests := s.requests(wanted())
		if len(requests) == 0 {
			return nil
		}
		for i := range requests {
			if all {
				requests[i].selector, s.extents[requests[i].GroupKind()] = "", whole
			}
		}
		if err := s.list(ctx, requests); err != nil {
			return err
		}
	}
}

func (s *surveyor) requests(wanted sets.Set[schema.GroupKind]) []request {
	var requests []request
	for gk := range wanted {
		if s.extents[gk] == whole {
			continue
		}
		gvk, ok, err := s.cluster.Served(gk)
		if err == nil && !ok {
			err = &meta.NoKindMatchError{GroupKind: gk}
		}
		if err != nil {
			s.skip(gk, err)
		} else if r, more := s.nextRequest(gvk); more {
			requests = append(requests, r)
		}
	}
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.String(), b.String()) })

	return requests
}

// skip records why a kind is not read.
func (s *surveyor) skip(gk schema.GroupKind, err error) {
	s.extents[gk] = whole
	switch {
	case cluster.IsUnserved(err):
		s.objects.AddUnserved(gk)
		s.snapshot.AddUnserved(gk)
	case apierrors.IsForbidden(err):
		s.objects.AddUnread(gk, err.Error())
	default:
		s.objects.AddBroken(gk, err.Error())
	}
}

// list sends requests, some at a time.
func (s *surveyor) list(ctx context.Context, requests []request) error {
	inParallel(len(requests), parallelSurveyLists, func(n int) { s.send(ctx, requests[n]) })

	return ctx.Err()
}

func (s *surveyor) send(ctx context.Context, r request) {
	var found []*unstructured.Unstructured
	var err error
	add := func(u *unstructured.Unstructured) { found = append(found, u) }
	if r.GroupVersionKind == cluster.KindSecret {
		in := cluster.Collection{GroupVersionKind: cluster.KindSecret, Namespace: s.scope.Namespace}
		err = s.cluster.EachMetadata(ctx, in, xp.LabelComposite, add)
	} else {
		err = s.cluster.Each(ctx, r.GroupVersionKind, s.scope.Namespace, metav1.ListOptions{LabelSelector: r.selector}, add)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gk := r.GroupKind()
	if err != nil {
		s.skip(gk, err)
		s.firstError = cmp.Or(s.firstError, cluster.IgnoreUnserved(err))

		return
	}
	if s.isRoot(gk) || s.categories[xp.CategoryManaged][gk] {
		s.kindsRead++
	}
	isElsewhere := s.elsewhere(gk)
	for _, u := range found {
		if !isElsewhere(u) {
			s.add(u)
		}
	}
	if s.extents[gk] == whole && r.selector == "" {
		s.snapshot.AddedAll(gk)
	}
}

func (s *surveyor) add(u *unstructured.Unstructured) {
	if s.scope.Namespace != "" && u.GetNamespace() == "" && xp.IsComposite(u) {
		s.undecided = append(s.undecided, u)

		return
	}
	s.objects.Add(u)
	addObserved(s.snapshot, u, xp.LabelRestore)
}

// elsewhere returns a function that reports whether an object of a kind has nothing to do with the
// scope's namespace. If one cluster-scoped MR is missing, all of its kind are listed.
func (s *surveyor) elsewhere(gk schema.GroupKind) func(u *unstructured.Unstructured) bool {
	if s.scope.Namespace == "" || !s.categories[xp.CategoryManaged][gk] {
		return func(*unstructured.Unstructured) bool { return false }
	}
	isNamed := s.objects.Named()

	return func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == "" && xp.Label(u, xp.LabelClaimNamespace) != s.scope.Namespace && !isNamed(u)
	}
}

// addUndecided adds the cluster-scoped XRs of trees with objects in the namespace, and the others
// as witnesses.
func (s *surveyor) addUndecided() {
	byID, linked := map[xp.ID]*unstructured.Unstructured{}, map[xp.ID][]xp.ID{}
	for _, u := range s.undecided {
		byID[xp.RefTo(u).ID()] = u
	}
	var queue []xp.ID
	for id, u := range byID {
		refs, _ := xp.CompositeFrom(u).ResourceRefs() // An XR whose references can't be read links to no other.
		for _, r := range refs {
			if to := byID[r.ID()]; to != nil && composes(u, to) {
				linked[id], linked[r.ID()] = append(linked[id], r.ID()), append(linked[r.ID()], id)
			}
		}
		if concerns(u, refs, s.scope.Namespace) {
			queue = append(queue, id)
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if u := byID[id]; u != nil {
			s.objects.Add(u)
			addObserved(s.snapshot, u, xp.LabelRestore)
			queue = append(queue, linked[id]...)
			delete(byID, id)
		}
	}
	for _, u := range byID {
		s.objects.AddWitness(u)
	}
	s.undecided = nil
}

// composes reports whether an XR composes another one that it lists. An XR with a claim is composed
// by none. Without a controller, which Velero alone does not restore, the label with the root of the
// tree has to be the same: an XR can list any other.
func composes(xr, listed *unstructured.Unstructured) bool {
	if c, ok := xp.Controller(listed); ok {
		return c.UID == xr.GetUID()
	}
	_, isClaimed := xp.CompositeFrom(listed).ClaimRef()
	root := xp.Label(listed, xp.LabelComposite)

	return !isClaimed && root != "" && (root == xr.GetName() || root == xp.Label(xr, xp.LabelComposite))
}

// concerns reports whether a cluster-scoped XR itself refers to the namespace.
func concerns(xr *unstructured.Unstructured, refs []xp.Ref, namespace string) bool {
	claim, ok := xp.CompositeFrom(xr).ClaimRef()

	return ok && claim.Namespace == namespace || xr.GetLabels()[xp.LabelClaimNamespace] == namespace ||
		slices.ContainsFunc(refs, func(r xp.Ref) bool { return r.Namespace == namespace })
}

package adopter

import (
	"context"
	"maps"
	"slices"
	"strings"

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

// readHolds reads what plans for held objects need besides the trees. Crossplane labels none of it.
func (s *surveyor) readHolds(ctx context.Context) error {
	return s.listWanted(ctx, func() sets.Set[schema.GroupKind] {
		wanted := sets.New[schema.GroupKind]()
		for _, r := range s.needs(s.held()...) {
			if s.snapshot.Get(r) == nil {
				wanted.Insert(r.GroupVersionKind().GroupKind())
			}
		}
		for _, gvk := range s.snapshot.PlatformNeeds() {
			wanted.Insert(gvk.GroupKind())
		}

		return wanted
	}, true)
}

// needs returns what plans for the objects need, without Secrets: only an Adopter adopts Secrets.
func (s *surveyor) needs(held ...xp.Ref) []xp.Ref {
	return slices.DeleteFunc(s.snapshot.Needs(held), func(r xp.Ref) bool { return r.GroupVersionKind().GroupKind() == cluster.KindSecret.GroupKind() })
}

// held returns the held objects in a stable order.
func (s *surveyor) held() []xp.Ref {
	var refs []xp.Ref
	for _, u := range s.objects.All() {
		if h, err := hold.Of(u); err == nil && h != nil {
			refs = append(refs, xp.RefTo(u))
		}
	}

	return refs
}

// plans returns the next step for each held object of which enough is known.
func (s *surveyor) plans(ctx context.Context) map[xp.ID]adoption.Plan {
	plans := map[xp.ID]adoption.Plan{}
	installed := installationOnce(ctx, s.cluster, func(error) {})
	for _, r := range s.held() {
		if slices.ContainsFunc(s.needs(r), s.objects.IsUnread) {
			continue
		}
		plans[r.ID()] = withCauses(s.cluster, adoption.Next(s.snapshot, r), s.snapshot, defaultStuckAfter, installed)
	}

	return plans
}

// readRestores reads the Restores in Velero's namespace, and in the namespaces that the holds name.
// The phase of a Restore that could not be read is diagnosis.PhaseUnread.
func (s *surveyor) readRestores(ctx context.Context) (restores map[string]report.Restore, phases map[string]string, unread error) {
	namespaces, named := map[string]bool{s.scope.Velero: true}, map[string]bool{}
	for _, r := range s.held() {
		h, _ := hold.Of(s.objects.Get(r)) // objects is complete at this point.
		if namespace, name, ok := strings.Cut(h.Restore, "/"); ok && namespace != "" && name != "" {
			namespaces[namespace], named[h.Restore] = true, true
		}
	}
	restores, phases = map[string]report.Restore{}, map[string]string{}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if namespace != s.scope.Velero && len(namespaces) > maxNamespaces {
			// Marks can name any number of namespaces, and a cluster has few Veleros.
			markUnread(phases, named, namespace)

			continue
		}
		err := s.cluster.Each(ctx, cluster.KindRestore, namespace, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			r := cluster.RestoreFrom(u)
			restores[r.Name], phases[r.Name] = r, r.Phase
		})
		if cluster.IgnoreUnserved(err) == nil {
			continue
		}
		if namespace == s.scope.Velero {
			unread = err
		}
		markUnread(phases, named, namespace)
		if len(named) > 0 {
			s.objects.AddUnread(cluster.KindRestore.GroupKind(), err.Error())
		}
	}

	return restores, phases, unread
}

// markUnread sets the phase of the named Restores in a namespace to diagnosis.PhaseUnread.
func markUnread(phases map[string]string, named map[string]bool, namespace string) {
	for name := range named {
		if strings.HasPrefix(name, namespace+"/") {
			phases[name] = diagnosis.PhaseUnread
		}
	}
}

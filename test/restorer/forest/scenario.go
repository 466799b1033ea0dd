package forest

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Scenario is a forest that was backed up, and restored twice.
type Scenario struct {
	Forest  *Forest
	Archive *Archive
	First   *Run
	Second  *Run
	// Panic is the panic of an action with its stack, "" if there was none.
	Panic string

	// Mask removes what an API server writes into objects unrelated to Crossplane. It may be nil.
	Mask func(u *unstructured.Unstructured)
}

// Simulate generates a forest, backs it up with random filters, loses all or a part of it, and
// restores it twice with other filters.
func Simulate(seed uint64, limits Limits, defect Defect) (s *Scenario) {
	s = &Scenario{}
	defer func() {
		if p := recover(); p != nil {
			s.Panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	random := rand.New(rand.NewPCG(seed, 7))
	s.Forest = Generate(seed, limits)
	s.Archive = BackUp(s.Forest, Backups(s.Forest, random), random, defect)
	target, alive := lose(s.Forest, random)
	of := Restores(s.Forest, random, alive)
	s.First = Restore(s.Forest, s.Archive, target, of, nil, random, defect)
	again := of.DeepCopy()
	again.Name = "tuesday"
	s.Second = Restore(s.Forest, s.Archive, target, again, s.First.After, random, defect)

	return s
}

// Backups returns a random Backup.
func Backups(f *Forest, random *rand.Rand) *velerov1.Backup {
	b := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "backup"}}
	switch n := random.IntN(100); {
	case n < 35:
		b.Spec.IncludedNamespaces = sample(f.Namespaces, random, 1)
	case n < 50:
		b.Spec.IncludedNamespaces = sample(f.Namespaces, random, 2)
	case n < 60:
		b.Spec.ExcludedNamespaces = sample(f.Namespaces, random, 1)
	case n < 65:
		b.Spec.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	}
	b.Spec.IncludeClusterResources = clusterResources(random)

	return b
}

func clusterResources(random *rand.Rand) *bool {
	switch n := random.IntN(100); {
	case n < 75:
		return nil
	case n < 90:
		return ptr.To(true)
	default:
		return ptr.To(false)
	}
}

func sample(names []string, random *rand.Rand, n int) []string {
	names = slices.Clone(names)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })

	return names[:n]
}

// Restores returns a random Restore. If all objects are live, it restores copies.
func Restores(f *Forest, random *rand.Rand, alive bool) *velerov1.Restore {
	r := &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "monday", Annotations: map[string]string{}}}
	switch n := random.IntN(100); {
	case n < 20:
		r.Spec.IncludedNamespaces = sample(f.Namespaces, random, 1)
	case n < 30:
		r.Spec.IncludedNamespaces = sample(f.Namespaces, random, 2)
	case n < 40:
		r.Spec.ExcludedNamespaces = sample(f.Namespaces, random, 1)
	case n < 50:
		r.Spec.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}
	}
	switch n := random.IntN(100); {
	case n < 5:
		r.Spec.ExcludedResources = sample(alphabet, random, 2)
	case n < 8:
		r.Spec.IncludedResources = sample(alphabet, random, 8)
	}
	r.Spec.IncludeClusterResources = clusterResources(random)
	if random.IntN(100) < 20 {
		r.Spec.ExistingResourcePolicy = velerov1.PolicyTypeUpdate
	}
	if alive || random.IntN(100) < 15 {
		r.Spec.NamespaceMapping = map[string]string{"team-a": "copy-a", "team-b": "copy-b"}
		if !alive && random.IntN(3) == 0 {
			r.Spec.NamespaceMapping = map[string]string{"team-a": "team-b", "team-b": "team-a"}
		}
		mode := []setting.Clone{setting.Hold, setting.Observe, setting.New}[random.IntN(3)]
		r.Annotations[setting.Prefix+setting.NameClone] = string(mode)
	}
	if random.IntN(100) < 15 {
		r.Annotations[setting.Prefix+setting.NameObserve] = "true"
	}
	if random.IntN(100) < 15 {
		mode := []setting.Holding{setting.HoldAll, setting.HoldAll, setting.HoldNone}[random.IntN(3)]
		r.Annotations[setting.Prefix+setting.NameHold] = string(mode)
	}
	addSettings(r, rand.New(rand.NewPCG(f.Seed, 9)))

	return r
}

// addSettings adds settings from its own random source, so that older seeds keep the rest as it
// was.
func addSettings(r *velerov1.Restore, random *rand.Rand) {
	if random.IntN(100) < 15 {
		r.Annotations[setting.Prefix+setting.NameRelease] = "by-hand"
	}
	if random.IntN(100) < 10 {
		r.Annotations[setting.Prefix+setting.NameStatus] = "none"
	}
}

// lose returns the target cluster, and whether it is the complete source.
func lose(f *Forest, random *rand.Rand) (target *Cluster, alive bool) {
	target = newCluster()
	source := f.source().copies()
	switch n := random.IntN(100); {
	case n < 55:
	case n < 88:
		part := 1 + random.IntN(9)
		for _, o := range f.Objects { // In their order, so that a seed gives the same result.
			if id := xp.RefTo(o.Unstructured).ID(); random.IntN(10) < part {
				target.objects[id] = source[id]
			}
		}
	default:
		target.objects, alive = source, true
	}
	if random.IntN(10) == 0 {
		k := Kinds()[random.IntN(len(Kinds()))]
		target.unserved[k.GroupKind()] = true
		for id := range target.objects {
			if id.Group == k.Group && id.Kind == k.Kind {
				delete(target.objects, id)
			}
		}
	}
	if random.IntN(25) == 0 {
		for _, u := range f.source().copies() {
			if u.GetKind() == xrd.Kind && u.GetName() == legacyXR.Resource().String() {
				_ = unstructured.SetNestedField(u.Object, "2026-01-02T03:04:05Z", "metadata", "deletionTimestamp") // It has metadata.
				target.objects[xp.RefTo(u).ID()] = u
			}
		}
	}

	return target, alive
}

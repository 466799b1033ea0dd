package live

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// mostDefinitions is how many MRDs of a group are read to find the one of a kind that is not
// served. They have the same group, and are called like their kinds.
const mostDefinitions = 32

// activations tells which kinds of MRs are not active. It asks about each kind once, and takes the
// right to list MRDs: without it, all are active.
type activations struct {
	cluster *Cluster
	mu      sync.Mutex
	known   map[schema.GroupKind]string
	// names are those of all MRDs, once somebody has asked about a kind that is not served: nothing
	// else says what it is called as a resource.
	names []string
	named bool
}

func activationsIn(c *Cluster) *activations {
	return &activations{cluster: c, known: map[schema.GroupKind]string{}}
}

// Inactive returns a function that returns the name of the MRD of a kind if that is not active, and
// "" of any other. It asks about each kind once.
func (c *Cluster) Inactive() func(ctx context.Context, gk schema.GroupKind) string {
	return activationsIn(c).inactive
}

// inactive returns the name of the MRD of a kind if it is not active, and "" if it is, there is
// none, or that can't be found out. No restore depends on it.
func (a *activations) inactive(ctx context.Context, gk schema.GroupKind) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	name, known := a.known[gk]
	if known {
		return name
	}
	for _, candidate := range a.candidates(ctx, gk) {
		r := xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: candidate}
		mrd, err := a.cluster.Now(ctx, r)
		if err == nil && xp.ManagedKind(mrd) == gk {
			if xp.IsInactive(mrd) {
				name = candidate
			}

			break
		}
	}
	a.known[gk] = name

	return name
}

// ofKind is inactive for a Snapshot, which outlives each context.
func (a *activations) ofKind(gk schema.GroupKind) string { return a.inactive(context.Background(), gk) }

// candidates returns what the MRD of a kind may be called.
func (a *activations) candidates(ctx context.Context, gk schema.GroupKind) []string {
	if _, served, err := a.cluster.Served(xp.KindManagedDefinition.GroupKind()); err != nil || !served {
		return nil
	}
	if gvk, served, err := a.cluster.Served(gk); err == nil && served {
		gvr, _, err := a.cluster.Resource(gvk)
		if err != nil {
			return nil
		}

		return []string{gvr.GroupResource().String()}
	}
	if !a.named {
		a.names, a.named = a.cluster.definitionNames(ctx), true
	}
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	var found []string
	for _, name := range a.names {
		if resource, ok := strings.CutSuffix(name, "."+gk.Group); ok && !strings.Contains(resource, ".") {
			found = append(found, name)
		}
	}
	// The one that is called like its kind, as most are, comes first, and then what begins like it.
	likeness := func(name string) int { return commonPrefix(name, plural.Resource) }
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(likeness(b), likeness(a)) })

	return found[:min(len(found), mostDefinitions)]
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}

	return n
}

// definitionNames returns the names of all MRDs. Providers bring a thousand of them, with long
// schemas, so only their metadata is asked for.
func (c *Cluster) definitionNames(ctx context.Context) []string {
	if c.metadata == nil {
		return nil
	}
	var names []string
	options := metav1.ListOptions{Limit: pageSize}
	for {
		var list *metav1.PartialObjectMetadataList
		err := c.withFewRetries(func() (err error) {
			list, err = c.metadata.Resource(xp.ResourceManagedDefinition.WithVersion(xp.KindManagedDefinition.Version)).List(ctx, options)

			return err //nolint:wrapcheck // Nobody is told.
		})
		if err != nil {
			return names
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		if list.Continue == "" {
			return names
		}
		options.Continue = list.Continue
	}
}

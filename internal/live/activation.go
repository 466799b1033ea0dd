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

// maxDefinitions is how many MRDs of a group are read to find the one of a kind that is not served.
// They share the group, and their names resemble their kinds.
const maxDefinitions = 32

// activations finds the kinds of MRs that are not active. It reads the MRD of each kind once. It
// needs the right to list MRDs; without it all kinds count as active.
type activations struct {
	cluster *Cluster
	mu      sync.Mutex
	known   map[schema.GroupKind]string
	// names are the names of all MRDs, listed when a kind that is not served is first asked for.
	// Discovery has no resource name for such a kind.
	names []string
	named bool
}

func activationsIn(c *Cluster) *activations {
	return &activations{cluster: c, known: map[schema.GroupKind]string{}}
}

// Inactive returns a function that returns the name of a kind's MRD if the MRD is not active, else
// "". The function reads the MRD of each kind once.
func (c *Cluster) Inactive() func(ctx context.Context, gk schema.GroupKind) string {
	return activationsIn(c).inactive
}

// inactive returns the name of a kind's MRD if the MRD is not active. It returns "" if the MRD is
// active, does not exist or can't be read: no restore depends on it.
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

// ofKind is inactive without a context, for a Snapshot, which outlives each context.
func (a *activations) ofKind(gk schema.GroupKind) string { return a.inactive(context.Background(), gk) }

// candidates returns the names that the MRD of a kind may have, most likely first.
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
	// Most MRDs are named after the plural of their kind, so the longest common prefix comes first.
	similarity := func(name string) int { return commonPrefix(name, plural.Resource) }
	slices.SortStableFunc(found, func(a, b string) int { return cmp.Compare(similarity(b), similarity(a)) })

	return found[:min(len(found), maxDefinitions)]
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}

	return n
}

// definitionNames returns the names of all MRDs, or those that it could read. Providers install a
// thousand MRDs with long schemas, so it reads only their metadata.
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

			return err //nolint:wrapcheck // The error is not returned to users.
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

package live

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// activations finds the kinds of MRs that are not active. It reads the MRD of each kind once. It
// needs the right to list MRDs; without it all kinds count as active.
type activations struct {
	cluster *Cluster
	known   cache[schema.GroupKind, string]
	// names are the names of all MRDs, or those that could be read, if named is set. Discovery has no
	// resource name for a kind that is not served.
	names []string
	named bool
}

// Inactive returns a function that returns the name of a kind's MRD if the MRD is not active, else
// "". The function reads the MRD of each kind once.
func (c *Cluster) Inactive() func(ctx context.Context, gk schema.GroupKind) string {
	return (&activations{cluster: c}).inactive
}

// inactive returns the name of a kind's MRD if the MRD is not active. It returns "" if the MRD is
// active, does not exist or can't be read: no restore depends on it.
func (a *activations) inactive(ctx context.Context, gk schema.GroupKind) string {
	name, _ := a.known.get(gk, func() (string, error) {
		for _, candidate := range a.candidates(ctx, gk) {
			r := xp.Ref{APIVersion: xp.KindManagedDefinition.GroupVersion().String(), Kind: xp.KindManagedDefinition.Kind, Name: candidate}
			mrd, err := a.cluster.Now(ctx, r)
			if err != nil || xp.ManagedKind(mrd) != gk {
				continue
			}
			if xp.IsInactive(mrd) {
				return candidate, nil
			}

			break
		}

		return "", nil
	})

	return name
}

// ofKind is inactive without a context, for a Snapshot, which outlives each context.
func (a *activations) ofKind(gk schema.GroupKind) string { return a.inactive(context.Background(), gk) }

// candidates returns the names that the MRD of a kind may have: group and resource, which is a
// plural of the kind.
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
		a.named = true
		// Providers install a thousand MRDs with long schemas. An error is as good as no MRD.
		in := collection{GroupVersionKind: xp.KindManagedDefinition}
		_ = a.cluster.eachMetadata(ctx, in, "", func(u *unstructured.Unstructured) { a.names = append(a.names, u.GetName()) })
	}
	stem := strings.ToLower(gk.Kind[:max(0, len(gk.Kind)-irregular)])
	var found []string
	for _, name := range a.names {
		resource, ok := strings.CutSuffix(name, "."+gk.Group)
		if ok && strings.HasPrefix(resource, stem) && len(resource) <= len(gk.Kind)+longestEnding && !strings.Contains(resource, ".") {
			found = append(found, name)
		}
	}

	return found
}

// Plurals differ from their kinds in up to two letters at the end (indices, media), and in what they
// add. It matters for the number of requests, since a tenant can name any kind.
const (
	irregular     = 2
	longestEnding = 3
)

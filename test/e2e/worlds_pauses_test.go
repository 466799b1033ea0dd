package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A pause is what a user pauses before the backup: the object of the kind that a selector finds.
type pause struct {
	kind           schema.GroupVersionKind
	labels, fields string
}

// worldsOfPauses returns XRs of two revisions, of which a user has paused an XR that is pinned to
// the older one, an MR and, on Crossplane v1, a claim.
func worldsOfPauses(version stack.Version) map[string]*shape {
	const name = "own"
	of := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group + ".example.org", Version: "v1alpha1", Kind: kind}
	}
	size, pauses := 10, []pause{
		{kind: of(name, "Shop"), fields: "metadata.name=own-pinned-00"},
		{kind: of("cloud.m", "Bucket"), labels: "crossplane.io/composite=own-01"},
	}
	if version.IsV1() {
		size, pauses = 14, []pause{
			{kind: of(name, "Shop"), fields: "metadata.name=own-00"},
			{kind: of(name, "XShop"), labels: "crossplane.io/claim-name=own-pinned-00"},
			{kind: of("cloud", "Bucket"), labels: "crossplane.io/claim-name=own-01"},
		}
	}
	var before map[string]any

	return map[string]*shape{name: {
		reason: "What a user has paused stays paused, and has its whole status, which nobody writes again.",
		Scene:  drill.Scene{Dir: "revisions", Count: 2, Size: size, Drift: true},
		last: func(ctx context.Context, c *stack.Cluster, s drill.Scene) (err error) {
			for _, p := range pauses {
				if err := p.put(ctx, c, s); err != nil {
					return err
				}
			}
			before, err = s.Paused(ctx, c)
			if err == nil && len(before) != len(pauses) {
				err = fmt.Errorf("%d objects are paused, not %d", len(before), len(pauses))
			}

			return err
		},
		check: func(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
			t.Helper()
			paused, err := n.Paused(t.Context(), s.target)
			must(t, err)
			if diff := cmp.Diff(before, paused); diff != "" {
				t.Errorf("%s\nTheir status: -before, +after:\n%s", n.reason, diff)
			}
			wantUnchanged(t, s, n, after, changes)
		},
	}}
}

// put pauses what p selects, and waits until its controller has reported that.
func (p pause) put(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	objects, err := c.Resource(ctx, p.kind, s.Name)
	if err != nil {
		return err
	}
	find := func(ctx context.Context) (*unstructured.Unstructured, error) {
		all, err := objects.List(ctx, metav1.ListOptions{LabelSelector: p.labels, FieldSelector: p.fields})
		if err == nil && len(all.Items) != 1 {
			err = fmt.Errorf("%s%s selects %d of %s, not one", p.labels, p.fields, len(all.Items), p.kind.Kind)
		}
		if err != nil {
			return nil, err
		}

		return &all.Items[0], nil
	}
	u, err := find(ctx)
	if err != nil {
		return err
	}
	if err := drill.Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"crossplane.io/paused": "true"}}}); err != nil {
		return err
	}

	return c.Wait(ctx, time.Minute, "its controller to report the pause of "+u.GetName(), func(ctx context.Context) error {
		u, err := find(ctx)
		if err != nil {
			return err
		}

		return errors.Join(stack.HasCondition(u, "Synced", "False"), stack.HasCondition(u, "Ready", "True"))
	})
}

package e2e

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// worldsOfDefinitions returns XRDs with claims that come from the backup into a Crossplane v2 that
// has none of them.
func worldsOfDefinitions() map[string]*shape {
	all := map[string]*shape{
		"undefined": {
			reason: "The backup of a namespace brings the XRD of its claims.",
			Scene:  drill.Scene{Dir: "legacy", Count: 2, Size: 14, Drift: true}, last: addDetails,
		},
		"chosen": {
			reason: "A backup that includes the XRD itself brings it before all XRs.",
			Scene: drill.Scene{
				Dir: "legacy", Count: 2, Size: 14, Drift: true,
				BackupArgs: []string{"--include-namespaces", "chosen", "--include-cluster-resources=true", "--or-selector", ofScene("chosen")},
			},
			last: labelSecrets,
		},
		"unplugged": {
			reason: "A backup that was made without the plugin brings it, too.",
			Scene: drill.Scene{
				Dir: "legacy", Count: 2, Size: 14, Drift: true,
				BackupArgs: []string{"--include-namespaces", "unplugged", "--include-cluster-resources=true", "--or-selector", ofScene("unplugged")},
			},
			last: labelSecrets, unplugged: true,
		},
	}
	for _, n := range all {
		var xrd map[string]any
		last := n.last
		n.undefined = true
		n.last = func(ctx context.Context, c *stack.Cluster, s drill.Scene) (err error) {
			xrd, err = definition(ctx, c, s)

			return errors.Join(err, last(ctx, c, s))
		}
		n.check = func(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
			t.Helper()
			got, err := definition(t.Context(), s.target, n.Scene)
			must(t, err)
			if diff := cmp.Diff(xrd, got); diff != "" {
				t.Errorf("%s\nThe XRD: -before, +after:\n%s", n.reason, diff)
			}
			wantUnchanged(t, s, n, after, changes)
		}
	}

	return all
}

// ofScene selects what a scene's Composition, claims and XRs have as label, and what they compose.
func ofScene(scene string) string {
	return "scene=" + scene + " or crossplane.io/claim-namespace=" + scene
}

// labelSecrets adds the label of the scene to its Secrets, so that a selector of labels finds them.
func labelSecrets(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	secrets, err := c.Resource(ctx, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, s.Name)
	if err != nil {
		return err
	}
	all, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	label := map[string]any{"metadata": map[string]any{"labels": map[string]any{"scene": s.Name}}}
	for _, u := range all.Items {
		if err := drill.Patch(ctx, c, &u, label); err != nil {
			return err
		}
	}

	return addDetails(ctx, c, s)
}

// definition returns a scene's XRD, without what differs in each cluster.
func definition(ctx context.Context, c *stack.Cluster, s drill.Scene) (map[string]any, error) {
	xrds, err := c.Resource(ctx, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v2", Kind: "CompositeResourceDefinition"}, "")
	if err != nil {
		return nil, err
	}
	u, err := xrds.Get(ctx, "xshops."+s.Name+".example.org", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	labels := u.GetLabels()
	maps.DeleteFunc(labels, func(label, _ string) bool {
		return label == "velero.io/backup-name" || label == "velero.io/restore-name"
	})
	status, _, _ := unstructured.NestedMap(u.Object, "status", "controllers")

	return map[string]any{
		"labels": labels, "annotations": u.GetAnnotations(), "finalizers": u.GetFinalizers(), "owners": u.GetOwnerReferences(), "spec": u.Object["spec"],
		"controllers": status, "managers": drill.ManagersOf(u),
	}, nil
}

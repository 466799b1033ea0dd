package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// mirrors is a scene of Objects that watch resources in another namespace and refer to others.
const mirrors = "mirrors"

// referredBy is the prefix of a finalizer that provider-kubernetes v1.3.1 puts on what an Object
// refers to. The UID of the Object follows.
const referredBy = "kubernetes.crossplane.io/referred-by-object-"

func shapeMirrors(version stack.Version) *shape {
	n := &shape{
		reason: "The watched resource that an Object manages in another namespace is neither created again nor deleted.",
		Scene:  drill.Scene{Count: 4, Size: 20, Namespaces: []string{mirrors, mirrors + "-elsewhere"}},
		last:   writeRemotes,
		check:  wantMirrors,
	}
	if version == stack.V1 {
		n.Size = 24
	} else {
		n.BackupArgs = selected(strings.Join(n.Namespaces, ","))
		n.BackupArgs[len(n.BackupArgs)-1] = "scene=" + mirrors
	}

	return n
}

// writeRemotes changes what Objects manage. The change is lost if that is created again.
func writeRemotes(ctx context.Context, c *stack.Cluster, s drill.Scene) error {
	objects, err := c.Resource(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, mirrors+"-elsewhere")
	if err != nil {
		return err
	}
	for i := range s.Count {
		name := fmt.Sprintf("%s-%02d-remote", mirrors, i)
		if _, err := objects.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"written":"by people"}}`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("cannot write to %s: %w", name, err)
		}
	}

	return nil
}

// wantMirrors expects a scene to be unchanged. The ConfigMaps to which Objects refer can't be
// deleted any more. The provider causes that, with Velero alone too: its finalizer names an Object
// by its UID, and the provider adds it only once in the life of an Object.
func wantMirrors(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	wantSame(t, n, n.picture, after)
	objects, err := list(t.Context(), s.target, kindObject, "", "")
	must(t, err)
	uids := map[string]bool{}
	for _, u := range objects {
		uids[referredBy+string(u.GetUID())] = true
	}
	referred := after.Only("ConfigMap " + mirrors + "/")
	for name, l := range referred {
		fields, _ := l.Fields.(map[string]any)
		if len(l.Finalizers) != 1 || !strings.HasPrefix(l.Finalizers[0], referredBy) || uids[l.Finalizers[0]] {
			t.Errorf("%s has the finalizers %v, %v: docs/limits.md says that they name an Object that is not there", name, l.Finalizers, fields)
		}
	}
	if len(referred) != n.Count {
		t.Errorf("Objects refer to %d ConfigMaps, not %d", len(referred), n.Count)
	}
}

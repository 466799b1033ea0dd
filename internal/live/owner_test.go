package live

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestOwner(t *testing.T) {
	s := newServer()
	c := s.cluster()
	ref := metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x", UID: "old"}
	if _, err := c.Owner(context.Background(), ref, "team-a"); !apierrors.IsNotFound(err) {
		t.Errorf("an absent owner must give a NotFound error; got %v", err)
	}
	xr := xptest.XR("x", xptest.UID("new"), xptest.Generation(3), xptest.Refs(xptest.MR("b")))
	s.put(xorders, xptest.With(xr, xptest.Synced("True", "ReconcileSuccess", ""),
		xptest.Field([]any{map[string]any{"manager": "crossplane"}}, "metadata", "managedFields")))
	for range 3 {
		owner, err := c.Owner(context.Background(), ref, "team-a")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(xr.Object, xptest.With(owner, xptest.Without("metadata", "resourceVersion")).Object); diff != "" {
			t.Errorf("each call must return the live owner without unused fields: -want, +got:\n%s", diff)
		}
		owner.SetUID("changed by the caller")
	}
	if diff := cmp.Diff([]string{"xorders /x", "xorders /x"}, s.requests("get")); diff != "" {
		t.Errorf("a live owner is requested once, and an absent one again, since it can appear: -want, +requested:\n%s", diff)
	}
	c.forgetOwners()
	if owner, err := c.Owner(context.Background(), ref, "team-a"); err != nil || owner.GetUID() != "new" {
		t.Errorf("a forgotten owner must be requested again; got %v", err)
	}
}

// A tenant's owners can have 1.5 MiB each, and all are of one restore.
func TestOwnersAreForgotten(t *testing.T) {
	const xrs = 60
	s := newServer()
	c := s.cluster()
	for n := range xrs {
		name := fmt.Sprint("x", n)
		s.put(xorders, xptest.XR(name, xptest.Field(strings.Repeat("x", 1<<20), "spec", "text")))
		for range 2 {
			if _, err := c.Owner(t.Context(), metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: name}, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := 0
	for _, b := range c.owners {
		size += len(b)
	}
	if size > maxOwnersSize || size != c.ownersSize {
		t.Errorf("%d owners with %d bytes are kept, and counted as %d bytes", len(c.owners), size, c.ownersSize)
	}
	if n := len(s.requests("get")); n != xrs {
		t.Errorf("%d owners were read %d times", xrs, n)
	}
}

// Velero polls operations when all objects with owners are restored. The owners may be thousands.
func TestOperationsForgetOwners(t *testing.T) {
	xr := xptest.XR("x")
	s := newServer(xr)
	a := newFastAdopter(s)
	if _, err := a.cluster.Owner(t.Context(), metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: xptest.LegacyKind, Name: "x"}, ""); err != nil {
		t.Fatal(err)
	}
	if len(a.cluster.owners) != 1 {
		t.Fatalf("the cache must have one owner, not %d", len(a.cluster.owners))
	}
	if _, err := a.Adopt(t.Context(), adoption.Unverified, monday, selector, xp.RefTo(xr)); err != nil {
		t.Fatal(err)
	}
	if len(a.cluster.owners) > 0 {
		t.Errorf("the cache still has %d owners", len(a.cluster.owners))
	}
}

// Objects in a thousand namespaces can have the same owner.
func TestOwnerOfObjectsInDifferentNamespaces(t *testing.T) {
	of := func(kind, name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: kind, Name: name, UID: "old"}
	}
	for name, tc := range map[string]struct {
		reason string
		ref    metav1.OwnerReference
		// want are the UIDs of the owners of objects in team-a, team-b, nowhere and team-a again.
		want  []string
		asked []string
	}{
		"Cluster": {
			reason: "A cluster-scoped owner is requested once.", ref: of(xptest.LegacyKind, "x"), want: []string{"x", "x", "x", "x"}, asked: []string{"xorders /x"},
		},
		"Namespaced": {
			reason: "Each namespace has its own owner of that name.", ref: of(xptest.ClaimKind, "o"), want: []string{"a", "b", "", "a"},
			asked: []string{"orderclaims team-a/o", "orderclaims team-b/o", "orderclaims /o"},
		},
		"Unserved": {reason: "A kind that is not served has no owner and costs no request.", ref: of("Gone", "g"), want: []string{"", "", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(xptest.XR("x", xptest.UID("x")), xptest.Claim("o", xptest.UID("a")), xptest.Claim("o", xptest.In("team-b"), xptest.UID("b")))
			c := s.cluster()
			var got []string
			for _, namespace := range []string{"team-a", "team-b", "", "team-a"} {
				owner, err := c.Owner(context.Background(), tc.ref, namespace)
				if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
					t.Fatal(err)
				}
				uid := ""
				if owner != nil {
					uid = string(owner.GetUID())
				}
				got = append(got, uid)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.asked, s.requests("get")); diff != "" {
				t.Errorf("%s\n-want, +requested:\n%s", tc.reason, diff)
			}
		})
	}
}

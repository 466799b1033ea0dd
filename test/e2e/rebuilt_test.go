package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// rebuilt are objects that controllers create, and objects that users create, in the source.
type rebuilt struct{ made, kept, tuned, recurring []*unstructured.Unstructured }

func (s *suite) makeRebuilt(t *testing.T) *rebuilt {
	t.Helper()
	ctx := t.Context()
	apply := func(manifest string, owner func(u *unstructured.Unstructured) *unstructured.Unstructured) []*unstructured.Unstructured {
		objects, err := stack.Parse([]byte(manifest))
		must(t, err)
		for _, u := range objects {
			if o := owner(u); o != nil {
				o, err := get(ctx, s.source, o.GroupVersionKind(), "", o.GetName())
				must(t, err)
				yes := true
				u.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: &yes,
				}})
			}
			must(t, s.source.ApplyObjects(ctx, u))
		}

		return objects
	}
	none := func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }
	pkgs := apply(packages, none)
	provider, configuration := pkgs[1], pkgs[2]
	revs := apply(revisions, func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return map[string]*unstructured.Unstructured{"acme-1": provider, "chosen-1": configuration}[u.GetName()]
	})
	r := &rebuilt{made: revs[:1], kept: append(pkgs, revs[1])}
	r.made = append(r.made, apply(runtime, func(*unstructured.Unstructured) *unstructured.Unstructured { return revs[0] })...)
	r.tuned = apply(tuned, func(*unstructured.Unstructured) *unstructured.Unstructured { return revs[0] })
	r.made = append(r.made, apply(others, func(u *unstructured.Unstructured) *unstructured.Unstructured {
		switch {
		case strings.HasPrefix(u.GetName(), "crossplane:provider:"):
			return revs[0]
		case strings.HasPrefix(u.GetName(), "crossplane:composite:"):
			return s.xrd()
		default:
			return nil
		}
	})...)
	if s.version == stack.V2 {
		r.made = append(r.made, apply(operations, none)...)
		r.recurring = apply(recurring, none)
	}
	must(t, s.source.RestartVelero(ctx))

	return r
}

// xrd returns the XRD of the instances, with only its kind and name.
func (s *suite) xrd() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("apiextensions.crossplane.io/v1")
	u.SetKind("CompositeResourceDefinition")
	u.SetName("environments.platform.example.org")
	if s.version == stack.V1 {
		u.SetName("x" + u.GetName())
	}

	return u
}

// testTunedAlone is the control: Velero alone restores a user's changes to a ServiceAccount, so a
// restore with the plugin must not lose them. It deletes the ServiceAccounts again.
func (s *suite) testTunedAlone(t *testing.T, r *rebuilt, backup string) {
	const restore = "accounts"
	ctx := t.Context()
	must(t, drill.Platform{}.StartRestore(ctx, s.target, restore, backup, "--include-namespaces", "crossplane-system", "--include-resources", "serviceaccounts"))
	s.awaitCompleted(t, restore)
	for _, u := range r.tuned {
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		if live.GetAnnotations()[annotationRole] != u.GetAnnotations()[annotationRole] {
			t.Errorf("Velero alone does not restore the user's changes to %s, so the test with the plugin proves nothing: %v", u.GetName(), live.Object)
		}
	}
	for _, u := range slices.Concat(r.tuned, r.made) {
		if u.GetKind() == "ServiceAccount" {
			remove(t, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		}
	}
}

// testRebuilt checks that a restore leaves these objects to the control plane, and logs that.
func (s *suite) testRebuilt(t *testing.T, r *rebuilt, restore string) {
	ctx := t.Context()
	logs, err := s.target.Velero(ctx, "restore", "logs", restore)
	must(t, err)
	for _, u := range r.made {
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		if !apierrors.IsNotFound(err) {
			must(t, err)
			t.Errorf("%s %s was restored: %v", live.GetKind(), live.GetName(), live.GetLabels())
		}
		kind := regexp.MustCompile(`\b` + u.GetKind() + `\b`)
		reported := 0
		for line := range strings.Lines(logs) {
			if strings.Contains(line, "ot restored") && kind.MatchString(line) {
				reported++
			}
		}
		if reported != 1 {
			t.Errorf("the log names %s %d times, not once", u.GetKind(), reported)
		}
	}
	for _, u := range r.kept {
		live, err := get(ctx, s.target, u.GroupVersionKind(), "", u.GetName())
		must(t, err)
		for _, ref := range live.GetOwnerReferences() {
			owner, err := get(ctx, s.target, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), "", ref.Name)
			must(t, err)
			if owner.GetUID() != ref.UID {
				t.Errorf("%s %s is owned by %s, not %s", live.GetKind(), live.GetName(), ref.UID, owner.GetUID())
			}
		}
		if len(live.GetOwnerReferences()) != len(u.GetOwnerReferences()) {
			t.Errorf("%s %s has other owners than before: %v", live.GetKind(), live.GetName(), live.GetOwnerReferences())
		}
	}
	for _, u := range r.tuned {
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		secrets, _, _ := unstructured.NestedSlice(live.Object, "imagePullSecrets")
		if live.GetAnnotations()[annotationRole] != u.GetAnnotations()[annotationRole] || len(secrets) != 1 || len(live.GetOwnerReferences()) > 0 {
			t.Errorf("%s %s has lost a user's changes, or has an owner that does not exist: %v", live.GetKind(), live.GetName(), live.Object)
		}
	}
	for _, u := range r.recurring {
		live, err := get(ctx, s.target, u.GroupVersionKind(), "", u.GetName())
		must(t, err)
		_, held := live.GetAnnotations()[annotationHold]
		if !paused(live) || held == paused(u) {
			t.Errorf("%s %s was paused %v by its owner and came back with %v", u.GetKind(), u.GetName(), paused(u), live.GetAnnotations())
		}
		if !paused(u) {
			wantMessage(t, "the log's problems of the restore", problems(logs), "level=warning", u.GetKind(), u.GetName(), "paused")
		}
	}
	u, err := get(ctx, s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}, "velero", restore)
	must(t, err)
	if n := warnings(u); n < int64(len(r.recurring)/2) {
		t.Error(fmt.Errorf("the Restore counts %d warnings", n))
	}
}

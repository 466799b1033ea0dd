package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// worldsOfUIDs returns worlds in which Compositions make names from the UID of the XR.
func worldsOfUIDs(version stack.Version) map[string]*shape {
	if version.IsV1() {
		beside, beyond := &uids{kinds: []string{"XShop", "XVault"}}, &uids{kinds: []string{"XShop", "XVault"}}

		return map[string]*shape{
			"uids": {
				reason: "Connection secrets that are named from an XR's UID, as Crossplane v1 documented it, keep their values under the names that Crossplane asks for.",
				Scene:  drill.Scene{Count: 3}, last: beside.remember, check: beside.wantRenamed,
			},
			"elsewhere": {
				reason: "So do those in a namespace that is not in the backup.",
				Scene: drill.Scene{
					Dir: "uids", Count: 2, Store: "elsewhere-store",
					BackupArgs: []string{"--include-namespaces", "elsewhere"}, RestoreArgs: []string{"--include-namespaces", "elsewhere"},
				},
				target: "target.yaml", last: beyond.remember, check: beyond.wantRenamed,
			},
		}
	}
	carried, named, fixed := &uids{kinds: []string{"Shop", "Vault"}}, &uids{kinds: []string{"Shop"}}, &uids{kinds: []string{"Shop"}}

	return map[string]*shape{
		"uids": {
			reason: "Connection secrets, labels and fields of XRs that have the UID of an XR above have the new one, and nothing else changes.",
			Scene:  drill.Scene{Count: 3, Size: 24}, last: carried.remember, restoring: restoreTwice, check: carried.wantRenamed,
		},
		"uids-named": {
			reason: "An external-name that is made from an XR's UID never changes: the XR is held until a user has changed the Composition and releases it by force.",
			Scene:  drill.Scene{Count: 2, Size: 8}, last: named.remember, restoring: named.releaseNamed, check: named.wantNamesKept,
		},
		"uids-fixed": {
			reason: "An XR whose UID is in an immutable field is held with what the API server says, until a user deletes the object.",
			Scene:  drill.Scene{Count: 2, Size: 6}, last: fixed.remember, restoring: fixed.deleteFixed, check: fixed.wantNamesKept,
		},
	}
}

// uids are the UIDs of a world's XRs in the source.
type uids struct {
	kinds []string
	// before are the UIDs by kind and name.
	before map[string]types.UID
	names  map[string]string
}

// remember keeps the UIDs of the XRs, and the external-names.
func (u *uids) remember(ctx context.Context, c *stack.Cluster, s drill.Scene) (err error) {
	if u.before, err = u.of(ctx, c, s); err != nil {
		return err
	}
	u.names, err = u.externalNames(ctx, c, s)

	return err
}

func (u *uids) of(ctx context.Context, c *stack.Cluster, s drill.Scene) (map[string]types.UID, error) {
	all := map[string]types.UID{}
	for _, kind := range u.kinds {
		namespace := s.Name
		if strings.HasPrefix(kind, "X") {
			namespace = ""
		}
		xrs, err := list(ctx, c, schema.GroupVersionKind{Group: s.Name + ".example.org", Version: "v1alpha1", Kind: kind}, namespace, "")
		if err != nil {
			return nil, err
		}
		for _, xr := range xrs {
			all[kind+" "+xr.GetName()] = xr.GetUID()
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are no %v", u.kinds)
	}

	return all, nil
}

// externalNames returns the external-names of the scene's buckets and databases of Crossplane v2.
func (u *uids) externalNames(ctx context.Context, c *stack.Cluster, s drill.Scene) (map[string]string, error) {
	all := map[string]string{}
	if isRoot(u.kinds[0]) {
		return all, nil
	}
	for _, kind := range []string{"Bucket", "Database"} {
		mrs, err := list(ctx, c, schema.GroupVersionKind{Group: "cloud.m.example.org", Version: "v1alpha1", Kind: kind}, s.Name, "")
		if err != nil {
			return nil, err
		}
		for _, mr := range mrs {
			all[kind+" "+mr.GetName()] = mr.GetAnnotations()["crossplane.io/external-name"]
		}
	}

	return all, nil
}

// isRoot reports whether a kind is that of XRs of Crossplane v1 that have a claim.
func isRoot(kind string) bool {
	return strings.HasPrefix(kind, "XShop") || strings.HasPrefix(kind, "XKey")
}

// wantRenamed expects the scene to be unchanged but for the UIDs of XRs, which are the new ones
// wherever the old ones were. Crossplane v1 itself names the Secret of an XR with a claim after the
// UID that the XR has when it is created, and that name stays.
func (u *uids) wantRenamed(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	now, err := u.of(t.Context(), s.target, n.Scene)
	must(t, err)
	var pairs []string
	own := map[string]bool{}
	for name, uid := range u.before {
		if now[name] == "" || now[name] == uid {
			t.Errorf("%s\n%s has the UID %q, before %q", n.reason, name, now[name], uid)
		}
		pairs = append(pairs, string(uid), string(now[name]))
		own[string(uid)] = isRoot(name)
	}
	replacer := strings.NewReplacer(pairs...)
	text := func(p drill.Picture, replace bool) map[string]string {
		all := map[string]string{}
		for name, l := range p {
			if strings.HasPrefix(name, "Secret") {
				l.Managers = nil // See wantReached.
			}
			if len(l.Labels) == 0 {
				l.Labels = nil
			}
			if len(l.Annotations) == 0 {
				l.Annotations = nil
			}
			b, err := json.MarshalIndent(l, "", " ") //nolint:musttag // It is only compared with another.
			must(t, err)
			likeness := string(b)
			if replace && !isRoot(name) && !own[name[strings.LastIndexByte(name, '/')+1:]] {
				name, likeness = replacer.Replace(name), replacer.Replace(likeness)
			}
			all[name] = likeness
		}

		return all
	}
	if diff := cmp.Diff(text(n.picture, true), text(after, false)); diff != "" {
		t.Errorf("%s\n-before with the new UIDs, +after:\n%s", n.reason, diff)
	}
}

// restoreTwice restores a world once more when it is adopted. That changes nothing.
func restoreTwice(t *testing.T, s *suite, n *shape) {
	t.Helper()
	s.awaitCompleted(t, n.Name)
	_, err := s.target.Velero(t.Context(), "restore", "create", n.Name+"-again", "--from-backup", n.Name, "--include-namespaces", n.Name)
	must(t, err)
	s.awaitCompleted(t, n.Name+"-again")
}

// releaseNamed changes the Composition, as the message advises, and releases the XRs by force.
func (u *uids) releaseNamed(t *testing.T, s *suite, n *shape) {
	t.Helper()
	ctx := t.Context()
	s.eventually(t, "the XRs to be held for external-names from their UIDs", func(ctx context.Context) error {
		return u.eachXR(ctx, s.target, n.Scene, func(xr *unstructured.Unstructured) error {
			if mark := markOf(xr); !strings.Contains(mark, "UIDInIdentity") || xr.GetAnnotations()["crossplane.io/paused"] != "true" {
				return fmt.Errorf("the mark of %s is %s", xr.GetName(), mark)
			}

			return nil
		})
	})
	must(t, n.Cure(ctx, s.target))
	s.eventually(t, "a revision of the changed Composition", func(ctx context.Context) error {
		revisions, err := list(ctx, s.target, schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}, "",
			"crossplane.io/composition-name="+n.Name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(revisions, func(r unstructured.Unstructured) bool {
			return strings.Contains(fmt.Sprint(r.Object["spec"]), "spec.id")
		}) {
			return fmt.Errorf("there are %v", names(revisions))
		}

		return nil
	})
	must(t, u.eachXR(ctx, s.target, n.Scene, func(xr *unstructured.Unstructured) error {
		objects, err := s.target.Resource(ctx, xr.GroupVersionKind(), xr.GetNamespace())
		if err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"spec": {"id": %q}}`, u.before["Shop "+xr.GetName()])
		_, err = objects.Patch(ctx, xr.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})

		return err
	}))
	r := command(t, s.target, "release", "--restore", n.Name, "--force", "--yes")
	if said := r.stdout + r.stderr; r.code != 0 || !strings.Contains(said, "UIDInIdentity") {
		t.Errorf("release --force does not give the consequence: %+v", r)
	}
	t.Logf("release --force: %s%s", r.stderr, r.stdout)
}

// eachXR calls do for each Shop of the scene.
func (u *uids) eachXR(ctx context.Context, c *stack.Cluster, s drill.Scene, do func(xr *unstructured.Unstructured) error) error {
	xrs, err := list(ctx, c, schema.GroupVersionKind{Group: s.Name + ".example.org", Version: "v1alpha1", Kind: "Shop"}, s.Name, "")
	if err != nil {
		return err
	}
	if len(xrs) != s.Count {
		return fmt.Errorf("there are %v", names(xrs))
	}
	var errs []error
	for _, xr := range xrs {
		errs = append(errs, do(&xr))
	}

	return errors.Join(errs...)
}

// deleteFixed deletes the Deployments that Crossplane can't change, as the message advises.
func (u *uids) deleteFixed(t *testing.T, s *suite, n *shape) {
	t.Helper()
	s.eventually(t, "the XRs to be held with what the API server says", func(ctx context.Context) error {
		return u.eachXR(ctx, s.target, n.Scene, func(xr *unstructured.Unstructured) error {
			if mark := markOf(xr); !strings.Contains(mark, "field is immutable") || !strings.Contains(mark, "UIDInImmutable") {
				return fmt.Errorf("the mark of %s is %s", xr.GetName(), mark)
			}

			return nil
		})
	})
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	all, err := list(t.Context(), s.target, deployments, n.Name, "")
	must(t, err)
	for _, d := range all {
		remove(t, s.target, deployments, n.Name, d.GetName())
	}
}

// wantNamesKept expects the external-names of before, and no change in the cloud.
func (u *uids) wantNamesKept(t *testing.T, s *suite, n *shape, after drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	names, err := u.externalNames(t.Context(), s.target, n.Scene)
	must(t, err)
	if diff := cmp.Diff(u.names, names); diff != "" || len(names) == 0 {
		t.Errorf("%s\nexternal-names: -before, +after:\n%s", n.reason, diff)
	}
	now, err := u.of(t.Context(), s.target, n.Scene)
	must(t, err)
	secrets := func(p drill.Picture) (fields []string) {
		for _, name := range slices.Sorted(maps.Keys(p)) {
			if strings.HasPrefix(name, "Secret ") {
				fields = append(fields, fmt.Sprint(p[name].Fields))
			}
		}
		slices.Sort(fields)

		return fields
	}
	if diff := cmp.Diff(secrets(n.picture), secrets(after)); diff != "" {
		t.Errorf("%s\nconnection secrets: -before, +after:\n%s", n.reason, diff)
	}
	for _, uid := range now {
		renamed := slices.ContainsFunc(slices.Collect(maps.Keys(after)), func(name string) bool { return strings.Contains(name, string(uid)+"-database") })
		if renamed != (len(secrets(after)) > 0) {
			t.Errorf("%s\nThe connection secret of the XR with the UID %s: %v", n.reason, uid, renamed)
		}
	}
}

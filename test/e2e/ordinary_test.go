package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// ordinary is the namespace, and the value of the label judge on all its objects.
const (
	ordinary         = "ordinary"
	selectorOrdinary = "judge=" + ordinary
	annotationOwner  = "test/owner"
)

// testOrdinary backs up and restores objects that are not Crossplane's, with the plugin and without
// it. There may be no difference.
func (s *suite) testOrdinary(t *testing.T) {
	ctx := t.Context()
	kinds := s.makeOrdinary(t)
	args := []string{"--selector", selectorOrdinary, clusterResources + "=true", "--snapshot-volumes=false"}
	before := len(asked(t, s.target, 0))
	backupWith(t, s.target, "ordinary-with", args...)
	wantNothingAsked(t, "a backup", asked(t, s.target, before))
	must(t, s.target.UsePlugin(ctx, false))
	backupWith(t, s.target, "ordinary-without", args...)
	files := contents(t, s.target, "ordinary-without")
	wantAlike(t, "the files of a backup", files, contents(t, s.target, "ordinary-with"))
	if len(files) < 2*len(s.listed(t, kinds)) {
		t.Errorf("the backup has no more than %v", slices.Sorted(maps.Keys(files)))
	}

	s.loseOrdinary(t, kinds)
	alone := s.restoreOrdinary(t, kinds, "ordinary-alone", "ordinary-without")
	s.loseOrdinary(t, kinds)
	must(t, s.target.UsePlugin(ctx, true))
	before = len(asked(t, s.target, 0))
	ours := s.restoreOrdinary(t, kinds, "ordinary-ours", "ordinary-with")
	wantNothingAsked(t, "a restore", asked(t, s.target, before))
	wantAlike(t, "what a restore brings and says", alone, ours)
	s.loseOrdinary(t, kinds)
}

// restoreOrdinary restores, and returns the objects, the status and the results as texts, without what varies.
func (s *suite) restoreOrdinary(t *testing.T, kinds []schema.GroupVersionKind, name, backup string) map[string]string {
	t.Helper()
	must(t, drill.Platform{}.StartRestore(t.Context(), s.target, name, backup, clusterResources+"=true"))
	u, err := drill.AwaitRestore(t.Context(), s.target, name)
	must(t, err)
	if phase := drill.Phase(u); phase != "Completed" {
		t.Errorf("%s is %s: %s", name, phase, drill.Problems(t.Context(), s.target, name))
	}
	status, _ := u.Object["status"].(map[string]any)
	all := map[string]string{"warnings": fmt.Sprint(status["warnings"]), "errors": fmt.Sprint(status["errors"]), "progress": fmt.Sprint(status["progress"])}
	details := s.details(t, name)
	_, results, _ := strings.Cut(details, "\nWarnings:")
	all["results"], _, _ = strings.Cut(results, "\nBackup:")
	_, all["resources"], _ = strings.Cut(details, "\nResource List:")
	for name, u := range s.listed(t, kinds) {
		b, err := u.MarshalJSON()
		must(t, err)
		all[name] = string(b)
	}
	for name, text := range all {
		all[name] = varies.ReplaceAllString(text, "")
	}

	return all
}

// wantAlike compares texts by name.
func wantAlike(t *testing.T, what string, without, with any) {
	t.Helper()
	if diff := gocmp.Diff(without, with); diff != "" {
		t.Errorf("%s: -without the plugin, +with it:\n%s", what, diff)
	}
}

// makeOrdinary creates the objects, with their owners, and returns their kinds.
func (s *suite) makeOrdinary(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	ctx := t.Context()
	must(t, s.target.ApplyFiles(ctx, filepath.Join("testdata", ordinary, "definitions.yaml")))
	b, err := os.ReadFile(filepath.Join("testdata", ordinary, "objects.yaml"))
	must(t, err)
	objects, err := stack.Parse(b)
	must(t, err)
	made := map[string]*unstructured.Unstructured{}
	kinds := []schema.GroupVersionKind{{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}}
	for _, u := range objects {
		if owner := made[u.GetAnnotations()[annotationOwner]]; owner != nil {
			u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
		}
		must(t, s.target.ApplyObjects(ctx, u))
		live, err := get(ctx, s.target, u.GroupVersionKind(), u.GetNamespace(), u.GetName())
		must(t, err)
		made[u.GetKind()+" "+u.GetName()] = live
		if !slices.Contains(kinds, u.GroupVersionKind()) {
			kinds = append(kinds, u.GroupVersionKind())
		}
		if _, ok := u.Object["status"]; ok {
			must(t, s.target.ApplyStatus(ctx, u))
		}
	}
	must(t, s.target.RestartVelero(ctx)) // It discovers new kinds only every five minutes.

	return kinds
}

// listed returns the objects of the kinds by kind and name.
func (s *suite) listed(t *testing.T, kinds []schema.GroupVersionKind) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		objects, err := list(t.Context(), s.target, kind, ordinary, selectorOrdinary)
		must(t, err)
		for _, u := range objects {
			all[kind.String()+" "+u.GetName()] = &u
		}
	}

	return all
}

// loseOrdinary deletes all of them, and waits until they are gone.
func (s *suite) loseOrdinary(t *testing.T, kinds []schema.GroupVersionKind) {
	t.Helper()
	must(t, s.target.Wait(t.Context(), patience, "the ordinary objects to be gone", func(ctx context.Context) error {
		left := s.listed(t, slices.DeleteFunc(slices.Clone(kinds), func(k schema.GroupVersionKind) bool { return k.Kind == "CustomResourceDefinition" }))
		for _, u := range left {
			r, err := s.target.Resource(ctx, u.GroupVersionKind(), u.GetNamespace())
			if err != nil {
				return err
			}
			if len(u.GetFinalizers()) > 0 && u.GetKind() != "Namespace" {
				err = drill.Patch(ctx, s.target, u, map[string]any{"metadata": map[string]any{"finalizers": nil}})
			}
			now := int64(0)
			if err := errors.Join(err, r.Delete(ctx, u.GetName(), metav1.DeleteOptions{GracePeriodSeconds: &now})); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("%d are left", len(left))
		}

		return nil
	}))
}

func isOrdinary(r stack.Request) bool {
	return r.Group != "velero.io" && (r.Namespace == ordinary || strings.HasPrefix(r.Name, ordinary))
}

// wantNothingAsked expects the plugin to have made no request about the ordinary objects, and no
// more requests than it always makes.
func wantNothingAsked(t *testing.T, what string, requests []stack.Request) {
	t.Helper()
	const most = 10
	if len(requests) > most {
		t.Errorf("the plugin has made %d requests for %s: %v", len(requests), what, requests)
	}
	for _, r := range requests {
		if isOrdinary(r) || r.Verb != "get" && r.Verb != "list" {
			t.Errorf("the plugin has made the request %s %s for %s", r.Verb, r.URI, what)
		}
		t.Logf("for %s: %s %s", what, r.Verb, r.URI)
	}
}

// varies matches what differs between two restores of the same backup: UIDs, numbers of changes, times, names of
// the Backup and the Restore, and the addresses, ports and volumes of tokens that the API server chooses.
var varies = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|"resourceVersion":"\d+"|\d{4}-\d\d-\d\dT[^"]*Z|ordinary-(alone|ours|without|with)|` +
	`"10\.\d+\.\d+\.\d+"|"nodePort":\d+|kube-api-access-[a-z0-9]{5}`)

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
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
	with := s.watched(t, func() { backupWith(t, s.target, "ordinary-with", args...) })
	must(t, s.target.UsePlugin(ctx, false))
	without := s.watched(t, func() { backupWith(t, s.target, "ordinary-without", args...) })

	t.Run("BackedUp", func(t *testing.T) {
		files := contents(t, s.target, "ordinary-without")
		wantAlike(t, "the files of a backup", files, contents(t, s.target, "ordinary-with"))
		wantDifferent(t, files)
		if len(files) < 2*len(s.listed(t, kinds)) {
			t.Errorf("the backup has no more than %v", slices.Sorted(maps.Keys(files)))
		}
		wantAlike(t, "the requests of a backup", without.velero, with.velero)
		wantNothingAsked(t, "a backup", with.plugin)
	})

	var alone, ours restoreResult
	s.loseOrdinary(t, kinds)
	alone.observedRequests = s.watched(t, func() { s.restoreOrdinary(t, "ordinary-alone", "ordinary-without") })
	alone.read(t, s, kinds, "ordinary-alone")
	s.loseOrdinary(t, kinds)
	must(t, s.target.UsePlugin(ctx, true))
	ours.observedRequests = s.watched(t, func() { s.restoreOrdinary(t, "ordinary-ours", "ordinary-with") })
	ours.read(t, s, kinds, "ordinary-ours")

	t.Run("Restored", func(t *testing.T) {
		wantAlike(t, "the objects", normalised(t, alone.objects), normalised(t, ours.objects))
		wantDifferent(t, normalised(t, ours.objects))
		wantAlike(t, "the status and results of the restore", alone.said, ours.said)
		wantAlike(t, "the requests of a restore", alone.velero, ours.velero)
		wantNothingAsked(t, "a restore", ours.plugin)
	})
	s.loseOrdinary(t, kinds)
}

// wantAlike compares texts by name.
func wantAlike(t *testing.T, what string, without, with any) {
	t.Helper()
	if diff := gocmp.Diff(without, with); diff != "" {
		t.Errorf("%s: -without the plugin, +with it:\n%s", what, diff)
	}
}

// wantDifferent checks that the comparison sees a change of one byte.
func wantDifferent(t *testing.T, texts map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		changed := maps.Clone(texts)
		b := []byte(changed[name])
		b[len(b)/2] ^= 1
		changed[name] = string(b)
		if gocmp.Equal(texts, changed) {
			t.Fatalf("a change of %s is not seen", name)
		}
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

// restoreOrdinary restores and waits until the restore has ended, in any phase: the phase must be
// the same with and without the plugin.
func (s *suite) restoreOrdinary(t *testing.T, name, backup string) {
	t.Helper()
	n := drill.Platform{Namespace: ordinary}
	must(t, n.StartRestore(t.Context(), s.target, name, backup, clusterResources+"=true"))
	_, err := drill.AwaitRestore(t.Context(), s.target, name)
	must(t, err)
}

// observedRequests are the requests to the API server: Velero's about the ordinary objects, its writes in
// order and then its reads, and the plugin's.
type observedRequests struct {
	velero []string
	plugin []stack.Request
}

func (s *suite) watched(t *testing.T, do func()) observedRequests {
	t.Helper()
	before, err := s.target.Requests(t.Context())
	must(t, err)
	do()
	all, err := s.target.Requests(t.Context())
	must(t, err)
	var w observedRequests
	reads := map[string]bool{}
	for _, r := range all[len(before):] {
		switch {
		case r.UserAgent == plugin:
			w.plugin = append(w.plugin, r)
		case strings.HasPrefix(r.UserAgent, "velero") && isOrdinary(r) && r.Verb != "watch":
			request := fmt.Sprintf("%s %s/%s/%s %s/%s %d", r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name, r.Code)
			if r.Verb == "get" || r.Verb == "list" {
				reads[request] = true // It polls a new namespace until it exists.
			} else {
				w.velero = append(w.velero, request)
			}
		}
	}
	w.velero = append(w.velero, slices.Sorted(maps.Keys(reads))...)
	if len(w.velero) == 0 {
		t.Error("Velero has made no request")
	}

	return w
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

// A restoreResult is a restore and its results.
type restoreResult struct {
	observedRequests

	objects map[string]*unstructured.Unstructured
	said    map[string]any
}

func (r *restoreResult) read(t *testing.T, s *suite, kinds []schema.GroupVersionKind, name string) {
	t.Helper()
	r.objects = s.listed(t, kinds)
	u, err := get(t.Context(), s.target, schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Restore"}, "velero", name)
	must(t, err)
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	r.said = map[string]any{}
	for _, field := range []string{"phase", "warnings", "errors", "progress", "validationErrors", "failureReason"} {
		r.said[field] = status[field]
	}
	if r.said["phase"] != "Completed" {
		t.Errorf("%s is %v: %s", name, r.said["phase"], drill.Problems(t.Context(), s.target, name))
	}
	// These are the results and warnings, without the names of the Restore and the Backup.
	details, err := s.target.Velero(t.Context(), "restore", "describe", name, "--details")
	must(t, err)
	_, results, _ := strings.Cut(details, "\nWarnings:")
	results, _, _ = strings.Cut(results, "\nBackup:")
	_, resources, _ := strings.Cut(details, "\nResource List:")
	if resources == "" {
		t.Errorf("there is no list of resources in %s", details)
	}
	r.said["warnings of each"], r.said["resources"] = results, resources
}

// A variation is a field that differs between two restores of the same backup, and the reason.
type variation struct {
	reason string
	of     func(u *unstructured.Unstructured)
}

func without(path ...string) func(u *unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, path...) }
}

// edit edits an object as a text.
func edit(u *unstructured.Unstructured, change func(text []byte) []byte) {
	b, err := u.MarshalJSON()
	if err == nil {
		_ = u.UnmarshalJSON(change(b)) // The result is compared.
	}
}

var volumeOfToken = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}`)

func variations() []variation {
	return []variation{
		{"The API server has a Job select its Pods by its UID.", func(u *unstructured.Unstructured) {
			if u.GetKind() == "Job" {
				edit(u, func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(u.GetUID()), []byte("UID")) })
			}
		}},
		{"The API server makes a UID for each object.", without("metadata", "uid")},
		{"The API server numbers each change.", without("metadata", "resourceVersion")},
		{"It is made at another time.", without("metadata", "creationTimestamp")},
		{"The API server notes when the phase of a volume has changed.", without("status", "lastPhaseTransitionTime")},
		{"Velero writes the name of the Restore.", without("metadata", "labels", "velero.io/restore-name")},
		{"Velero writes the name of the Backup.", without("metadata", "labels", "velero.io/backup-name")},
		{"Each writer's time is written.", func(u *unstructured.Unstructured) {
			fields := u.GetManagedFields()
			for i := range fields {
				fields[i].Time = nil
			}
			u.SetManagedFields(fields)
		}},
		{"The API server chooses addresses; Velero does not restore them.", func(u *unstructured.Unstructured) {
			if ip, _, _ := unstructured.NestedString(u.Object, "spec", "clusterIP"); u.GetKind() == "Service" && ip != "None" {
				without("spec", "clusterIP")(u)
				without("spec", "clusterIPs")(u)
			}
		}},
		{"The API server chooses node ports; Velero does not restore those that it chose.", func(u *unstructured.Unstructured) {
			ports, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
			for _, p := range ports {
				if m, ok := p.(map[string]any); ok && u.GetKind() == "Service" {
					delete(m, "nodePort")
				}
			}
			if len(ports) > 0 {
				_ = unstructured.SetNestedSlice(u.Object, ports, "spec", "ports") // It was just read.
			}
		}},
		{"The API server names the volume of a Pod's token.", func(u *unstructured.Unstructured) {
			edit(u, func(text []byte) []byte { return volumeOfToken.ReplaceAll(text, []byte("kube-api-access")) })
		}},
	}
}

// normalised returns the objects as texts, without the variations. It fails if no object has one of
// them: then that variation is not needed.
func normalised(t *testing.T, objects map[string]*unstructured.Unstructured) map[string]string {
	t.Helper()
	all := map[string]string{}
	used := make([]bool, len(variations()))
	for name, u := range objects {
		u = u.DeepCopy()
		for i, v := range variations() {
			before := asJSON(t, u)
			v.of(u)
			used[i] = used[i] || !bytes.Equal(before, asJSON(t, u))
		}
		all[name] = string(asJSON(t, u))
	}
	for i, v := range variations() {
		if !used[i] {
			t.Errorf("nothing varies like that: %s", v.reason)
		}
	}

	return all
}

func asJSON(t *testing.T, u *unstructured.Unstructured) []byte {
	t.Helper()
	b, err := json.MarshalIndent(u.Object, "", " ")
	must(t, err)

	return b
}

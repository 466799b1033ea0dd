package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// settled is a namespace whose restore has settings, misread one whose settings are invalid.
const (
	settled = "settled"
	misread = "misread"
)

// makeSettled fills the namespaces and backs them up.
func (s *suite) makeSettled(t *testing.T) []*tenant {
	t.Helper()
	tenants := []*tenant{s.few(t, s.source, drill.Platform{Namespace: settled}, 2), s.few(t, s.source, drill.Platform{Namespace: misread}, 1)}
	for _, n := range tenants {
		s.backUp(t, s.source, n)
	}

	return tenants
}

// testSettings restores with a timeout that expires before the provider is there, and has a user
// release what is held. It also restores with invalid settings.
func (s *suite) testSettings(t *testing.T, tenants []*tenant) {
	n, odd := tenants[0], tenants[1]
	t.Run("Cluster", s.testClusterSettings)
	t.Run("AdoptionTimeout", func(t *testing.T) { s.testAdoptionTimeout(t, n) })
	t.Run("ByHand", func(t *testing.T) { s.testByHand(t, n) })
	t.Run("Misread", func(t *testing.T) { s.testMisreadSettings(t, odd) })
}

// effective is the output of the command settings: the value and source of each setting that is
// set, and each fault by its source.
type effective struct {
	Set, Faults map[string]string
}

func (s *suite) effective(t *testing.T, code int, args ...string) effective {
	t.Helper()
	r := command(t, s.target, append([]string{"settings", "-o", "json"}, args...)...)
	if r.code != code {
		t.Errorf("settings %v ended with %d: %s%s", args, r.code, r.stdout, r.stderr)
	}
	var printed struct {
		Settings []struct {
			Name   string `json:"name"`
			Value  string `json:"value"`
			Source string `json:"source"`
		} `json:"settings"`
		Faults []struct {
			Name   string `json:"name"`
			Place  string `json:"place"`
			Reason string `json:"reason"`
			Next   string `json:"next"`
		} `json:"faults"`
	}
	must(t, json.Unmarshal([]byte(r.stdout), &printed))
	e := effective{Set: map[string]string{}, Faults: map[string]string{}}
	for _, p := range printed.Settings {
		if p.Source != "default" {
			e.Set[p.Name] = p.Value + " from " + p.Source
		}
	}
	for _, f := range printed.Faults {
		if f.Reason == "" || f.Next == "" {
			t.Errorf("settings %v: %+v has no reason or no next step", args, f)
		}
		e.Faults[f.Place] += f.Name
	}

	return e
}

// testClusterSettings creates the example's ConfigMap in the cluster, and then a second one.
func (s *suite) testClusterSettings(t *testing.T) {
	ctx := t.Context()
	root, err := build.Root()
	must(t, err)
	b, err := os.ReadFile(filepath.Join(root, "example", "settings.yaml"))
	must(t, err)
	objects, err := stack.Parse(b)
	must(t, err)
	config := objects[0]
	must(t, unstructured.SetNestedField(config.Object, "30m", "data", "adoption-timeout"))
	other := config.DeepCopy()
	other.SetName("other")
	configs, err := s.target.Resource(ctx, config.GroupVersionKind(), "velero")
	must(t, err)

	if diff := cmp.Diff(effective{Set: map[string]string{}, Faults: map[string]string{}}, s.effective(t, 0)); diff != "" {
		t.Errorf("without anything all is as by default: -want, +got:\n%s", diff)
	}
	must(t, s.target.ApplyObjects(ctx, config))
	e := s.effective(t, 0)
	all, _, _ := unstructured.NestedMap(config.Object, "data")
	if want := "30m from ConfigMap velero/" + config.GetName(); e.Set["adoption-timeout"] != want || len(e.Set) != len(all) {
		t.Errorf("the ConfigMap has all settings; got %+v", e)
	}
	must(t, s.target.ApplyObjects(ctx, other))
	want := effective{Set: map[string]string{}, Faults: map[string]string{"ConfigMap velero/" + config.GetName(): "", "ConfigMap velero/other": ""}}
	if diff := cmp.Diff(want, s.effective(t, 3)); diff != "" {
		t.Errorf("of two ConfigMaps none is in force: -want, +got:\n%s", diff)
	}
	for _, name := range []string{config.GetName(), "other"} {
		must(t, configs.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	if r := command(t, s.target, "settings", "--restore", "none-such"); r.code != 1 || !strings.Contains(r.stderr, "cannot find the Restore velero/none-such") {
		t.Errorf("settings of nothing ended with %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

// testMisreadSettings checks that a restore with an unknown value restores all, and that everything
// stays held until a user releases it.
func (s *suite) testMisreadSettings(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target, misread, misread, "--annotations", "velero.crossplane.io/release=manual"))
	r, err := drill.AwaitRestore(ctx, s.target, misread)
	must(t, err)
	if failed, _, _ := unstructured.NestedInt64(r.Object, "status", "restoreItemOperationsFailed"); drill.Phase(r) != "PartiallyFailed" || failed != 1 {
		t.Errorf("a restore with a setting that is not known is %s, and %d operations have failed", drill.Phase(r), failed)
	}
	wantMessage(t, "the details of the restore", s.details(t, misread), "velero.crossplane.io/release", `release is automatic or by-hand, not "manual"`,
		"release --restore velero/"+misread)
	mrs, err := n.Managed(ctx, s.target)
	must(t, err)
	all := append(s.roots(t, n), mrs...)
	if want := n.size * 4; len(all) != want {
		t.Errorf("%d of %d are back: %v", len(all), want, names(all))
	}
	for _, u := range all {
		if !paused(&u) {
			t.Errorf("%s %s is not held", u.GetKind(), u.GetName())
		}
	}
	if e := s.effective(t, 3, "--restore", misread); e.Faults["Restore velero/"+misread] != "velero.crossplane.io/release" {
		t.Errorf("settings prints %+v", e)
	}
	s.released(t, "--restore", misread)
	s.settle(t, n)
	s.wantSound(t, n)
}

// testAdoptionTimeout checks that the restore gives up when its own timeout expires.
func (s *suite) testAdoptionTimeout(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, s.target.Stop(stack.CloudProvider))
	must(t, n.StartRestore(ctx, s.target, settled, settled,
		"--annotations", "velero.crossplane.io/adoption-timeout=1s,velero.crossplane.io/release=by-hand"))
	r, err := drill.AwaitRestore(ctx, s.target, settled)
	must(t, err)
	if drill.Phase(r) != "PartiallyFailed" {
		t.Errorf("a restore of which the time is over is %s", drill.Phase(r))
	}
	const why = "not adopted within 1s, the setting adoption-timeout of the Restore velero/" + settled
	wantMessage(t, "the details of the restore", s.details(t, settled), why)
	xrs, err := n.Composites(ctx, s.target)
	must(t, err)
	if len(xrs) < n.size {
		t.Errorf("only %v are back", names(xrs))
	}
	for _, u := range xrs {
		if mark := u.GetAnnotations()[annotationHold]; !paused(&u) || !strings.Contains(mark, why) || !strings.Contains(mark, "its provider has not observed it yet") {
			t.Errorf("XR %s is not held with the reason: %s", u.GetName(), mark)
		}
	}
	s.eventually(t, "an Event for each XR", func(ctx context.Context) error { return s.explained(ctx, n) })
	want := effective{Faults: map[string]string{}, Set: map[string]string{
		"adoption-timeout": "1s from Restore velero/" + settled, "release": "by-hand from Restore velero/" + settled,
	}}
	if diff := cmp.Diff(want, s.effective(t, 0, "--restore", settled)); diff != "" {
		t.Errorf("-want, +effective:\n%s", diff)
	}
	must(t, s.target.Start(ctx, stack.CloudProvider))
}

// testByHand restores again what waits for a user. The restore is Completed when all is ready.
// Nothing is released until the user runs release.
func (s *suite) testByHand(t *testing.T, n *tenant) {
	s.restore(t, n, settled+"-again")
	wantMessage(t, "the details of the restore", s.details(t, settled+"-again"), "[AwaitingUser]", "release --restore velero/"+settled)
	held := s.wantByHand(t, n)
	for _, u := range s.roots(t, n) {
		if mark := markOf(&u); !strings.Contains(mark, "[AwaitingUser]") {
			t.Errorf("%s does not report that it is ready: %s", u.GetName(), mark)
		}
	}
	s.awaitCall(t, s.target, n, s.last(t), api.Read)
	reported := 0
	for _, p := range s.validate(t, 3, "-n", n.Namespace).Problems {
		if p.Code == "Held" && strings.HasSuffix(p.Next, "release --restore velero/"+settled) {
			reported++
		}
	}
	if reported != held {
		t.Errorf("validate names %d of %d", reported, held)
	}
	for _, r := range s.released(t, "-n", n.Namespace) {
		if r["result"] != "left-alone" {
			t.Errorf("release without a name: %v", r)
		}
	}
	s.wantByHand(t, n)

	releases := s.released(t, "--restore", settled)
	for _, r := range releases {
		if r["result"] != "released" {
			t.Errorf("%v", r)
		}
	}
	if len(releases) != held {
		t.Errorf("%d of %d are released", len(releases), held)
	}
	s.settle(t, n)
	s.wantSound(t, n)
}

// wantByHand checks that all XRs and claims are held until a user releases them, and so are the MRs
// that are held. It returns the number of held objects.
func (s *suite) wantByHand(t *testing.T, n *tenant) int {
	t.Helper()
	mrs, err := n.Managed(t.Context(), s.target)
	must(t, err)
	roots, held := s.roots(t, n), 0
	for i, u := range append(roots, mrs...) {
		mark := markOf(&u)
		if mark == "" && i >= len(roots) {
			continue // It is an MR that needs no hold.
		}
		var h struct {
			ByHand  bool   `json:"releaseByHand"`
			Restore string `json:"restore"`
		}
		if err := json.Unmarshal([]byte(mark), &h); err != nil || !h.ByHand || h.Restore != "velero/"+settled || !paused(&u) {
			t.Errorf("%s %s is not held for a user: %v", u.GetKind(), u.GetName(), u.GetAnnotations())
		}
		held++
	}

	return held
}

// markOf returns the mark of a hold on an XR, a claim or an MR.
func markOf(u *unstructured.Unstructured) string {
	return u.GetAnnotations()[annotationHold]
}

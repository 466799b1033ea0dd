package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
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

// effective is what the command settings prints: the value and source of each setting that is set,
// and each fault by its source.
type effective struct {
	Set, Faults map[string]string
}

func (s *suite) wantSettings(t *testing.T, code int, want effective, args ...string) {
	t.Helper()
	r := command(t, s.target, append([]string{"settings", "-o", "json"}, args...)...)
	var printed struct {
		Settings, Faults []struct{ Name, Value, Source, Place, Next string }
	}
	must(t, json.Unmarshal([]byte(r.stdout), &printed)) //nolint:musttag // The decoder ignores case, so the names are those of the report.
	got := effective{Set: map[string]string{}, Faults: map[string]string{}}
	for _, p := range printed.Settings {
		if p.Source != "default" {
			got.Set[p.Name] = p.Value + " from " + p.Source
		}
	}
	for _, f := range printed.Faults {
		if f.Next == "" {
			t.Errorf("settings %v: %+v has no next step", args, f)
		}
		got.Faults[f.Place] += f.Name
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || r.code != code {
		t.Errorf("settings %v ended with %d: %s -want, +got:\n%s", args, r.code, r.stderr, diff)
	}
}

// testClusterSettings creates the example's ConfigMap in the cluster, and then a second one.
func (s *suite) testClusterSettings(t *testing.T) {
	ctx := t.Context()
	config := (&tenant{}).example(t, "settings.yaml")[0]
	all, _, _ := unstructured.NestedStringMap(config.Object, "data")
	all["adoption-timeout"] = "30m"
	must(t, unstructured.SetNestedStringMap(config.Object, all, "data"))
	from := "ConfigMap velero/" + config.GetName()
	for name := range all {
		all[name] += " from " + from
	}
	other := config.DeepCopy()
	other.SetName("other")

	s.wantSettings(t, 0, effective{})
	must(t, s.target.ApplyObjects(ctx, config))
	s.wantSettings(t, 0, effective{Set: all})
	must(t, s.target.ApplyObjects(ctx, other))
	s.wantSettings(t, 3, effective{Faults: map[string]string{from: "", "ConfigMap velero/other": ""}})
	for _, u := range []*unstructured.Unstructured{config, other} {
		s.delete(t, u, metav1.DeletePropagationBackground)
	}
}

// testMisreadSettings checks that a restore with an unknown value restores all, and that everything
// stays held until a user releases it.
func (s *suite) testMisreadSettings(t *testing.T, n *tenant) {
	ctx := t.Context()
	must(t, n.StartRestore(ctx, s.target, misread, misread, "--annotations", "velero.crossplane.io/release=manual"))
	s.wantPhase(t, misread, "PartiallyFailed")
	wantMessage(t, "the details of the restore", s.details(t, misread), "velero.crossplane.io/release", "release --restore velero/"+misread)
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
	s.wantSettings(t, 3, effective{Faults: map[string]string{"Restore velero/" + misread: "velero.crossplane.io/release"}}, "--restore", misread)
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
	s.wantPhase(t, settled, "PartiallyFailed")
	const why = "not adopted within 1s, the setting adoption-timeout of the Restore velero/" + settled
	wantMessage(t, "the details of the restore", s.details(t, settled), why)
	if held := s.wantByHand(t, n); held < n.size {
		t.Errorf("only %d are back", held)
	}
	for _, u := range s.roots(t, n) {
		if !strings.Contains(markOf(&u), why) {
			t.Errorf("%s is not held with the reason: %s", u.GetName(), markOf(&u))
		}
	}
	s.eventually(t, "an Event for each XR", func(ctx context.Context) error { return s.explained(ctx, n) })
	s.wantSettings(t, 0, effective{Set: map[string]string{
		"adoption-timeout": "1s from Restore velero/" + settled, "release": "by-hand from Restore velero/" + settled,
	}}, "--restore", settled)
	must(t, s.target.Start(ctx, stack.CloudProvider))
}

// testByHand restores again what waits for a user. The restore is Completed when all is ready.
// Nothing is released until the user runs release.
func (s *suite) testByHand(t *testing.T, n *tenant) {
	s.restore(t, n, settled+"-again")
	wantMessage(t, "the details of the restore", s.details(t, settled+"-again"), "[AwaitingUser]", "release --restore velero/"+settled)
	held := s.wantByHand(t, n)
	for _, u := range s.roots(t, n) {
		if !strings.Contains(markOf(&u), "[AwaitingUser]") {
			t.Errorf("%s does not report that it is ready: %s", u.GetName(), markOf(&u))
		}
	}
	s.awaitCall(t, s.target, n, s.last(t), api.Read)
	reported := slices.DeleteFunc(s.validate(t, 3, "-n", n.Namespace).Problems, func(p problem) bool {
		return p.Code != "Held" || !strings.HasSuffix(p.Next, "release --restore velero/"+settled)
	})
	if len(reported) != held {
		t.Errorf("validate names %d of %d", len(reported), held)
	}
	for _, r := range s.released(t, "-n", n.Namespace) {
		if r["result"] != "left-alone" {
			t.Errorf("release without a name: %v", r)
		}
	}
	s.wantByHand(t, n)
	if releases := s.released(t, "--restore", settled); len(releases) != held {
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

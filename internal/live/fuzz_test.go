package live

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// FuzzAdopt polls a cluster in which a tenant has written anything into one object, beside what is somebody else's and held.
func FuzzAdopt(f *testing.F) {
	xptest.Seeds(func(animal uint8, patch []byte) { f.Add(animal, patch) })
	f.Fuzz(func(t *testing.T, animal uint8, patch []byte) {
		u, ok := xptest.Patched(animal, patch)
		if !ok || xp.CheckMetadata(u) != nil {
			return // No API server has such.
		}
		was := xptest.Zoo()[int(animal)%len(xptest.Zoo())]
		for _, field := range []string{"name", "namespace", "uid"} {
			xptest.Field(was.Object["metadata"].(map[string]any)[field], "metadata", field)(u) //nolint:forcetypeassert // It is one.
		}
		if was.GetNamespace() == "" {
			unstructured.RemoveNestedField(u.Object, "metadata", "namespace")
		}
		u.SetAPIVersion(was.GetAPIVersion())
		u.SetKind(was.GetKind())
		s := newServer()
		for gvr, kind := range map[string]string{"xorders": xptest.LegacyKind, "orderclaims": xptest.ClaimKind, "buckets": xptest.ManagedKind} {
			if u.GetKind() != kind {
				continue
			}
			if u.GetNamespace() != "" && gvr == "buckets" {
				return // The server has cluster-scoped ones.
			}
			xptest.Labelled("velero.io/restore-name", "monday")(u)
			s = newServer(u)
		}
		mr := xptest.MR("victim")
		xr := restored(xptest.XR("victim", xptest.Refs(mr)))
		s.put(xorders, xr)
		s.put(buckets, xptest.With(mr, xptest.ControlledBy(xr)))
		a := hasty(s)
		a.patience, a.limit = time.Nanosecond, time.Nanosecond
		plans, err := a.Adopt(t.Context(), adoption.Unverified, selector, xp.RefTo(u))
		if err != nil {
			t.Errorf("what a tenant writes stops the adoption of all: %v", err)
		}
		if _, ok := plans[xp.RefTo(xr).ID()]; len(plans) > 1 && !ok {
			t.Errorf("there is no plan for what is somebody else's: %v", plans)
		}
		_ = a.GiveUp(t.Context(), adoption.Unverified, xp.RefTo(u), "it is tested") // A mark that can't be read is an error.
		for _, action := range s.Actions() {
			if p, ok := action.(clienttesting.PatchActionImpl); ok && p.GetName() == mr.GetName() && p.GetResource() == buckets {
				t.Errorf("what somebody else composes was patched: %s", p.GetPatch())
			}
		}
	})
}

// FuzzInstallation finds out which Crossplane runs, and which settings there are, from what may say anything.
func FuzzInstallation(f *testing.F) {
	deployment := -1
	for n, u := range xptest.Zoo() {
		if u.GetKind() == "Deployment" {
			deployment = n
		}
	}
	for _, image := range []string{
		"v99", "", ":", "@sha256:0", "r/crossplane@sha256:abc", "r:5000/crossplane", "r/crossplane:latest", "r/crossplane:v1.2.3.4.5", "r/c:v99999999999999999999.0.0",
		"r/crossplane:v2.0.0-rc.0", "r/crossplane:1.", "r/crossplane:v-1.2",
	} {
		f.Add([]byte(`{"spec":{"template":{"spec":{"containers":[{"image":"` + image + `"}]}}},"metadata":{"labels":{"helm.sh/chart":"crossplane-` + image + `"}}}`))
	}
	for _, patch := range xptest.Hostile() {
		f.Add([]byte(patch))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		u, ok := xptest.Patched(uint8(deployment), patch) //nolint:gosec // The zoo is small.
		if !ok {
			return
		}
		i := adoption.Installation{Namespace: u.GetNamespace(), Name: u.GetName(), Version: versionOf(u), Replicas: 1, Ready: ready(u)}
		for _, about := range []*unstructured.Unstructured{xptest.XR("x"), xptest.MR("b"), u} {
			if why := adoption.Stuck(about, i); why == "" {
				t.Errorf("nothing is said of %s with Crossplane %q", xp.String(about), i.Version)
			}
		}
		_ = restoreFrom(u)
	})
}

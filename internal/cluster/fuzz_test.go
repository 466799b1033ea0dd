package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// FuzzInstallation reads an installation and Restores from an object with any content.
func FuzzInstallation(f *testing.F) {
	deployment := -1
	for n, u := range xptest.HostileObjects() {
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
		u, ok := xptest.Patched(uint8(deployment), patch) //nolint:gosec // There are few objects.
		if !ok {
			return
		}
		i := adoption.FindInstallation([]*unstructured.Unstructured{u})
		i.Replicas = 1
		for _, about := range []*unstructured.Unstructured{xptest.XR("x"), xptest.MR("b"), u} {
			if why := adoption.Stuck(about, i); why.IsZero() {
				t.Errorf("%s has no cause with Crossplane %q", xp.String(about), i.Version)
			}
		}
		_ = RestoreFrom(u)
	})
}

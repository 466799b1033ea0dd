package live

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A tag can have any content. With an unknown version only what holds for every version is
// reported.
func TestVersionOf(t *testing.T) {
	const old, unsure = "stops watching", "runs and does not reconcile it"
	cases := map[string]struct {
		reason, image string
		labels        []string
		want          string
		// cause is the probable cause of a pending reconcile.
		cause string
	}{
		"Release":      {reason: "The chart installs this image.", image: "xpkg.crossplane.io/crossplane/crossplane:v1.18.0", want: "1.18.0", cause: old},
		"Bare":         {reason: "A mirror may omit the v.", image: "r:5000/crossplane:2.1.0", want: "2.1.0", cause: unsure},
		"Unknown":      {reason: "A future version counts as a late one.", image: "r/crossplane:v99.0.0", want: "99.0.0", cause: unsure},
		"Candidate":    {reason: "A release candidate counts as its release.", image: "r/crossplane:v2.1.0-rc.0", want: "2.1.0-rc.0", cause: unsure},
		"Build":        {reason: "Some users build their own image.", image: "r/crossplane:v1.19.0-up.1", want: "1.19.0-up.1", cause: old},
		"Digest":       {reason: "A digest after the tag adds nothing.", image: "r/crossplane:v1.20.1@sha256:abc", want: "1.20.1", cause: unsure},
		"Major":        {reason: "A major version alone is no version.", image: "r/crossplane:v99", cause: unsure},
		"Latest":       {reason: "The tag latest is no version.", image: "r/crossplane:latest", cause: unsure},
		"Empty":        {reason: "There may be no image.", image: "", cause: unsure},
		"EmptyTag":     {reason: "The colon may have no tag after it.", image: "r/crossplane:", cause: unsure},
		"Colon":        {reason: "A colon alone has no tag.", image: ":", cause: unsure},
		"DigestOnly":   {reason: "A digest is no version, whatever its digits.", image: "r/crossplane@sha256:1.2", cause: unsure},
		"Port":         {reason: "A port is no tag.", image: "r:5000/crossplane", cause: unsure},
		"PortOnly":     {reason: "A port is no tag, even if it looks like a version.", image: "r:1.2/crossplane", cause: unsure},
		"Words":        {reason: "A tag with other words is no version.", image: "r/crossplane:release-1.20", cause: unsure},
		"Minus":        {reason: "A negative number is no version.", image: "r/crossplane:v-1.2", cause: unsure},
		"Dot":          {reason: "A prefix of a version can't be compared.", image: "r/crossplane:v1.", cause: unsure},
		"Letters":      {reason: "A version with letters can't be compared.", image: "r/crossplane:1.x", cause: unsure},
		"Huge":         {reason: "A number that overflows can't be compared.", image: "r/crossplane:v99999999999999999999.0.0", cause: unsure},
		"Label":        {reason: "The version label counts too.", image: "r/crossplane@sha256:00", labels: []string{"app.kubernetes.io/version", "v2.1.3"}, want: "2.1.3", cause: unsure},
		"LabelGarbage": {reason: "A version label without a version does not count.", image: "r/crossplane", labels: []string{"app.kubernetes.io/version", "latest"}, cause: unsure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := xptest.Object("apps/v1", "Deployment", "crossplane-system", "crossplane",
				xptest.Field([]any{map[string]any{"image": tc.image}}, "spec", "template", "spec", "containers"))
			if len(tc.labels) > 0 {
				u = xptest.With(u, xptest.Labelled(tc.labels[0], tc.labels[1]))
			}
			got := adoption.FindInstallation([]*unstructured.Unstructured{u}).Version
			if got != tc.want {
				t.Errorf("%s\n%q is version %q, want %q", tc.reason, tc.image, got, tc.want)
			}
			said := adoption.Stuck(xptest.XR("x"), adoption.Installation{Namespace: "crossplane-system", Name: "crossplane", Version: got, Replicas: 1, Ready: 1}).String()
			if !strings.Contains(said, tc.cause) {
				t.Errorf("%s\nversion %q has the cause %s; want %q", tc.reason, got, said, tc.cause)
			}
		})
	}
	for name, u := range map[string]any{"None": nil, "NoList": "x", "NoObjects": []any{"x", nil}, "NoImage": []any{map[string]any{"image": int64(1)}}} {
		odd := xptest.Object("apps/v1", "Deployment", "a", "b", xptest.Field(u, "spec", "template", "spec", "containers"))
		if got := adoption.FindInstallation([]*unstructured.Unstructured{odd}).Version; got != "" {
			t.Errorf("%s: malformed containers have no version; got %q", name, got)
		}
	}
}

// A tenant can label a Deployment as Crossplane's. It must not be taken for Crossplane.
func TestInstallationOfATenant(t *testing.T) {
	of := func(namespace string, ready int64) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", namespace, "crossplane", xptest.Labelled("app.kubernetes.io/part-of", "crossplane"), xptest.Field(ready, "status", "readyReplicas"))
	}
	for _, ready := range []int64{0, 1} {
		found, err := newServer(of("team-a", 3), of("crossplane-system", ready)).cluster().Installation(t.Context())
		if err != nil || found.Namespace != "crossplane-system" || found.Ready != ready {
			t.Errorf("got %+v, %v", found, err)
		}
	}
	if found, err := newServer(of("upbound-system", 1), of("old", 0)).cluster().Installation(t.Context()); err != nil || found.Namespace != "upbound-system" {
		t.Errorf("Crossplane can be in another namespace; got %+v, %v", found, err)
	}
}

// The RBAC manager is from the same chart, and runs without Crossplane.
func TestInstallationIsNoRBACManager(t *testing.T) {
	of := func(name string, ready int64) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", "crossplane-system", name, xptest.Labelled("app.kubernetes.io/part-of", "crossplane"),
			xptest.Field(ready, "status", "readyReplicas"))
	}
	manager := of("xp-rbac-manager", 1)
	found, err := newServer(of("xp", 0), manager).cluster().Installation(t.Context())
	if err != nil || found.Name != "xp" || found.Ready != 0 {
		t.Errorf("got %+v, %v", found, err)
	}
	if found, err := newServer(manager).cluster().Installation(t.Context()); err != nil || found != (adoption.Installation{}) {
		t.Errorf("the RBAC manager alone is no Crossplane; got %+v, %v", found, err)
	}
}

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
	const old, breaks, unsure = "stops watching", "drops events", "runs and says nothing"
	cases := map[string]struct {
		reason, image string
		labels        []string
		want          string
		// cause is the probable cause of a pending reconcile.
		cause string
	}{
		"Release":      {reason: "The chart's own.", image: "xpkg.crossplane.io/crossplane/crossplane:v1.18.0", want: "1.18.0", cause: old},
		"Bare":         {reason: "A mirror may leave the v out.", image: "r:5000/crossplane:2.1.0", want: "2.1.0", cause: breaks},
		"Unknown":      {reason: "One of years from now is a late one.", image: "r/crossplane:v99.0.0", want: "99.0.0", cause: breaks},
		"Candidate":    {reason: "A candidate is what it becomes.", image: "r/crossplane:v2.1.0-rc.0", want: "2.1.0-rc.0", cause: breaks},
		"Build":        {reason: "Some build their own.", image: "r/crossplane:v1.19.0-up.1", want: "1.19.0-up.1", cause: old},
		"Digest":       {reason: "A digest after the tag says nothing more.", image: "r/crossplane:v1.20.1@sha256:abc", want: "1.20.1", cause: unsure},
		"Major":        {reason: "A moving tag is no version.", image: "r/crossplane:v99", cause: unsure},
		"Latest":       {reason: "Nor is this one.", image: "r/crossplane:latest", cause: unsure},
		"Empty":        {reason: "There may be no image.", image: "", cause: unsure},
		"EmptyTag":     {reason: "Or no tag after the colon.", image: "r/crossplane:", cause: unsure},
		"Colon":        {reason: "Or nothing but that.", image: ":", cause: unsure},
		"DigestOnly":   {reason: "A digest is no version, whatever its digits.", image: "r/crossplane@sha256:1.2", cause: unsure},
		"Port":         {reason: "A port is no tag.", image: "r:5000/crossplane", cause: unsure},
		"PortOnly":     {reason: "Not even one that looks like a version.", image: "r:1.2/crossplane", cause: unsure},
		"Words":        {reason: "Garbage.", image: "r/crossplane:release-1.20", cause: unsure},
		"Minus":        {reason: "Garbage.", image: "r/crossplane:v-1.2", cause: unsure},
		"Dot":          {reason: "What begins like a version need not be one that can be compared.", image: "r/crossplane:v1.", want: "1.", cause: unsure},
		"Letters":      {reason: "The same.", image: "r/crossplane:1.x", want: "1.x", cause: unsure},
		"Huge":         {reason: "The same.", image: "r/crossplane:v99999999999999999999.0.0", want: "99999999999999999999.0.0", cause: unsure},
		"Chart":        {reason: "Without a version in the image the chart's label counts.", image: "r/crossplane:v99", labels: []string{"helm.sh/chart", "crossplane-1.18.2"}, want: "1.18.2", cause: old},
		"ChartGarbage": {reason: "If that is one.", image: "r/crossplane:v99", labels: []string{"helm.sh/chart", "crossplane-"}, cause: unsure},
		"Label":        {reason: "Or its other label.", image: "r/crossplane@sha256:00", labels: []string{"app.kubernetes.io/version", "v2.1.3"}, want: "2.1.3", cause: breaks},
		"LabelGarbage": {reason: "If that is one.", image: "r/crossplane", labels: []string{"app.kubernetes.io/version", "latest"}, cause: unsure},
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
			said := adoption.Stuck(xptest.XR("x"), adoption.Installation{Namespace: "crossplane-system", Name: "crossplane", Version: got, Replicas: 1, Ready: 1})
			if !strings.Contains(said, tc.cause) {
				t.Errorf("%s\nof version %q it is said: %s; want %q", tc.reason, got, said, tc.cause)
			}
		})
	}
	for name, u := range map[string]any{"None": nil, "NoList": "x", "NoObjects": []any{"x", nil}, "NoImage": []any{map[string]any{"image": int64(1)}}} {
		odd := xptest.Object("apps/v1", "Deployment", "a", "b", xptest.Field(u, "spec", "template", "spec", "containers"))
		if got := adoption.FindInstallation([]*unstructured.Unstructured{odd}).Version; got != "" {
			t.Errorf("%s: containers that can't be read have no version; got %q", name, got)
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
		t.Errorf("it can be elsewhere; got %+v, %v", found, err)
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
		t.Errorf("a manager alone is no Crossplane; got %+v, %v", found, err)
	}
}

package cluster

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func TestInstallation(t *testing.T) {
	found := func(namespace, name string, replicas, ready int64) adoption.Installation {
		return adoption.Installation{Namespace: namespace, Name: name, Replicas: replicas, Ready: ready}
	}
	type args struct {
		reason  string
		objects []*unstructured.Unstructured
		want    adoption.Installation
	}
	xptest.Each(t, map[string]args{
		"None":       {reason: "A Crossplane that the chart did not install is not found.", objects: []*unstructured.Unstructured{xptest.Object("apps/v1", "Deployment", "a", "b")}},
		"Elsewhere":  {reason: "Crossplane can be in another namespace.", objects: []*unstructured.Unstructured{apiserver.Chart("upbound", "xp", 2)}, want: found("upbound", "xp", 1, 2)},
		"Two":        {reason: "A Deployment that was scaled down does not count.", objects: []*unstructured.Unstructured{apiserver.Chart("crossplane-system", "old", 0, scaledTo(0)), apiserver.Chart("upbound", "xp", 1)}, want: found("upbound", "xp", 1, 1)},
		"Scaled":     {reason: "A user has scaled Crossplane to zero.", objects: []*unstructured.Unstructured{apiserver.Chart("upbound", "xp", 0, scaledTo(0))}, want: found("upbound", "xp", 0, 0)},
		"Tenant":     {reason: "A tenant can label a Deployment as Crossplane's.", objects: []*unstructured.Unstructured{apiserver.Chart("team-a", "xp", 3), apiserver.Chart("crossplane-system", "xp", 1)}, want: found("crossplane-system", "xp", 1, 1)},
		"TenantDown": {reason: "It must not hide that Crossplane is down.", objects: []*unstructured.Unstructured{apiserver.Chart("team-a", "xp", 3), apiserver.Chart("crossplane-system", "xp", 0)}, want: found("crossplane-system", "xp", 1, 0)},
		"RBAC":       {reason: "The RBAC manager is from the same chart, and runs without Crossplane.", objects: []*unstructured.Unstructured{apiserver.Chart("crossplane-system", "xp", 0), apiserver.Chart("crossplane-system", "xp-rbac-manager", 1)}, want: found("crossplane-system", "xp", 1, 0)},
		"RBACAlone":  {reason: "The RBAC manager alone is no Crossplane.", objects: []*unstructured.Unstructured{apiserver.Chart("crossplane-system", "xp-rbac-manager", 1)}},
	}, func(t *testing.T, tc args) {
		got, err := clusterOf(apiserver.NewServer(tc.objects...)).Installation(t.Context())
		xptest.Must(t, err)
		xptest.Same(t, tc.want, got, tc.reason)
	})
}

// A tag can have any content. With an unknown version only what holds for every version is
// reported.
func TestVersionOf(t *testing.T) {
	label := func(version string) xptest.Option { return xptest.Labelled("app.kubernetes.io/version", version) }
	containers := func(value any) xptest.Option { return xptest.Field(value, "spec", "template", "spec", "containers") }
	xptest.Run(t, map[string]xptest.Row[[]xptest.Option, string]{
		"Release":      {Reason: "The chart installs this image.", In: []xptest.Option{apiserver.Image("xpkg.crossplane.io/crossplane/crossplane:v1.18.0")}, Want: "1.18.0"},
		"Bare":         {Reason: "A mirror may omit the v.", In: []xptest.Option{apiserver.Image("r:5000/crossplane:2.1.0")}, Want: "2.1.0"},
		"Build":        {Reason: "Some users build their own image.", In: []xptest.Option{apiserver.Image("r/crossplane:v1.19.0-up.1")}, Want: "1.19.0-up.1"},
		"Digest":       {Reason: "A digest after the tag adds nothing.", In: []xptest.Option{apiserver.Image("r/crossplane:v1.20.1@sha256:abc")}, Want: "1.20.1"},
		"Major":        {Reason: "A major version alone is no version.", In: []xptest.Option{apiserver.Image("r/crossplane:v99")}},
		"Empty":        {Reason: "There may be no image.", In: []xptest.Option{apiserver.Image("")}},
		"Colon":        {Reason: "A colon alone has no tag.", In: []xptest.Option{apiserver.Image(":")}},
		"DigestOnly":   {Reason: "A digest is no version, whatever its digits.", In: []xptest.Option{apiserver.Image("r/crossplane@sha256:1.2")}},
		"PortOnly":     {Reason: "A port is no tag, even if it looks like a version.", In: []xptest.Option{apiserver.Image("r:1.2/crossplane")}},
		"Words":        {Reason: "A tag with other words is no version.", In: []xptest.Option{apiserver.Image("r/crossplane:release-1.20")}},
		"Huge":         {Reason: "A number that overflows can't be compared.", In: []xptest.Option{apiserver.Image("r/crossplane:v99999999999999999999.0.0")}},
		"Label":        {Reason: "The version label counts too.", In: []xptest.Option{apiserver.Image("r/crossplane:latest"), label("v2.1.3")}, Want: "2.1.3"},
		"LabelGarbage": {Reason: "A version label without a version does not count.", In: []xptest.Option{apiserver.Image("r/crossplane"), label("latest")}},
		"NoList":       {Reason: "The containers can be malformed.", In: []xptest.Option{containers("x")}},
		"NoObjects":    {Reason: "A container can be malformed.", In: []xptest.Option{containers([]any{"x", nil})}},
		"NoImage":      {Reason: "An image can be malformed.", In: []xptest.Option{containers([]any{map[string]any{"image": int64(1)}})}},
	}, func(o []xptest.Option) string {
		return adoption.FindInstallation([]*unstructured.Unstructured{apiserver.Chart("a", "b", 1, o...)}).Version
	})
}

// A user may delete an XRD during a restore, which takes minutes.
func TestTerminating(t *testing.T) {
	order, other := schema.GroupKind{Group: "example.org", Kind: "XOrder"}, schema.GroupKind{Group: "example.org", Kind: "XOther"}
	xptest.Bubble(t, func(t *testing.T) {
		s := apiserver.NewPlatform(apiserver.XOrderXRD())
		s.FailOn("list", apiserver.XRDs.Resource, 1, apiserver.ErrDown)
		c := clusterOf(s)
		if _, err := c.Terminating(t.Context(), order); err == nil {
			t.Error("a failed list must be an error")
		}
		for _, tc := range []struct {
			reason string
			after  time.Duration
			want   bool
			lists  int
		}{
			{reason: "A failed list must be repeated. The XRD is not being deleted.", lists: 2},
			{reason: "The cache is valid for a while.", after: definitionsTTL / 2, lists: 2},
			{reason: "The cache expires.", after: definitionsTTL, want: true, lists: 3},
			{reason: "One list serves all.", want: true, lists: 3},
		} {
			time.Sleep(tc.after)
			if got, err := c.Terminating(t.Context(), order); err != nil || (got != nil) != tc.want || s.Count("list", "compositeresourcedefinitions ") != tc.lists {
				t.Errorf("%s Got %v, %v, with %v", tc.reason, got, err, s.Requests("list"))
			}
			if got, err := c.Terminating(t.Context(), other); err != nil || got != nil {
				t.Errorf("The kind has no XRD: %v, %v", got, err)
			}
			s.Put(apiserver.XRDs, apiserver.XOrderXRD(xptest.Deleting()))
		}
		if got, err := clusterOf(apiserver.NewServer()).Terminating(t.Context(), order); got != nil || err != nil {
			t.Errorf("without Crossplane no XRD is being deleted: %v, %v", got, err)
		}
	})
}

func scaledTo(n int64) xptest.Option { return xptest.Field(n, "spec", "replicas") }

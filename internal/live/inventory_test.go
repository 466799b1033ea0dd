package live

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func gvkOf(u *unstructured.Unstructured) schema.GroupVersionKind { return u.GroupVersionKind() }

// Each kind is listed once, however many of its objects are asked for.
func TestInventoryListsOnce(t *testing.T) {
	a, b := xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "shared"), xptest.JSON(`{"spec":{"providerConfigRef":{"name":"cloud"}}}`)),
		xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "shared"), xptest.Field([]any{"Observe"}, "spec", "managementPolicies"))
	nameless, absent := xptest.MR("c", xptest.Without("metadata", "annotations")), xptest.MR("d")
	lost := xptest.MR("lost", xptest.Without("metadata", "annotations"), xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`))
	other := xptest.MR("other", xptest.Deleting(), xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`))
	s := newServer(a, b, nameless, lost, other)
	c := s.cluster()
	exists := map[string]bool{}
	for range 3 {
		for _, u := range []*unstructured.Unstructured{a, b, nameless, absent} {
			ok, err := c.Exists(context.Background(), xp.RefTo(u))
			if err != nil {
				t.Fatal(err)
			}
			exists[u.GetName()] = ok
		}
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true, "c": true, "d": false}, exists); diff != "" {
		t.Errorf("Exists: -want, +got:\n%s", diff)
	}
	for name, want := range map[string][]xp.Managing{
		"shared": {xp.ManagingOf(a), xp.ManagingOf(b)}, "c": nil, "": nil, "vpc-1": {xp.ManagingOf(lost)}, "other": {xp.ManagingOf(other)},
	} {
		got, err := c.Named(context.Background(), gvkOf(a), name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Named(%q): error %v, -want, +got:\n%s", name, err, diff)
		}
	}
	for _, u := range []*unstructured.Unstructured{a, other, absent} {
		if got, err := c.Deleting(context.Background(), xp.RefTo(u)); got != (u == other) || err != nil {
			t.Errorf("Deleting(%s): %v, %v", u.GetName(), got, err)
		}
	}
	s.put(buckets, absent)
	if ok, err := c.Exists(context.Background(), xp.RefTo(absent)); ok || err != nil {
		t.Errorf("an object that the restore created must not count as live before it; got %v, %v", ok, err)
	}
	if ok, err := c.Exists(context.Background(), xp.Ref{APIVersion: "cloud.example.org/v9", Kind: xptest.ManagedKind, Name: "a"}); !ok || err != nil {
		t.Errorf("the version of a kind has no effect; got %v, %v", ok, err)
	}
	if diff := cmp.Diff([]string{"buckets "}, s.requests("list")); diff != "" || len(s.requests("get")) > 0 {
		t.Errorf("a restore has many items of a kind, and one list must serve them: -want, +requested:\n%s", diff)
	}
	if ok, err := c.ExistsNow(context.Background(), xp.RefTo(absent)); !ok || err != nil {
		t.Errorf("another writer's object must count from its creation on; got %v, %v", ok, err)
	}
}

func TestInventoryErrors(t *testing.T) {
	bucket := xptest.MR("b")
	cases := map[string]struct {
		reason string
		err    error
		want   error
	}{
		"Passing":  {reason: "A failed list does not mean that the object is absent.", err: errDown, want: errDown},
		"NotFound": {reason: "A CRD that went away after discovery has no objects.", err: apierrors.NewNotFound(buckets.GroupResource(), "")},
		"NoList":   {reason: "A kind that can only be created has no objects.", err: apierrors.NewMethodNotSupported(buckets.GroupResource(), "list")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(bucket)
			s.failOn("list", "buckets", 2, tc.err)
			c := s.cluster()
			if ok, err := c.Exists(context.Background(), xp.RefTo(bucket)); ok || !errors.Is(err, tc.want) {
				t.Errorf("%s\nExists: got %v, %v", tc.reason, ok, err)
			}
			if named, err := c.Named(context.Background(), gvkOf(bucket), "b"); named != nil || !errors.Is(err, tc.want) {
				t.Errorf("%s\nNamed: got %v, %v", tc.reason, named, err)
			}
			if tc.want == nil {
				return
			}
			if ok, err := c.Exists(context.Background(), xp.RefTo(bucket)); !ok || err != nil {
				t.Errorf("a failure must not be cached; got %v, %v", ok, err)
			}
		})
	}
	ok, err := newServer().cluster().Exists(context.Background(), xp.Ref{APIVersion: "gone.org/v1", Kind: "Gone", Name: "g"})
	if ok || err != nil {
		t.Errorf("a kind that is not served has no objects; got %v, %v", ok, err)
	}
}

func TestList(t *testing.T) {
	x := xptest.XR("x")
	mine, other := xptest.Claim("o", xptest.Labelled("mine", "")), xptest.Claim("p", xptest.In("team-b"))
	s := newServer(mine, other, x)
	c := s.cluster()
	cases := map[string]struct {
		reason    string
		kind      schema.GroupVersionKind
		namespace string
		selector  string
		want      []string
	}{
		"All":       {reason: "The list covers all namespaces.", kind: gvkOf(mine), want: []string{"OrderClaim team-a/o", "OrderClaim team-b/p"}},
		"Namespace": {reason: "The list covers one namespace.", kind: gvkOf(mine), namespace: "team-b", want: []string{"OrderClaim team-b/p"}},
		"Selector":  {reason: "The list covers labelled objects.", kind: gvkOf(mine), selector: "mine", want: []string{"OrderClaim team-a/o"}},
		"Cluster":   {reason: "A cluster-scoped kind ignores the namespace.", kind: gvkOf(x), namespace: "team-a", want: []string{"XOrder x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list, err := c.List(context.Background(), tc.kind, tc.namespace, metav1.ListOptions{LabelSelector: tc.selector})
			var got []string
			for _, u := range list {
				got = append(got, xp.String(u))
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s\nerror %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
	if _, err := c.List(context.Background(), schema.GroupVersionKind{Version: "v1", Kind: "Gone"}, "", metav1.ListOptions{}); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not served must differ from a kind without objects; got error %v", err)
	}
}

func TestSettings(t *testing.T) {
	settings := func(name string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("v1", "ConfigMap", "velero", name, append([]xptest.Option{
			xptest.Labelled("velero.io/plugin-config", ""), xptest.Labelled("velero.crossplane.io/settings", ""), xptest.JSON(`{"data":{"clone":"new"}}`),
		}, o...)...)
	}
	type want struct {
		Data map[string]string
		Err  string
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    want
	}{
		"None": {reason: "A user needs no settings."},
		"One":  {reason: "The ConfigMap has the settings.", objects: []*unstructured.Unstructured{settings("s")}, want: want{Data: map[string]string{"clone": "new"}}},
		"Others": {
			reason: "A ConfigMap of another plugin or of a tenant in another namespace has no settings.",
			objects: []*unstructured.Unstructured{
				settings("other", xptest.Without("metadata", "labels", "velero.crossplane.io/settings")),
				settings("unlabelled", xptest.Without("metadata", "labels", "velero.io/plugin-config")), settings("s", xptest.In("team-a")),
			},
		},
		"Two": {
			reason: "The plugin would ignore one of two ConfigMaps.", objects: []*unstructured.Unstructured{settings("s"), settings("t")},
			want: want{Err: "cannot choose between the ConfigMaps s and t, which both have the labels velero.io/plugin-config,velero.crossplane.io/settings; remove one"},
		},
		"Empty": {reason: "An empty ConfigMap sets nothing.", objects: []*unstructured.Unstructured{settings("s", xptest.Without("data"))}},
		"Malformed": {
			reason: "Malformed settings must not count as the default.", objects: []*unstructured.Unstructured{settings("s", xptest.JSON(`{"data":{"clone":1}}`))},
			want: want{Err: "cannot read the ConfigMap velero/s: .data accessor error: contains non-string value in the " +
				"map under key \"clone\": 1 is of the type int64, expected string"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			var err error
			if got.Data, err = newServer(tc.objects...).cluster().Settings(context.Background(), "velero"); err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	s := newServer()
	s.failOn("list", "configmaps", 1, errDown)
	if _, err := s.cluster().Settings(context.Background(), "velero"); !errors.Is(err, errDown) {
		t.Errorf("settings that can't be read are not the default; got error %v", err)
	}
}

// Some servers leave out the kind of a list's items; each page gets it.
func TestListReadsEveryPage(t *testing.T) {
	s := newServer()
	names := []string{"a", "b", "c"}
	s.PrependReactor("list", "buckets", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": names[0]}}}}}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(xptest.ManagedVersion, xptest.ManagedKind+"List"))
		if names = names[1:]; len(names) > 0 {
			list.SetContinue("more")
		}

		return true, list, nil
	})
	list, err := s.cluster().List(context.Background(), gvkOf(xptest.MR("b")), "", metav1.ListOptions{})
	if err != nil || len(list) != 3 || list[2].GetName() != "c" || list[2].GetKind() != xptest.ManagedKind {
		t.Errorf("got %v, %v", list, err)
	}
}

package live

import (
	"encoding/base64"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func keySecret(value string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Secret(MarkKeySecret, append([]xptest.Option{
		xptest.In("velero"), xptest.Field(base64.StdEncoding.EncodeToString([]byte(value)), "data", markKeyField), xptest.Field("Opaque", "type"),
		xptest.Field(true, "immutable"), xptest.Labelled(labelExclude, "true"), xptest.Labelled(labelManagedBy, FieldManager),
	}, o...)...)
}

func TestMarkKey(t *testing.T) {
	s := newServer()
	c := s.cluster()
	key, err := c.MarkKey(t.Context(), "velero")
	if err != nil || len(key) != adoption.KeySize {
		t.Fatalf("the first call must create a key; got %d bytes, %v", len(key), err)
	}
	u := s.get(t, secrets, "velero", MarkKeySecret)
	if u.GetLabels()[labelExclude] != "true" {
		t.Error("a restore must not bring back an old key")
	}
	asked := len(s.Actions())
	again, err := c.MarkKey(t.Context(), "velero")
	if err != nil || string(again) != string(key) || len(s.Actions()) != asked {
		t.Errorf("the key must be read once: %v, %d more requests", err, len(s.Actions())-asked)
	}
	if other, err := s.cluster().MarkKey(t.Context(), "velero"); err != nil || string(other) != string(key) {
		t.Errorf("the next process must use the same key; got %v", err)
	}
	x := xptest.XR("x")
	if _, err := adoption.Put(x, adoption.Hold{Restore: "velero/monday"}); err != nil {
		t.Fatal(err)
	}
	if err := key.Sign(x, ""); err != nil {
		t.Fatal(err)
	}
	if h, err := again.HoldOf(x); err != nil || h == nil {
		t.Errorf("the key must verify its own signature; got %+v, %v", h, err)
	}
}

// Two processes can find no key at the same time.
func TestMarkKeyOfAnother(t *testing.T) {
	s := newServer()
	theirs := strings.Repeat("t", adoption.KeySize)
	s.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.put(secrets, keySecret(theirs))

		return true, nil, apierrors.NewAlreadyExists(secrets.GroupResource(), MarkKeySecret)
	})
	if key, err := s.cluster().MarkKey(t.Context(), "velero"); err != nil || string(key) != theirs {
		t.Errorf("got %q, %v", key, err)
	}
}

func TestReadMarkKey(t *testing.T) {
	good := strings.Repeat("k", adoption.KeySize)
	cases := map[string]struct {
		reason string
		secret *unstructured.Unstructured
		want   string
	}{
		"None": {reason: "A process that only verifies creates no key.", want: "not found"},
		"Token": {
			reason: "A controller fills a Secret of this type.", secret: keySecret(good, xptest.Field("kubernetes.io/service-account-token", "type")),
			want: `its type is "kubernetes.io/service-account-token" and not Opaque`,
		},
		"Unlabelled": {reason: "A backup would have the key.", secret: keySecret(good, xptest.Without("metadata", "labels")), want: "it lacks the labels"},
		"OtherManager": {
			reason: "Another program has created the Secret.", secret: keySecret(good, xptest.Labelled(labelManagedBy, "helm")), want: "it lacks the labels",
		},
		"Mutable":  {reason: "A user could change the key.", secret: keySecret(good, xptest.Without("immutable")), want: "it is not immutable"},
		"TooShort": {reason: "An attacker could guess a short key.", secret: keySecret("short"), want: "cannot use a key of 5 bytes"},
		"NoKey":    {reason: "Another writer has created an empty Secret.", secret: keySecret(""), want: "cannot use a key of 0 bytes"},
		"NoBase64": {
			reason: "An API server returns Base64 only.", secret: keySecret("", xptest.Field("?", "data", markKeyField)), want: "cannot read the key",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			if tc.secret != nil {
				s = newServer(tc.secret)
			}
			_, err := s.cluster().ReadMarkKey(t.Context(), "velero")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if tc.secret != nil && (reason.CodeOf(err) != reason.MarkKeyForeign || !strings.Contains(err.Error(), "velero/"+MarkKeySecret)) {
				t.Errorf("%s\nthe error must name the Secret, with its code: %v", tc.reason, err)
			}
			if name == "None" && !apierrors.IsNotFound(err) {
				t.Errorf("the error must be a NotFound error: %v", err)
			}
			for _, a := range s.Actions() {
				if a.GetVerb() != "get" {
					t.Errorf("%s\nthe check must only read, but it does %s", tc.reason, a.GetVerb())
				}
			}
		})
	}
}

// A namespaced object refers to its own namespace, so no other is read for it.
func TestObserveListsInNamespaces(t *testing.T) {
	of := func(namespaces ...string) []*unstructured.Unstructured {
		var objects []*unstructured.Unstructured
		for _, namespace := range namespaces {
			composed := xptest.Object("v1", "ConfigMap", namespace, "c")
			objects = append(objects, restored(xptest.XR("of-"+namespace, xptest.Refs(composed))))
		}

		return objects
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		want    map[string]bool
	}{
		"One":  {reason: "Only this namespace has composed objects.", objects: of("team-a"), want: map[string]bool{"team-a": true}},
		"Two":  {reason: "The plugin lists each of two namespaces separately.", objects: of("team-a", "team-b"), want: map[string]bool{"team-a": true, "team-b": true}},
		"Many": {reason: "The objects of many tenants justify a list of all namespaces.", objects: of("a", "b", "c", "d", "e"), want: map[string]bool{"": true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServer(append(tc.objects, restored(xptest.Revision(xptest.RevisionName, tc.objects[0])))...)
			if _, err := s.cluster().Observe(t.Context(), adoption.Unverified, selector, []xp.Ref{xp.RefTo(tc.objects[0])}); err != nil {
				t.Fatal(err)
			}
			lists := 0
			for _, a := range s.Actions() {
				if a.GetVerb() != "list" || a.GetResource() != configmaps {
					continue
				}
				lists++
				if !tc.want[a.GetNamespace()] {
					t.Errorf("%s\nConfigMaps were listed in the namespace %q", tc.reason, a.GetNamespace())
				}
			}
			if lists != 2*len(tc.want) {
				t.Errorf("%s\n%d lists instead of two for each: the restored objects, and then all", tc.reason, lists)
			}
		})
	}
}

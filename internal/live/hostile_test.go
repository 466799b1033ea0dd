package live

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A user can write any name and kind into a reference. An invalid one is not found: an error would
// keep the object with the reference out of a backup or restore.
func TestGetOfInvalidRefs(t *testing.T) {
	s := newServer()
	s.kinds["v1"] = append(s.kinds["v1"], metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true})
	s.PrependReactor("get", "bindings", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "bindings"}, "get")
	})
	c := s.cluster()
	for name, r := range map[string]xp.Ref{
		"Path":      {APIVersion: "v1", Kind: "Secret", Namespace: "team-a", Name: "../team-b/password"},
		"Escape":    {APIVersion: "v1", Kind: "Secret", Namespace: "team-a", Name: "a%2fb"},
		"NoName":    {APIVersion: "v1", Kind: "Secret", Namespace: "team-a"},
		"Namespace": {APIVersion: "v1", Kind: "Secret", Namespace: "..", Name: "s"},
		"Unread":    {APIVersion: "v1", Kind: "Binding", Namespace: "team-a", Name: "b"},
	} {
		if u, err := c.Get(t.Context(), r); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got %v with error %v", name, u, err)
		}
		ref := metav1.OwnerReference{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
		if u, err := c.Owner(t.Context(), ref, r.Namespace); !apierrors.IsNotFound(err) {
			t.Errorf("%s: got the owner %v with error %v", name, u, err)
		}
	}
	for _, a := range s.Actions() {
		if get, ok := a.(clienttesting.GetAction); ok && get.GetName() != "b" {
			t.Errorf("requested %s/%s", get.GetNamespace(), get.GetName())
		}
	}
	if u, err := c.Get(t.Context(), xp.RefTo(xptest.Secret("s"))); u != nil || !apierrors.IsNotFound(err) {
		t.Errorf("got %v, %v", u, err)
	}
}

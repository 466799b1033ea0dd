package cluster

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

func TestWarn(t *testing.T) {
	long := xptest.XR(strings.Repeat("a", 63) + "." + strings.Repeat("b.", 95))
	for namespace, u := range map[string]*unstructured.Unstructured{metav1.NamespaceDefault: long, "team-a": xptest.Claim("o")} {
		s := apiserver.NewServer()
		xptest.Must(t, clusterOf(s).Warn(t.Context(), u, "Why", strings.Repeat("ä", 1024)+"\xff"))
		list, err := s.Resource(apiserver.Events).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		e := &list.Items[0]
		want := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "namespace": u.GetNamespace(), "name": u.GetName(), "uid": string(u.GetUID())}
		xptest.Same(t, any(want), e.Object["involvedObject"], "the Event must reference the object")
		if message, _, _ := unstructured.NestedString(e.Object, "message"); len(message) > 1024 || len(message) < 1000 || !utf8.ValidString(message) || !strings.HasSuffix(message, "ä…") {
			t.Errorf("a long message must be cut; it has %d bytes: %s", len(message), message)
		}
	}
}

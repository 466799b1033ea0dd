package backupitem

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

type keyMakerFn func(namespace string) error

func (fn keyMakerFn) MakeMarkKey(_ context.Context, namespace string) error { return fn(namespace) }

func TestTreeHasTheMarkKeyMade(t *testing.T) {
	for name, failure := range map[string]error{"Made": nil, "Failed": errors.New("forbidden")} {
		t.Run(name, func(t *testing.T) {
			log, _ := logtest.NewNullLogger()
			var made []string
			tree := NewTree(NewResolver(clusterOf()), log).WithMarkKey(keyMakerFn(func(namespace string) error {
				made = append(made, namespace)

				return failure
			}))
			for range 2 {
				if _, _, _, _, err := tree.Execute(xptest.XR("x"), &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero"}}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff([]string{"velero"}, made); diff != "" {
				t.Errorf("a backup has the key made once, and goes on without it: -want, +got:\n%s", diff)
			}
		})
	}
}

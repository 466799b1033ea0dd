package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	cluster "github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/cluster/v1alpha1"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/apis/common"
)

// A provider that creates passwords does so once. If the Secret is lost, it changes the password of
// the existing database.
func TestPasswords(t *testing.T) {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}

	kube := fake.NewClientBuilder().WithScheme(s).Build()
	cloud, _ := newCloud(t)

	connect := func(mg Managed) *External {
		t.Helper()

		c := NewConnector(cloud, "a", newScheme(t))
		c.secrets = secrets{reader: kube, writer: kube}

		e, err := c.Connect(t.Context(), mg)
		if err != nil {
			t.Fatalf("Connect(...): %v", err)
		}

		return e.(*External) //nolint:forcetypeassert // A synchronous kind has it.
	}

	mg := &cluster.Database{}
	mg.SetName("db")
	mg.Spec.ForProvider.PasswordSecretRef = &common.SecretKey{Namespace: "infra", Name: "password", Key: "p"}

	if _, err := connect(mg).Create(t.Context(), mg); err != nil {
		t.Fatalf("Create(...): %v", err)
	}

	observe := func() bool {
		o, err := connect(mg).Observe(t.Context(), mg)
		if err != nil || !o.ResourceExists {
			t.Fatalf("Observe(...): %+v, %v", o, err)
		}

		return o.ResourceUpToDate
	}
	if !observe() {
		t.Error("The password that was made is that of the database")
	}

	secret := &corev1.Secret{}
	if err := kube.Get(t.Context(), types.NamespacedName{Namespace: "infra", Name: "password"}, secret); err != nil || len(secret.Data["p"]) == 0 {
		t.Fatalf("got %v, %v", secret.Data, err)
	}

	for what, lose := range map[string]func(client.Object) error{
		"deleted": func(o client.Object) error { return kube.Delete(t.Context(), o) },
		"emptied": func(o client.Object) error {
			empty := &corev1.Secret{}
			empty.SetNamespace(o.GetNamespace())
			empty.SetName(o.GetName())
			empty.SetResourceVersion(o.GetResourceVersion())

			return kube.Update(t.Context(), empty)
		},
	} {
		if err := kube.Get(t.Context(), types.NamespacedName{Namespace: "infra", Name: "password"}, secret); err != nil {
			t.Fatal(err)
		}

		if err := lose(secret); err != nil {
			t.Fatal(err)
		}

		if observe() {
			t.Errorf("%s: a password is made that is not that of the database", what)
		}

		if _, err := connect(mg).Update(t.Context(), mg); err != nil {
			t.Fatalf("Update(...): %v", err)
		}

		if !observe() {
			t.Errorf("%s: the database has the new one", what)
		}
	}

	es, err := cloud.Journal(t.Context(), 0, api.Update)
	if err != nil || len(es) != 2 {
		t.Errorf("The journal has %v, %v", es, err)
	}
}

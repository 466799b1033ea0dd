package restorer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/client"
	"github.com/vmware-tanzu/velero/pkg/restore"
	"github.com/vmware-tanzu/velero/pkg/util/kube"
	"github.com/vmware-tanzu/velero/pkg/util/results"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/restorer/forest"
)

// restoreFile restores a backup's file with the clients of the factory.
func restoreFile(t *testing.T, c *cluster, w client.DynamicFactory, spec velerov1.RestoreSpec, file []byte) (warnings, errs results.Result) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetLevel(logrus.PanicLevel)
	of := &velerov1.Restore{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "monday"}, Spec: spec}
	r := &forest.Run{Of: of, Record: &forest.Record{}, Failed: map[xp.Item]error{}, Tried: map[xp.Item]bool{}}
	backup := &velerov1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "backup"}}

	return engine(t, c, w).Restore(&restore.Request{
		Log: quiet, Restore: of, Backup: backup, BackupReader: bytes.NewReader(file), DisableInformerCache: true,
		ResourceDeletionStatusTracker: kube.NewResourceDeletionStatusTracker(),
	}, actions(c, r), nil)
}

// testOvertaken has another writer create an object after the plugin has looked for it, and right
// before Velero creates it. Velero must not write the backup's over it.
func testOvertaken(t *testing.T, c *cluster) {
	t.Helper()

	for name, u := range map[string]*unstructured.Unstructured{
		"XR": xptest.XRV2("x", served("modern.example.org/v1"), xptest.Refs(xptest.NamespacedMR("b", served("s3.m.example.org/v1beta1")))),
		"MR": xptest.NamespacedMR("b", served("s3.m.example.org/v1beta1"), xptest.Annotated(xp.AnnotationExternalName, "old")), "Secret": xptest.Secret("s"),
	} {
		t.Run(name, func(t *testing.T) {
			theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "spec": map[string]any{"theirs": true}}}
			if name == "Secret" {
				theirs.Object = map[string]any{"apiVersion": "v1", "kind": "Secret", "type": xp.SecretTypeConnection, "data": map[string]any{"theirs": "dGhlaXJz"}}
			}
			theirs.SetNamespace(u.GetNamespace())
			theirs.SetName(u.GetName())
			w := &overtaking{DynamicFactory: client.NewDynamicFactory(c.dynamic), of: xp.RefTo(u), create: func() { must(t, c.ApplyObjects(t.Context(), theirs.DeepCopy())) }}
			warnings, errs := restoreFile(t, c, w, velerov1.RestoreSpec{ExistingResourcePolicy: velerov1.PolicyTypeUpdate}, xptest.Backup(u))
			if w.create != nil {
				t.Fatalf("Velero has not created it: %v, %v", warnings, errs)
			}
			live := c.all(t.Context(), t)[xp.RefTo(u).ID()]
			if live == nil {
				t.Fatal("it is gone")
			}
			for _, field := range []string{"spec", "data"} {
				want, got := theirs.Object[field], live.Object[field]
				if a, b := encoded(t, want), encoded(t, got); a != b {
					t.Errorf("the %s of the other writer was %s and is %s; %v", field, a, b, warnings)
				}
			}
			if xp.Annotation(live, xp.AnnotationExternalName) != "" {
				t.Error("it has the backup's external-name")
			}
		})
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)

	return string(b)
}

// overtaking clients create another object before the one that they are to create.
type overtaking struct {
	client.DynamicFactory

	of     xp.Ref
	create func()
}

// ClientForGroupVersionResource returns such a client.
func (w *overtaking) ClientForGroupVersionResource(gv schema.GroupVersion, r metav1.APIResource, ns string) (client.Dynamic, error) {
	d, err := w.DynamicFactory.ClientForGroupVersionResource(gv, r, ns)

	return &overtaken{Dynamic: d, by: w}, err
}

type overtaken struct {
	client.Dynamic

	by *overtaking
}

// Create creates an object.
func (d *overtaken) Create(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if d.by.create != nil && xp.RefTo(u).ID() == d.by.of.ID() {
		d.by.create()
		d.by.create = nil
	}

	return d.Dynamic.Create(u)
}

// testTampered restores one namespace from backups whose files have other contents than their
// paths say, into a cluster in which the other namespaces exist.
func testTampered(t *testing.T, c *cluster) {
	t.Helper()

	mine, cloud := xptest.Labelled(xp.LabelClaimNamespace, "team-a"), served("cloud.example.org/v1beta1")
	publisher := xptest.MR("publisher", mine, cloud, xptest.UID("old"), xptest.PublishesTo("infra", "s"), xptest.Published())
	secret := xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(publisher))
	claim := xptest.Claim("o", xptest.Field("Order", "kind"), xptest.RestoreFirst("buckets.cloud.example.org//publisher", "buckets.cloud.example.org//b"))
	bucket := xptest.MR("b", mine, cloud)
	token := xptest.With(secret, xptest.Field("bootstrap.kubernetes.io/token", "type"))
	cases := map[string]struct {
		path, content *unstructured.Unstructured
	}{
		"Honest":     {path: secret, content: secret},
		"Token":      {path: secret, content: token},
		"OtherName":  {path: secret, content: xptest.With(token, xptest.Field("t", "metadata", "name"))},
		"OtherPlace": {path: secret, content: xptest.With(token, xptest.In("team-a"))},
		"InTheFileOfAClusterScopedOne": {
			path: bucket, content: xptest.NamespacedMR("b", xptest.In("team-b"), served("s3.m.example.org/v1beta1")),
		},
		"OtherClusterScoped": {path: bucket, content: xptest.With(bucket, xptest.Field("c", "metadata", "name"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := swap(t, xptest.Backup(claim, publisher, secret, bucket), pathOf(tc.path), tc.content)
			warnings, errs := restoreFile(t, c, client.NewDynamicFactory(c.dynamic), velerov1.RestoreSpec{IncludedNamespaces: []string{"team-a"}}, file)
			honest := map[xp.ID]bool{xp.RefTo(publisher).ID(): true}
			for _, u := range []*unstructured.Unstructured{secret, bucket} {
				honest[xp.RefTo(u).ID()] = tc.path != u || tc.content == u
			}
			all := c.all(t.Context(), t)
			for id, u := range all {
				if u.GetNamespace() != "team-a" && !honest[id] {
					t.Errorf("%s came; %v", xp.String(u), errs)
				}
			}
			for _, u := range []*unstructured.Unstructured{publisher, secret, bucket} {
				if id := xp.RefTo(u).ID(); honest[id] && all[id] == nil {
					t.Errorf("%s did not come; %v; %v", xp.String(u), warnings, errs)
				}
			}
			c.clear(t.Context(), t)
		})
	}
}

// served returns an option for the version of a kind that the cluster serves.
func served(version string) xptest.Option { return xptest.Field(version, "apiVersion") }

func pathOf(u *unstructured.Unstructured) string {
	scope := "cluster"
	if u.GetNamespace() != "" {
		scope = "namespaces/" + u.GetNamespace()
	}

	return "resources/" + xptest.Resource(u) + "/" + scope + "/" + u.GetName() + ".json"
}

// swap replaces the content of a file in a backup.
func swap(t *testing.T, file []byte, path string, u *unstructured.Unstructured) []byte {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(file))
	must(t, err)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	to := tar.NewWriter(z)
	swapped := false
	for from := tar.NewReader(unzipped); ; {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		content, err := io.ReadAll(from)
		must(t, err)
		if header.Name == path {
			content, err = u.MarshalJSON()
			must(t, err)
			header.Size, swapped = int64(len(content)), true
		}
		must(t, to.WriteHeader(header))
		_, err = to.Write(content)
		must(t, err)
	}
	must(t, errors.Join(to.Close(), z.Close()))
	if !swapped {
		t.Fatalf("the backup has no %s", path)
	}

	return b.Bytes()
}

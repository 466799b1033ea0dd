package hooks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A server is an API server with the kinds of package xptest, Velero's Restores and schedules. A
// patched object is reconciled at once.
type server struct {
	*fake.FakeDynamicClient
}

// markKey signs the marks of all objects in a server, except those that are signed already.
var markKey = hold.Key(bytes.Repeat([]byte("k"), hold.KeySize))

var (
	xorders = schema.GroupVersionResource{Group: "example.org", Version: "v1alpha1", Resource: "xorders"}
	claims  = schema.GroupVersionResource{Group: "example.org", Version: "v1alpha1", Resource: "orderclaims"}
)

func served() map[string][]metav1.APIResource {
	of := func(name, kind string, namespaced bool, category string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Categories: []string{category}, Verbs: metav1.Verbs{"list", "get", "patch"}}
	}

	return map[string][]metav1.APIResource{
		xptest.LegacyVersion:              {of("xorders", xptest.LegacyKind, false, "composite"), of("orderclaims", xptest.ClaimKind, true, "claim")},
		xptest.ManagedVersion:             {of("buckets", xptest.ManagedKind, false, "managed")},
		xp.GroupAPIExtensions + "/v1":     {of("compositionrevisions", "CompositionRevision", false, "crossplane")},
		xp.GroupOperations + "/v1alpha1":  {of("cronoperations", "CronOperation", false, "crossplane")},
		"velero.io/v1":                    {of("restores", "Restore", true, ""), of("backups", "Backup", true, ""), of("serverstatusrequests", "ServerStatusRequest", true, ""), of("backupstoragelocations", "BackupStorageLocation", true, "")},
		"v1":                              {of("events", "Event", true, ""), of("secrets", "Secret", true, ""), of("configmaps", "ConfigMap", true, ""), of("namespaces", "Namespace", false, "")},
		xp.GroupProtection + "/v1beta1":   {of("clusterusages", "ClusterUsage", false, "")},
		"apps/v1":                         {of("deployments", "Deployment", true, "")},
		"rbac.authorization.k8s.io/v1":    {of("clusterrolebindings", "ClusterRoleBinding", false, ""), of("rolebindings", "RoleBinding", true, "")},
		xp.GroupPackage + "/v1":           {of("providerrevisions", "ProviderRevision", false, "crossplane")},
		"admissionregistration.k8s.io/v1": {of("validatingadmissionpolicies", "ValidatingAdmissionPolicy", false, "")},
	}
}

func newServer(objects ...*unstructured.Unstructured) *server {
	kinds := map[schema.GroupVersionResource]string{}
	for version, list := range served() {
		gv, _ := schema.ParseGroupVersion(version)
		for _, r := range list {
			kinds[gv.WithResource(r.Name)] = r.Kind + "List"
		}
	}
	secret := xptest.Secret(cluster.MarkKeySecret, xptest.In("velero"), xptest.Field(base64.StdEncoding.EncodeToString(markKey), "data", "key"),
		xptest.Field("Opaque", "type"), xptest.Field(true, "immutable"), xptest.Labelled("velero.io/exclude-from-backup", "true"),
		xptest.Labelled("app.kubernetes.io/managed-by", cluster.FieldManager))
	all := []runtime.Object{secret}
	for _, u := range objects {
		u = xptest.With(u, xptest.Version("1"))
		if _, err := hold.Of(u); err == nil && !strings.Contains(xp.Annotation(u, hold.Annotation), `"mac":`) {
			if err := markKey.Sign(u, u.GetNamespace()); err != nil {
				panic(err) // The test is wrong.
			}
		}
		all = append(all, u)
	}
	s := &server{FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)}
	s.PrependReactor("patch", "*", s.patch)

	return s
}

// patch acts as the API server on a patch, and then as Crossplane.
func (s *server) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchActionImpl) //nolint:forcetypeassert // It is one.
	obj, err := s.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	u := obj.(*unstructured.Unstructured) //nolint:forcetypeassert // The tracker has no other type.
	var document map[string]any
	if err := json.Unmarshal(patch.GetPatch(), &document); err != nil {
		return true, nil, err
	}
	if v, _, _ := unstructured.NestedString(document, "metadata", "resourceVersion"); v != u.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), errors.New("it has changed"))
	}
	n, _ := strconv.Atoi(u.GetResourceVersion())
	u = xptest.With(xptest.Merge(u, document), xptest.Version(strconv.Itoa(n+1)))
	if !xp.IsManaged(u) && !xp.IsPaused(u) {
		u = xptest.With(u, xptest.Reconciled())
	}

	return true, u, s.Tracker().Update(patch.GetResource(), u, u.GetNamespace())
}

// wrote returns the write requests, without those for Events.
func (s *server) wrote() []string {
	var wrote []string
	for _, a := range s.Actions() {
		if p, ok := a.(clienttesting.PatchActionImpl); ok {
			wrote = append(wrote, p.GetResource().Resource+" "+p.GetName())
		} else if !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb()) && a.GetResource().Resource != "events" {
			wrote = append(wrote, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}

	return wrote
}

func (s *server) get(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := s.Tracker().Get(gvr, namespace, name)
	if err != nil {
		t.Fatal(err)
	}

	return obj.(*unstructured.Unstructured) //nolint:forcetypeassert // The tracker has no other type.
}

func (s *server) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	list, ok := served()[groupVersion]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}

	return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: list}, nil
}

func (s *server) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for groupVersion := range served() {
		gv, err := schema.ParseGroupVersion(groupVersion)
		if err != nil {
			return nil, err
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: v, Versions: []metav1.GroupVersionForDiscovery{v}})
	}

	return list, nil
}

// restored returns u as the Restore "gone" created it, on hold.
func restored(u *unstructured.Unstructured, h hold.Hold, o ...xptest.Option) *unstructured.Unstructured {
	u = xptest.With(u, xptest.Labelled("velero.io/restore-name", "gone"))
	h.Restore, h.Since = "velero/gone", "2026-01-02T03:04:05Z"
	if _, err := hold.Put(u, h); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

// gone returns the Restore that added the holds.
func gone(phase string) *unstructured.Unstructured {
	return xptest.Object("velero.io/v1", "Restore", "velero", "gone", xptest.Field(phase, "status", "phase"))
}

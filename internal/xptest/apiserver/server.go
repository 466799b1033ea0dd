// Package apiserver has API servers for tests, with the kinds of package xptest, and what a restore
// leaves in them. A Server (server.go) is what a Cluster uses in place of clients: it counts and fails
// as a test wants, but has no watches. A Transport (transport.go) answers the requests of real
// clients, with pages and watches. Only tests import it.
package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A Server is an API server with the kinds of package xptest. It rejects a patch of an object that
// has changed since it was observed.
type Server struct {
	*fake.FakeDynamicClient

	// Kinds are what discovery returns, by group and version.
	Kinds map[string][]metav1.APIResource
	// KindReads are the groups and versions that discovery has read.
	KindReads []string
	// GroupReads counts how often discovery has read the groups.
	GroupReads int
	// DiscoveryErr is the error of discovery.
	DiscoveryErr error
	// Undiscoverable are the errors of groups and versions.
	Undiscoverable map[string]error
}

// The resources of the servers.
var (
	XOrders      = schema.GroupVersionResource{Group: "example.org", Version: "v1alpha1", Resource: "xorders"}
	OrderClaims  = schema.GroupVersionResource{Group: "example.org", Version: "v1alpha1", Resource: "orderclaims"}
	Buckets      = schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "buckets"}
	revisions    = schema.GroupVersionResource{Group: xp.GroupAPIExtensions, Version: "v1", Resource: "compositionrevisions"}
	compositions = schema.GroupVersionResource{Group: xp.GroupAPIExtensions, Version: "v1", Resource: "compositions"}
	Secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	ConfigMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	Events       = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	Deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	Usages       = schema.GroupVersionResource{Group: xp.GroupAPIExtensions, Version: "v1beta1", Resource: "usages"}
	XRDs         = schema.GroupVersionResource{Group: xp.GroupAPIExtensions, Version: "v1", Resource: "compositeresourcedefinitions"}
	Functions    = schema.GroupVersionResource{Group: xp.GroupPackage, Version: "v1", Resource: "functions"}
	packages     = schema.GroupVersionResource{Group: xp.GroupPackage, Version: "v1", Resource: "functionrevisions"}
	restores     = schema.GroupVersionResource{Group: "velero.io", Version: "v1", Resource: "restores"}
	CRDs         = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	orders       = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "orders"}
	queues       = schema.GroupVersionResource{Group: "cloud.example.org", Version: "v1alpha1", Resource: "queues"}
	OtherSecrets = schema.GroupVersionResource{Group: "secretsmanager.example.org", Version: "v1beta1", Resource: "secrets"}

	DefinitionsOfMRs = xp.ResourceManagedDefinition.WithVersion("v1alpha1")
	namespacedUsages = schema.GroupVersionResource{Group: xp.GroupProtection, Version: "v1beta1", Resource: "usages"}
)

// listKinds are the list kinds of the resources that the fake client serves.
var listKinds = map[schema.GroupVersionResource]string{
	XOrders: xptest.LegacyKind + "List", OrderClaims: xptest.ClaimKind + "List", Buckets: xptest.ManagedKind + "List", revisions: "CompositionRevisionList",
	compositions: "CompositionList", ConfigMaps: "ConfigMapList", Secrets: "SecretList", Events: "EventList", Deployments: "DeploymentList",
	DefinitionsOfMRs: "ManagedResourceDefinitionList", XRDs: "CompositeResourceDefinitionList", Functions: "FunctionList", packages: "FunctionRevisionList",
	Usages: "UsageList", namespacedUsages: "UsageList", restores: "RestoreList", OtherSecrets: "SecretList", CRDs: "CustomResourceDefinitionList",
}

// NewServer returns a Server with objects.
func NewServer(objects ...*unstructured.Unstructured) *Server {
	var all []runtime.Object
	for _, u := range objects {
		all = append(all, xptest.With(u, xptest.Version("1")))
	}
	s := &Server{
		FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, all...),
		Kinds: map[string][]metav1.APIResource{
			xptest.LegacyVersion: {
				{Name: "xorders/status", Kind: xptest.LegacyKind},
				{Name: "xorders", Kind: xptest.LegacyKind},
				{Name: "orderclaims", Kind: xptest.ClaimKind, Namespaced: true},
			},
			"v1":                          {{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true}},
			"apps/v1":                     {{Name: "deployments", Kind: "Deployment", Namespaced: true}},
			xptest.ManagedVersion:         {{Name: "buckets", Kind: xptest.ManagedKind}},
			xp.GroupAPIExtensions + "/v1": {{Name: "compositionrevisions", Kind: "CompositionRevision"}, {Name: "compositions", Kind: "Composition"}},
		},
	}
	s.PrependReactor("patch", "*", s.rejectStale)
	s.PrependReactor("create", "*", generateName)
	// The fake's watches have no events between a list and the watch. Tests of watches use a
	// Transport.
	s.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("no watches"))
	})

	return s
}

// Serve adds kinds of a group and version.
func (s *Server) Serve(groupVersion string, kinds ...metav1.APIResource) *Server {
	s.Kinds[groupVersion] = append(s.Kinds[groupVersion], kinds...)

	return s
}

// NewPlatform returns a server that also serves XRDs, Functions and Usages.
func NewPlatform(objects ...*unstructured.Unstructured) *Server {
	return NewServer(objects...).Serve(Usages.GroupVersion().String(), metav1.APIResource{Name: Usages.Resource, Kind: "Usage"}).
		Serve(xp.GroupAPIExtensions+"/v1", metav1.APIResource{Name: XRDs.Resource, Kind: "CompositeResourceDefinition"}).
		Serve(xp.GroupPackage+"/v1", metav1.APIResource{Name: Functions.Resource, Kind: "Function"}, metav1.APIResource{Name: packages.Resource, Kind: "FunctionRevision"})
}

// generateName sets a generated name, as an API server does.
func generateName(action clienttesting.Action) (bool, runtime.Object, error) {
	if create, ok := action.(clienttesting.CreateActionImpl); ok {
		u := create.Object.(*unstructured.Unstructured) //nolint:forcetypeassert // The client sends only such objects.
		if u.GetName() == "" {
			u.SetName(u.GetGenerateName() + rand.String(5))
		}
	}

	return false, nil, nil
}

// rejectStale rejects a patch with an old resourceVersion, as an API server does, and sets a new
// one.
func (s *Server) rejectStale(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(clienttesting.PatchActionImpl)
	if !ok {
		return false, nil, nil
	}
	obj, err := s.Tracker().Get(patch.GetResource(), patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	u := obj.(*unstructured.Unstructured) //nolint:forcetypeassert // The tracker returns only such objects.
	var document map[string]any
	if err := json.Unmarshal(patch.GetPatch(), &document); err != nil {
		return true, nil, err
	}
	if v, _, _ := unstructured.NestedString(document, "metadata", "resourceVersion"); v != "" && v != u.GetResourceVersion() {
		return true, nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), errors.New("it has changed"))
	}

	return true, s.Put(patch.GetResource(), xptest.Merge(u, document)), nil
}

// Put creates or replaces an object with the next resourceVersion, and returns it.
func (s *Server) Put(gvr schema.GroupVersionResource, u *unstructured.Unstructured) *unstructured.Unstructured {
	n, _ := strconv.Atoi(u.GetResourceVersion())
	u = xptest.With(u, xptest.Version(strconv.Itoa(n+1)))
	if err := s.Tracker().Update(gvr, u, u.GetNamespace()); apierrors.IsNotFound(err) {
		err = s.Tracker().Create(gvr, u, u.GetNamespace())
		if err != nil {
			panic(err) // The test is wrong.
		}
	}

	return u
}

// Get returns an object, which must exist.
func (s *Server) Get(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	obj, err := s.Tracker().Get(gvr, namespace, name)
	xptest.Must(t, err)

	return obj.(*unstructured.Unstructured) //nolint:forcetypeassert // The tracker returns only such objects.
}

// All returns the objects of a resource.
func (s *Server) All(gvr schema.GroupVersionResource, gvk schema.GroupVersionKind) (all []*unstructured.Unstructured) {
	list := xptest.Value(s.Tracker().List(gvr, gvk, ""))
	for _, u := range list.(*unstructured.UnstructuredList).Items { //nolint:forcetypeassert // The tracker returns only lists.
		all = append(all, &u)
	}

	return all
}

// FailOn makes the first n requests with a verb fail.
func (s *Server) FailOn(verb, resource string, n int, err error) {
	s.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		n--

		return n >= 0, nil, err
	})
}

// Before calls happens before the n-th request with the verb.
func (s *Server) Before(verb string, n int, happens func()) {
	s.PrependReactor(verb, "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		n--
		if n == 0 {
			happens()
		}

		return false, nil, nil
	})
}

// RefuseLists makes lists of a resource fail; with whole only those without a selector.
func (s *Server) RefuseLists(resource string, whole bool, err error) {
	s.PrependReactor("list", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		list, ok := a.(clienttesting.ListActionImpl)

		return ok && (!whole || list.GetListRestrictions().Labels.Empty()), nil, err
	})
}

// Requests returns the requests with a verb, as resource and label selector or name.
func (s *Server) Requests(verb string) []string {
	var asked []string
	for _, a := range s.Actions() {
		if a.GetVerb() != verb {
			continue
		}
		what := a.GetResource().Resource
		switch a := a.(type) {
		case clienttesting.ListActionImpl:
			what += " " + a.GetListRestrictions().Labels.String()
		case clienttesting.GetActionImpl:
			what += " " + a.GetNamespace() + "/" + a.GetName()
		case clienttesting.PatchActionImpl:
			what += " " + a.GetNamespace() + "/" + a.GetName()
		}
		asked = append(asked, what)
	}

	return asked
}

// Count returns how often requests has an entry.
func (s *Server) Count(verb, what string) (n int) {
	for _, asked := range s.Requests(verb) {
		if asked == what {
			n++
		}
	}

	return n
}

// Steps returns the patches that change more than a notice in a mark.
func (s *Server) Steps() []string {
	var steps []string
	for _, a := range s.Actions() {
		patch, ok := a.(clienttesting.PatchActionImpl)
		if !ok {
			continue
		}
		var document map[string]any
		if err := json.Unmarshal(patch.GetPatch(), &document); err != nil {
			panic(err) // The code is wrong.
		}
		if mark, _, _ := unstructured.NestedString(document, "metadata", "annotations", hold.Annotation); mark != "" {
			unstructured.RemoveNestedField(document, "metadata", "annotations", hold.Annotation)
		}
		unstructured.RemoveNestedField(document, "metadata", "resourceVersion")
		if !cmp.Equal(document, map[string]any{"metadata": map[string]any{"annotations": map[string]any{}}}) {
			steps = append(steps, patch.GetResource().Resource+" "+patch.GetNamespace()+"/"+patch.GetName())
		}
	}

	return steps
}

// WrittenEvents returns the Events that were written, as reason, object and message.
func (s *Server) WrittenEvents() []string {
	var told []string
	for _, a := range s.Actions() {
		if create, ok := a.(clienttesting.CreateActionImpl); ok && create.GetResource() == Events {
			e := create.Object.(*unstructured.Unstructured) //nolint:forcetypeassert // The client sends only such objects.
			about, _, _ := unstructured.NestedStringMap(e.Object, "involvedObject")
			told = append(told, fmt.Sprintf("%s %s %s: %s", e.Object["type"], e.Object["reason"], about["name"], e.Object["message"]))
		}
	}

	return told
}

// ServerResourcesForGroupVersion returns the kinds of a group and version.
func (s *Server) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	s.KindReads = append(s.KindReads, groupVersion)
	if s.DiscoveryErr != nil {
		return nil, s.DiscoveryErr
	}
	if groupVersion == "" {
		return nil, errors.New("groupVersion shouldn't be empty") // As client-go does.
	}
	if err := s.Undiscoverable[groupVersion]; err != nil {
		return nil, err
	}
	list, ok := s.Kinds[groupVersion]
	if !ok {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}

	return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: list}, nil
}

// ServerGroups returns the groups and versions.
func (s *Server) ServerGroups() (*metav1.APIGroupList, error) {
	s.GroupReads++
	if s.DiscoveryErr != nil {
		return nil, s.DiscoveryErr
	}

	return groupsOf(s.Kinds)
}

// groupsOf returns the groups of kinds by group and version, with the newest version preferred.
func groupsOf(kinds map[string][]metav1.APIResource) (*metav1.APIGroupList, error) {
	versions := map[string][]metav1.GroupVersionForDiscovery{}
	for groupVersion := range kinds {
		gv, err := schema.ParseGroupVersion(groupVersion)
		if err != nil {
			return nil, err
		}
		versions[gv.Group] = append(versions[gv.Group], metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: gv.Version})
	}
	list := &metav1.APIGroupList{}
	for group, vs := range versions {
		slices.SortFunc(vs, func(a, b metav1.GroupVersionForDiscovery) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, PreferredVersion: vs[0], Versions: vs})
	}

	return list, nil
}

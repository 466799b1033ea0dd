package hooks

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/guard"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

var policies = schema.GroupVersionResource{Group: guard.Group, Version: "v1", Resource: "validatingadmissionpolicies"}

// A guarded server enforces the guard.
type guarded struct {
	*fake.FakeDynamicClient

	kinds map[string][]metav1.APIResource
}

// guardedServer returns a server with the objects, of Kubernetes v1.30 or, if old, an earlier
// version.
func guardedServer(old bool, objects ...*unstructured.Unstructured) *guarded {
	of := func(name, kind string, namespaced bool, categories ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: namespaced, Categories: categories, Verbs: metav1.Verbs{"list", "get", "patch"}}
	}
	s := &guarded{kinds: map[string][]metav1.APIResource{
		xptest.LegacyVersion: {
			of("xorders", xptest.LegacyKind, false, "composite"), of("orderclaims", xptest.ClaimKind, true, "claim"), of("others", "Other", true),
		},
		xp.GroupAPIExtensions + "/v1": {of("compositeresourcedefinitions", "CompositeResourceDefinition", false)},
		"apps/v1":                     {of("deployments", "Deployment", true)},
		"v1":                          {of("events", "Event", true)},
		"velero.io/v1":                {of("restores", "Restore", true)},
	}}
	if !old {
		s.kinds[guard.Group+"/v1"] = []metav1.APIResource{
			of(policies.Resource, guard.KindValidating, false), of("validatingadmissionpolicybindings", guard.KindValidatingBinding, false),
		}
	}
	kinds, all := map[schema.GroupVersionResource]string{}, []runtime.Object{}
	for version, list := range s.kinds {
		gv, _ := schema.ParseGroupVersion(version)
		for _, r := range list {
			kinds[gv.WithResource(r.Name)] = r.Kind + "List"
		}
	}
	for _, u := range objects {
		all = append(all, u)
	}
	s.FakeDynamicClient = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, all...)
	s.PrependReactor("create", "events", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if _, err := s.Tracker().Get(policies, "", guard.Name); err == nil {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, guard.Name, errors.New("the policy says so"))
		}

		return true, action.(clienttesting.CreateActionImpl).GetObject(), nil //nolint:forcetypeassert // It is one.
	})
	s.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, xptest.Object("authentication.k8s.io/v1", "SelfSubjectReview", "", "", xptest.Field("alice", "status", "userInfo", "username")), nil
	})

	return s
}

func (s *guarded) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{GroupVersion: groupVersion, APIResources: s.kinds[groupVersion]}, nil
}

func (s *guarded) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for _, groupVersion := range slices.Sorted(maps.Keys(s.kinds)) {
		gv, _ := schema.ParseGroupVersion(groupVersion)
		v := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, PreferredVersion: v, Versions: []metav1.GroupVersionForDiscovery{v}})
	}

	return list, nil
}

// up returns the server's guard; the zero value if there is none.
func (s *guarded) up(t *testing.T) guard.Guard {
	t.Helper()
	obj, err := s.Tracker().Get(policies, "", guard.Name)
	if err != nil {
		return guard.Guard{}
	}
	g, err := guard.From(obj.(*unstructured.Unstructured)) //nolint:forcetypeassert // The tracker has no other type.
	if err != nil {
		t.Fatal(err)
	}
	g.Since = ""

	return g
}

func xrdOf(group string) *unstructured.Unstructured {
	return xptest.Object("apiextensions.crossplane.io/v1", "CompositeResourceDefinition", "", "xorders."+group, xptest.Field(group, "spec", "group"),
		xptest.Field("xorders", "spec", "names", "plural"), xptest.Field("orderclaims", "spec", "claimNames", "plural"))
}

// accounts are the default users without a Deployment of Velero and Crossplane.
func accounts(more ...string) []string {
	more = append(more, "system:serviceaccount:crossplane-system:crossplane", "system:serviceaccount:velero:velero", "system:serviceaccount:velero:velero-server")
	slices.Sort(more)

	return more
}

func TestGuardOn(t *testing.T) {
	backup := filepath.Join(t.TempDir(), "backup.tar.gz")
	if err := os.WriteFile(backup, xptest.Backup(xrdOf("backup.example.org")), 0o600); err != nil {
		t.Fatal(err)
	}
	deployment := func(namespace, name, account string, o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Object("apps/v1", "Deployment", namespace, name, append(o, xptest.Field(account, "spec", "template", "spec", "serviceAccountName"))...)
	}
	crossplane := xptest.Labelled("app.kubernetes.io/part-of", "crossplane")
	own := func(g guard.Guard) *unstructured.Unstructured { g.Since = "monday"; return g.Objects("")[0] }
	foreign := xptest.Object(guard.Group+"/v1", guard.KindValidating, "", guard.Name)
	type want struct {
		Guard guard.Guard
		Err   string
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		old     bool
		on      guardOn
		want    want
		out     []string
	}{
		"Cluster": {
			reason: "By default the guard covers the kinds of all XRDs and names the users that it allows.", objects: []*unstructured.Unstructured{xrdOf("example.org")},
			want: want{Guard: guard.Guard{Kinds: []string{"orderclaims.example.org", "xorders.example.org"}, Users: accounts(), CreatedBy: "alice"}},
			out:  []string{"up since", "put up by alice", "the API server refuses what they create", "everywhere", "orderclaims.example.org", "system:serviceaccount:velero:velero", "guard off"},
		},
		"Namespace": {
			reason: "A guard of a namespace covers only claims.", objects: []*unstructured.Unstructured{xrdOf("example.org")}, on: guardOn{namespaces: []string{"team-a"}},
			want: want{Guard: guard.Guard{Kinds: []string{"orderclaims.example.org"}, Namespaces: []string{"team-a"}, Users: accounts(), CreatedBy: "alice"}},
			out:  []string{"team-a", "CLUSTER-SCOPED  xorders.example.org"},
		},
		"Named": {
			reason: "A guard covers a cluster-scoped kind only by name.", objects: []*unstructured.Unstructured{xrdOf("example.org")},
			on: guardOn{namespaces: []string{"team-a"}, kinds: []string{"xorders.example.org", "*.new.example.org"}, users: []string{"bob"}},
			want: want{Guard: guard.Guard{
				Kinds: []string{"*.new.example.org", "orderclaims.example.org", "xorders.example.org"}, Namespaces: []string{"team-a"}, Users: accounts("bob"), CreatedBy: "alice",
			}},
		},
		"Backup": {
			reason: "A new cluster has no XRDs yet, so the backup provides the kinds.", on: guardOn{backup: backup},
			want: want{Guard: guard.Guard{Kinds: []string{"orderclaims.backup.example.org", "xorders.backup.example.org"}, Users: accounts(), CreatedBy: "alice"}},
		},
		"Accounts": {
			reason: "The guard must allow only the accounts of the Deployments of Velero and Crossplane.",
			objects: []*unstructured.Unstructured{
				xrdOf("example.org"), deployment("velero", "v", "a", xptest.Labelled("app.kubernetes.io/name", "velero")), deployment("velero", "ui", "b"),
				deployment("crossplane-system", "xp", "c", crossplane), deployment("crossplane-system", "xp-rbac-manager", "d", crossplane),
				deployment("team-a", "crossplane", "e", crossplane), deployment("team-a", "velero", "f"),
			},
			want: want{Guard: guard.Guard{
				Kinds: []string{"orderclaims.example.org", "xorders.example.org"}, CreatedBy: "alice",
				Users: []string{"system:serviceaccount:crossplane-system:c", "system:serviceaccount:velero:a"},
			}},
		},
		"Again": {
			reason:  "A second guard on must keep the kinds of the first.",
			objects: []*unstructured.Unstructured{xrdOf("example.org"), own(guard.Guard{Kinds: []string{"olds.example.org"}, Users: []string{"bob"}, CreatedBy: "carol"})},
			want: want{Guard: guard.Guard{
				Kinds: []string{"olds.example.org", "orderclaims.example.org", "xorders.example.org"}, Users: accounts("bob"), CreatedBy: "carol",
			}},
		},
		"DryRun": {
			reason: "A dry run must print the objects and write nothing.", objects: []*unstructured.Unstructured{xrdOf("example.org")}, on: guardOn{dryRun: true},
			out: []string{"kind: ValidatingAdmissionPolicy\n", "---\n", "kind: ValidatingAdmissionPolicyBinding\n", "validationActions:\n  - Deny\n"},
		},
		"Old": {
			reason: "On an old Kubernetes the error must name the needed version.", objects: []*unstructured.Unstructured{xrdOf("example.org")}, old: true,
			want: want{Err: "Kubernetes v1.30 and later"},
		},
		"NoMutating": {
			reason: "A cluster without MutatingAdmissionPolicies can't pause objects.", objects: []*unstructured.Unstructured{xrdOf("example.org")}, on: guardOn{paused: true},
			want: want{Err: "without --paused"},
		},
		"Nothing":      {reason: "A guard without kinds would protect nothing.", want: want{Err: "with --backup"}},
		"EmptyBackup":  {reason: "A guard of a backup without XRDs would protect nothing.", on: guardOn{backup: "-"}, want: want{Err: "cannot find an XRD"}},
		"OtherKind":    {reason: "The guard must only cover claims and XRs.", on: guardOn{kinds: []string{"others.example.org"}}, want: want{Err: "serves other kinds than claims and XRs"}},
		"OtherInGroup": {reason: "The guard must not cover a group that has other kinds too.", on: guardOn{kinds: []string{"*.example.org"}}, want: want{Err: "serves other kinds than claims and XRs"}},
		"Foreign": {
			reason: "The guard must not overwrite an object of another owner.", objects: []*unstructured.Unstructured{xrdOf("example.org"), foreign}, want: want{Err: "it has the name of the guard"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			s := guardedServer(tc.old, tc.objects...)
			tc.on.options = &options{Streams: Streams{In: bytes.NewReader(xptest.Backup(xptest.MR("b"))), Out: &out, Err: &errs}, velero: "velero"}
			tc.on.crossplane = defaultCrossplane
			cluster := live.NewCluster(s, s)
			err := tc.on.run(t.Context(), cluster, prober{timeout: time.Second, pause: time.Millisecond, probe: cluster.Probe})
			var got want
			if err != nil {
				got.Err = err.Error()
			}
			if tc.want.Err != "" && strings.Contains(got.Err, tc.want.Err) {
				got.Err = tc.want.Err
			}
			if name != "Foreign" {
				got.Guard = s.up(t)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s%s", tc.reason, diff, errs.String())
			}
			for _, must := range tc.out {
				if !strings.Contains(out.String(), must) {
					t.Errorf("%s %q is not in:\n%s", tc.reason, must, out.String())
				}
			}
		})
	}
}

// A guard that the API server does not enforce must be reported.
func TestGuardOnNotEnforced(t *testing.T) {
	cases := map[string]struct {
		reason string
		does   live.Probe
		paused bool
		err    error
		want   string
	}{
		"Admitted":  {reason: "The API server does not enforce the guard yet.", does: live.Admitted, want: "cannot rely on the guard"},
		"Refused":   {reason: "The API server enforces the guard.", does: live.Refused},
		"Paused":    {reason: "The API server enforces the guard and pauses new objects.", does: live.Paused, paused: true},
		"NotPaused": {reason: "The guard refuses new objects instead of pausing them.", does: live.Refused, paused: true, want: "does not enforce its MutatingAdmissionPolicy"},
		"Unknown":   {reason: "Without the right to probe, guard on must print that the state is unknown.", err: errors.New("forbidden")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var errs bytes.Buffer
			g := &guardOn{options: &options{Streams: Streams{Err: &errs}}, paused: tc.paused}
			_, err := g.awaitEnforced(t.Context(), prober{pause: time.Millisecond, probe: func(context.Context) (live.Probe, error) { return tc.does, tc.err }})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s got %v, want %q", tc.reason, err, tc.want)
			}
			if (tc.err != nil) != strings.Contains(errs.String(), "The API server should enforce it in a few seconds") {
				t.Errorf("%s got %q", tc.reason, errs.String())
			}
		})
	}
}

package cluster

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// Each kind is listed once, however many of its objects are asked for.
func TestInventoryListsOnce(t *testing.T) {
	unnamed, of := xptest.Without("metadata", "annotations"), xptest.JSON(`{"status":{"atProvider":{"id":"vpc-1"}}}`)
	a, b := xptest.MR("a", xptest.Annotated(xp.AnnotationExternalName, "shared"), xptest.JSON(`{"spec":{"providerConfigRef":{"name":"cloud"}}}`)),
		xptest.MR("b", xptest.Annotated(xp.AnnotationExternalName, "shared"), xptest.Field([]any{"Observe"}, "spec", "managementPolicies"))
	nameless, absent, lost, other := xptest.MR("c", unnamed), xptest.MR("d"), xptest.MR("lost", unnamed, of), xptest.MR("other", xptest.Deleting(), of)
	s := apiserver.NewServer(a, b, nameless, lost, other)
	c := clusterOf(s)
	for range 2 {
		for _, u := range []*unstructured.Unstructured{a, nameless, other, absent} {
			exists, err := c.Exists(t.Context(), xp.RefTo(u))
			deleting, deletingErr := c.Deleting(t.Context(), xp.RefTo(u))
			if err != nil || deletingErr != nil || exists != (u != absent) || deleting != (u == other) {
				t.Errorf("%s: exists %t, %v; being deleted %t, %v", u.GetName(), exists, err, deleting, deletingErr)
			}
		}
		s.Put(apiserver.Buckets, absent) // What the restore creates must not count as live before it.
	}
	for name, want := range map[string][]xp.Managing{
		"shared": {xp.ManagingOf(a), xp.ManagingOf(b)}, "c": nil, "": nil, "vpc-1": {xp.ManagingOf(lost)}, "other": {xp.ManagingOf(other)},
	} {
		got, err := c.Named(t.Context(), a.GroupVersionKind(), name)
		xptest.Must(t, err)
		xptest.Same(t, want, got, "the MRs of the external-name "+name)
	}
	if ok, err := c.Exists(t.Context(), xp.Ref{APIVersion: "cloud.example.org/v9", Kind: xptest.ManagedKind, Name: "a"}); !ok || err != nil {
		t.Errorf("the version of a kind has no effect; got %v, %v", ok, err)
	}
	if diff := cmp.Diff([]string{"buckets "}, s.Requests("list")); diff != "" || len(s.Requests("get")) > 0 {
		t.Errorf("a restore has many items of a kind, and one list must serve them: -want, +requested:\n%s", diff)
	}
	if ok, err := c.ExistsNow(t.Context(), xp.RefTo(absent)); !ok || err != nil {
		t.Errorf("another writer's object must count from its creation on; got %v, %v", ok, err)
	}
}

// A CRD that went away after discovery has no objects, as a kind that is not served.
func TestInventoryOfUnservedKinds(t *testing.T) {
	s := apiserver.NewServer(xptest.MR("b"))
	s.FailOn("list", "buckets", 1, apierrors.NewNotFound(apiserver.Buckets.GroupResource(), ""))
	for _, u := range []*unstructured.Unstructured{xptest.MR("b"), xptest.Object("gone.org/v1", "Gone", "", "g")} {
		if ok, err := clusterOf(s).Exists(t.Context(), xp.RefTo(u)); ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
	}
}

func TestMoved(t *testing.T) {
	mr := xptest.NamespacedMR("b", xptest.Annotated(xp.AnnotationExternalName, "external"))
	s := apiserver.NewServer(apiserver.Restored(mr), xptest.With(mr, xptest.Field("made", "metadata", "name")), apiserver.Restored(xptest.NamespacedMR("other")))
	c := clusterOf(s)
	for range 2 {
		got, err := c.Moved(t.Context(), mr.GroupVersionKind(), "external")
		xptest.Must(t, err)
		xptest.Same(t, []xp.Managing{xp.ManagingOf(mr)}, got, "the result must have the restored MR")
	}
	if lists := s.Requests("list"); len(lists) != 1 {
		t.Errorf("a kind must be listed once; got %v", lists)
	}
	s.FailOn("list", "*", 1<<30, apiserver.ErrDown)
	if _, err := clusterOf(s).Moved(t.Context(), mr.GroupVersionKind(), "external"); err == nil {
		t.Error("a failed list must be an error")
	}
}

func ownerOf(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: xptest.LegacyVersion, Kind: kind, Name: name, UID: "old"}
}

func TestOwner(t *testing.T) {
	s := apiserver.NewServer()
	c := clusterOf(s)
	ref := ownerOf(xptest.LegacyKind, "x")
	if _, err := c.Owner(t.Context(), ref, "team-a"); !apierrors.IsNotFound(err) {
		t.Errorf("an absent owner must give a NotFound error; got %v", err)
	}
	xr := xptest.XR("x", xptest.UID("new"), xptest.Generation(3), xptest.Refs(xptest.MR("b")))
	s.Put(apiserver.XOrders, xptest.With(xr, xptest.Reconciled(), xptest.Field([]any{map[string]any{"manager": "crossplane"}}, "metadata", "managedFields")))
	for range 3 {
		owner, err := c.Owner(t.Context(), ref, "team-a")
		xptest.Must(t, err)
		xptest.Same(t, xr.Object, xptest.With(owner, xptest.Without("metadata", "resourceVersion")).Object, "each call must return the live owner without unused fields")
		owner.SetUID("changed by the caller")
	}
	xptest.Same(t, []string{"xorders /x", "xorders /x"}, s.Requests("get"), "a live owner is requested once, and an absent one again, since it can appear")
}

// A tenant's owners can have 1.5 MiB each, and all are of one restore.
func TestOwnersAreForgotten(t *testing.T) {
	const xrs = 60
	s := apiserver.NewServer()
	c := clusterOf(s)
	for n := range xrs {
		name := fmt.Sprint("x", n)
		s.Put(apiserver.XOrders, xptest.XR(name, xptest.Field(strings.Repeat("x", 1<<20), "spec", "text")))
		for range 2 {
			if _, err := c.Owner(t.Context(), ownerOf(xptest.LegacyKind, name), ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	size := 0
	for _, b := range c.owners {
		size += len(b)
	}
	if n := len(s.Requests("get")); size > maxOwnersSize || size != c.ownersSize || n != xrs {
		t.Errorf("%d owners with %d bytes are kept, counted as %d bytes, and were read %d times", len(c.owners), size, c.ownersSize, n)
	}
}

// Objects in a thousand namespaces can have the same cluster-scoped owner. Each namespace has its own
// owner of a namespaced kind. A kind that is not served costs no request.
func TestOwnerOfObjectsInDifferentNamespaces(t *testing.T) {
	s := apiserver.NewServer(xptest.XR("x", xptest.UID("x")), xptest.Claim("o", xptest.UID("a")), xptest.Claim("o", xptest.In("team-b"), xptest.UID("b")))
	c := clusterOf(s)
	var got []string
	for _, ref := range []metav1.OwnerReference{ownerOf(xptest.LegacyKind, "x"), ownerOf(xptest.ClaimKind, "o"), ownerOf("Gone", "g")} {
		for _, namespace := range []string{"team-a", "team-b", "", "team-a"} {
			owner, err := c.Owner(t.Context(), ref, namespace)
			xptest.Must(t, IgnoreUnserved(err))
			if owner != nil {
				got = append(got, string(owner.GetUID()))
			}
		}
	}
	xptest.Same(t, []string{"x", "x", "x", "x", "a", "b", "a"}, got, "each object must have its own owner")
	xptest.Same(t, []string{"xorders /x", "orderclaims team-a/o", "orderclaims team-b/o", "orderclaims /o"}, s.Requests("get"), "each owner must be requested once")
}

func TestVersions(t *testing.T) {
	crd := xptest.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "buckets.cloud.example.org", xptest.JSON(
		`{"spec":{"group":"cloud.example.org","names":{"kind":"Bucket"},"versions":[{"name":"v1alpha1","served":true,"storage":true}]}}`))
	bucket := schema.GroupKind{Group: "cloud.example.org", Kind: "Bucket"}
	known := xp.Versions{Kind: bucket, Stored: "v1alpha1", Served: []string{"v1alpha1"}}
	type args struct {
		reason string
		kind   schema.GroupKind
		crds   []*unstructured.Unstructured
		err    error
		want   xp.Versions
		asked  int
		fails  bool
	}
	xptest.Each(t, map[string]args{
		"CRD":       {reason: "One request is enough.", kind: bucket, crds: []*unstructured.Unstructured{crd}, want: known, asked: 1},
		"None":      {reason: "Another API server serves the kind.", kind: bucket, asked: 1},
		"Unserved":  {reason: "No API server serves the kind.", kind: schema.GroupKind{Group: "none.example.org", Kind: "X"}},
		"Forbidden": {reason: "Without the right to read CRDs there are no versions.", kind: bucket, asked: 1, err: apierrors.NewForbidden(apiserver.CRDs.GroupResource(), "", apiserver.ErrDown)},
		"Broken":    {reason: "A failure must be x.", kind: bucket, asked: 2, fails: true, err: apiserver.ErrDown},
	}, func(t *testing.T, tc args) {
		s := apiserver.NewServer(tc.crds...).Serve("apiextensions.k8s.io/v1", metav1.APIResource{Name: apiserver.CRDs.Resource, Kind: "CustomResourceDefinition"})
		if tc.err != nil {
			s.FailOn("get", apiserver.CRDs.Resource, 9, tc.err)
		}
		c := clusterOf(s)
		for range 2 {
			got, err := c.Versions(t.Context(), tc.kind)
			if diff := cmp.Diff(tc.want, got); (err != nil) != tc.fails || diff != "" {
				t.Errorf("%s: error %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		}
		if asked := len(s.Requests("get")); asked != tc.asked {
			t.Errorf("%s: requested %d times, not %d", tc.reason, asked, tc.asked)
		}
	})
}

func keySecret(value string, o ...xptest.Option) *unstructured.Unstructured {
	return xptest.Secret(MarkKeySecret, append([]xptest.Option{
		xptest.In("velero"), xptest.Field(base64.StdEncoding.EncodeToString([]byte(value)), "data", markKeyField), xptest.Field("Opaque", "type"),
		xptest.Field(true, "immutable"), xptest.Labelled(labelExclude, "true"), xptest.Labelled(labelManagedBy, FieldManager),
	}, o...)...)
}

func TestMarkKey(t *testing.T) {
	s := apiserver.NewServer()
	c := clusterOf(s)
	key, err := c.MarkKey(t.Context(), "velero")
	if err != nil || len(key) != hold.KeySize || s.Get(t, apiserver.Secrets, "velero", MarkKeySecret).GetLabels()[labelExclude] != "true" {
		t.Fatalf("the first call must create a key that no restore brings back; got %d bytes, %v", len(key), err)
	}
	asked := len(s.Actions())
	if again, err := c.MarkKey(t.Context(), "velero"); err != nil || string(again) != string(key) || len(s.Actions()) != asked {
		t.Errorf("the key must be read once: %v, %d more requests", err, len(s.Actions())-asked)
	}
	if other, err := clusterOf(s).MarkKey(t.Context(), "velero"); err != nil || string(other) != string(key) {
		t.Errorf("the next process must use the same key; got %v", err)
	}
	// Two processes can find no key at the same time.
	s = apiserver.NewServer()
	theirs := strings.Repeat("t", hold.KeySize)
	s.Before("create", 1, func() { s.Put(apiserver.Secrets, keySecret(theirs)) })
	if key, err := clusterOf(s).MarkKey(t.Context(), "velero"); err != nil || string(key) != theirs {
		t.Errorf("got %q, %v", key, err)
	}
}

func TestReadMarkKey(t *testing.T) {
	good := strings.Repeat("k", hold.KeySize)
	cases := map[string]struct {
		reason string
		secret *unstructured.Unstructured
		want   string
	}{
		"None":         {reason: "A process that only verifies creates no key.", want: "not found"},
		"Token":        {reason: "A controller fills a Secret of this type.", secret: keySecret(good, xptest.Field("kubernetes.io/service-account-token", "type")), want: "and not Opaque"},
		"Unlabelled":   {reason: "A backup would have the key.", secret: keySecret(good, xptest.Without("metadata", "labels")), want: "it lacks the labels"},
		"OtherManager": {reason: "Another program has created the Secret.", secret: keySecret(good, xptest.Labelled(labelManagedBy, "helm")), want: "it lacks the labels"},
		"Mutable":      {reason: "A user could change the key.", secret: keySecret(good, xptest.Without("immutable")), want: "it is not immutable"},
		"TooShort":     {reason: "An attacker could guess a short key.", secret: keySecret("short"), want: "cannot use a key of 5 bytes"},
		"NoKey":        {reason: "Another writer has created an empty Secret.", secret: keySecret(""), want: "cannot use a key of 0 bytes"},
		"NoBase64":     {reason: "An API server returns Base64 only.", secret: keySecret("", xptest.Field("?", "data", markKeyField)), want: "cannot read the key"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := apiserver.NewServer()
			if tc.secret != nil {
				s = apiserver.NewServer(tc.secret)
			}
			_, err := clusterOf(s).ReadMarkKey(t.Context(), "velero")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
			if known := reason.CodeOf(err) == reason.MarkKeyForeign && strings.Contains(err.Error(), "velero/"+MarkKeySecret); known != (tc.secret != nil) || apierrors.IsNotFound(err) == known {
				t.Errorf("%s\nthe error must name the Secret, with its code, or be a NotFound error: %v", tc.reason, err)
			}
			if n := len(s.Requests("get")); n != len(s.Actions()) {
				t.Errorf("%s\nthe check must only read", tc.reason)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	x := xptest.XR("x", xptest.Field(map[string]any{"deep": "yes"}, "spec", "parameters"), xptest.Field("ready", "status", "phase"))
	mr := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.PublishesTo("infra", "s"))
	managedBy := func(fields string) xptest.Option {
		return xptest.JSON(`{"metadata":{"managedFields":[{"manager":"kubectl","fieldsV1":` + fields + `}]}}`)
	}
	all := managedBy(`{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{},"f:other":{}}},"f:spec":{"f:managementPolicies":{},"f:parameters":{}}}`)
	large := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		return xptest.With(u, all, xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"))
	}
	some := managedBy(`{"f:metadata":{"f:annotations":{"f:crossplane.io/paused":{}}},"f:spec":{"f:managementPolicies":{}}}`)
	held := xptest.With(mr, xptest.Annotated(hold.Annotation, "{}"), xptest.Field("id", "status", "atProvider", "id"))
	refreshed := xptest.JSON(`{"metadata":{"managedFields":[{"manager":"kubectl","fieldsV1":{"f:spec":{"f:parameters":{}}}},
		{"manager":"` + hold.FieldManager + `","fieldsV1":{"f:metadata":{"f:labels":{"f:velero.io/restore-name":{}}}}}]}}`)
	freed := xptest.With(mr, xptest.Annotated(hold.Annotation, `{"freed":true}`))
	type args struct {
		reason     string
		slim, want *unstructured.Unstructured
	}
	xptest.Each(t, map[string]args{
		"XR":        {reason: "Functions can write any status.", slim: x, want: xptest.With(x, some)},
		"Claim":     {reason: "The settings of a claim can be in any field.", slim: xptest.Claim("o", xptest.OfXR(x)), want: xptest.Claim("o", xptest.OfXR(x), some)},
		"Revision":  {reason: "The pipeline of a revision names what it needs.", slim: xptest.Revision("r", x), want: xptest.Revision("r", x)},
		"Held":      {reason: "The hold can restore any field.", slim: held, want: xptest.With(held, some)},
		"Refreshed": {reason: "The release of a refreshed object writes all managedFields.", slim: xptest.With(held, refreshed), want: xptest.With(held, refreshed)},
		"Released":  {reason: "A release writes all managedFields back.", slim: freed, want: xptest.With(freed, all)},
		"MR": {
			reason: "Only the provider needs the settings and state of the external resource.", want: xptest.With(mr, xptest.Field(map[string]any{}, "spec", "forProvider")),
			slim: xptest.With(mr, xptest.Field("large", "spec", "forProvider", "policy"), xptest.Field("id", "status", "atProvider", "id")),
		},
		"Secret": {
			reason: "The plugin must not keep secret data.", want: xptest.Secret("s", xptest.ControlledBy(mr)),
			slim: xptest.Secret("s", xptest.ControlledBy(mr), xptest.Field(map[string]any{"key": "dmFsdWU="}, "data")),
		},
		"UncontrolledSecret": {
			reason: "The managedFields of data and type name the publisher of a Secret without a controller.",
			want:   xptest.Secret("s", managedBy(`{"f:data":{".":{},"f:key":{}},"f:type":{}}`)),
			slim:   xptest.Secret("s", managedBy(`{"f:data":{".":{},"f:key":{}},"f:immutable":{},"f:type":{}}`)),
		},
		"Native": {
			reason: "The plugin does not need the spec of Kubernetes' own kinds.", slim: xptest.Object("apps/v1", "Deployment", "team-a", "d", xptest.Field(int64(3), "spec", "replicas")),
			want: xptest.Object("apps/v1", "Deployment", "team-a", "d", xptest.Field(map[string]any{}, "spec")),
		},
	}, func(t *testing.T, tc args) {
		whole := large(tc.slim)
		if fields, ok, _ := unstructured.NestedSlice(tc.slim.Object, "metadata", "managedFields"); ok {
			xptest.Field(fields, "metadata", "managedFields")(whole)
		}
		got := Trim(whole)
		// Removing the only annotation leaves an empty map.
		if len(got.GetAnnotations()) == 0 {
			got.SetAnnotations(nil)
		}
		xptest.Same(t, tc.want, got, tc.reason)
	})
}

// Trimmed objects have the same plans.
func TestTrimChangesNoPlan(t *testing.T) {
	objects, _, _, _ := apiserver.RestoredTree()
	composed := apiserver.Restored(xptest.Object("v1", "ConfigMap", "team-a", "c", xptest.ControlledBy(xptest.XR("n"))))
	native := apiserver.Restored(xptest.XR("n", xptest.Refs(composed)))
	nameless := apiserver.Restored(xptest.MR("unnamed", xptest.PublishesTo("infra", "s"), xptest.Without("metadata", "annotations")))
	objects = append(objects, native, composed, nameless, apiserver.Restored(xptest.Secret("s", xptest.In("infra"))))
	for name, change := range map[string]xptest.Option{
		"AsRestored": func(*unstructured.Unstructured) {},
		"SeenPaused": xptest.SeenPaused(),
		"Reconciled": xptest.Reconciled(),
		"Failing":    xptest.Synced("False", "ReconcileError", "no"),
		"Deleting":   xptest.Deleting(),
	} {
		t.Run(name, func(t *testing.T) {
			whole, slimmed := adoption.NewSnapshot(hold.Unverified), adoption.NewSnapshot(hold.Unverified)
			for _, u := range objects {
				u = xptest.With(u, change)
				whole.AddRestored(u)
				slimmed.AddRestored(Trim(u))
			}
			xptest.Same(t, whole.Subjects(), slimmed.Subjects(), "the subjects must be the same")
			xptest.Same(t, whole.Needs(whole.Subjects()), slimmed.Needs(whole.Subjects()), "the needs must be the same")
			for _, u := range objects {
				r := xp.RefTo(u)
				a, b := adoption.Next(whole, r), adoption.Next(slimmed, r)
				byName := cmp.Comparer(func(a, b *unstructured.Unstructured) bool {
					return a == b || a != nil && b != nil && xp.RefTo(a) == xp.RefTo(b)
				})
				xptest.Same(t, a, b, r.String(), byName)
			}
		})
	}
}

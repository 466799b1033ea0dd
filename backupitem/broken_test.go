package backupitem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A halfBroken cluster fails some requests, and counts these.
type halfBroken struct {
	*cluster

	// Objects of kinds can't be read, groups fail discovery, and names are refused.
	kinds, groups, names string
	tries                int
}

func (h *halfBroken) Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	switch {
	case r.Kind == h.kinds:
		h.tries++

		return nil, errAPI
	case h.names != "" && r.Name == h.names:
		return nil, apierrors.NewBadRequest("no such name")
	default:
		return h.cluster.Get(ctx, r)
	}
}

func (h *halfBroken) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if gvk.Kind == h.kinds {
		h.tries++

		return errAPI
	}

	if strings.Contains(namespace, "/") {
		return fmt.Errorf("invalid namespace %q", namespace)
	}

	return h.cluster.Each(ctx, gvk, namespace, options, do)
}

func (h *halfBroken) Served(gk schema.GroupKind) (schema.GroupVersionKind, bool, error) {
	if h.groups != "" && gk.Group == h.groups {
		h.tries++

		return schema.GroupVersionKind{}, false, errAPI
	}

	return h.cluster.Served(gk)
}

func (h *halfBroken) Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	if h.groups != "" && gvk.Group == h.groups {
		h.tries++

		return schema.GroupVersionResource{}, false, errAPI
	}

	return h.cluster.Resource(gvk)
}

// A failed request takes 16 s, and a tree has each kind several times. A provider whose webhook is
// down would delay a backup by hours.
func TestBrokenKindsAreReadOnce(t *testing.T) {
	const trees = 20
	objects, _ := platform()
	var items []*unstructured.Unstructured
	for n := range trees {
		claim := xptest.Claim(fmt.Sprint("o", n), xptest.In(fmt.Sprint("team-", n)))
		xr := xptest.XR(fmt.Sprint("x", n))
		mr := xptest.MR(fmt.Sprint("b", n), xptest.ControlledBy(xr), configured(map[string]any{"name": "default"}), xptest.PublishesTo("infra", fmt.Sprint("s", n)))
		claim = xptest.With(claim, xptest.OfXR(xr))
		xr = xptest.With(xr, xptest.ClaimedBy(claim), xptest.Refs(mr), xptest.PublishesTo("infra", fmt.Sprint("x", n)))
		items = append(items, claim, xr, mr)
	}
	cases := map[string]struct {
		reason string
		broken halfBroken
		most   int
	}{
		"Composed":       {reason: "Reads of composed resources fail.", broken: halfBroken{kinds: xptest.ManagedKind}, most: 1},
		"XRs":            {reason: "Reads of XRs fail.", broken: halfBroken{kinds: xptest.LegacyKind}, most: 1},
		"Secrets":        {reason: "Reads of connection secrets fail.", broken: halfBroken{kinds: "Secret"}, most: 1},
		"Compositions":   {reason: "Reads of Compositions fail.", broken: halfBroken{kinds: "Composition"}, most: 1},
		"ProviderConfig": {reason: "Reads of ProviderConfigs fail.", broken: halfBroken{kinds: "ProviderConfig"}, most: 1},
		"Group":          {reason: "Discovery fails for a provider's group.", broken: halfBroken{groups: "cloud.example.org"}, most: 2},
		"Crossplane":     {reason: "Discovery fails for Crossplane's own group.", broken: halfBroken{groups: xp.GroupAPIExtensions}, most: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := tc.broken
			c.cluster = clusterOf(slices.Concat(objects, items, []*unstructured.Unstructured{xptest.Object("cloud.example.org/v1beta1", "ProviderConfig", "", "default")})...)
			s := newSession(t, &c)
			for _, item := range items {
				s.related(item)
				s.take(item, &velerov1.Backup{})
			}
			if c.tries > tc.most {
				t.Errorf("%s\nasked %d times", tc.reason, c.tries)
			}
			named := 0
			for _, e := range s.log.AllEntries() {
				if e.Level == logrus.ErrorLevel && strings.Contains(e.Message, errAPI.Error()) && e.Data["reason"] == string(reason.RelatedNotRead) {
					named++
				}
			}
			if lines := len(s.log.AllEntries()); named < trees || lines > len(items)*2+1 {
				t.Errorf("%s\n%d of %d trees are named, with %d lines", tc.reason, named, trees, lines)
			}
		})
	}
}

// A user who writes a reference chooses the name, which must not make the kind look broken.
func TestRefusedNamesDoNotBreakTheKind(t *testing.T) {
	mine := xptest.MR("b", xptest.ControlledBy(xptest.XR("x")), xptest.Without("metadata", "labels"))
	runsOn, _ := platform()
	c := &halfBroken{cluster: clusterOf(append(runsOn, mine)...), names: "refused"}
	got := backUp(t, c, xptest.XR("x", xptest.Refs(xptest.MR("refused"), mine)), &velerov1.Backup{})
	if !slices.Contains(got.Items, bucket("b")) || len(got.Left) != 1 {
		t.Errorf("the plugin must name the broken one and find those after it: got %+v", got)
	}
}

// A client sends no request for a namespace with a slash. A tenant's MR that publishes there must
// not keep the connection secrets of all others out of the backup.
func TestInvalidNamespacesDoNotBreakTheKind(t *testing.T) {
	mine, hostile := xptest.MR("b", xptest.PublishesTo("infra", "s")), xptest.MR("h", xptest.PublishesTo("a/b", "s"))
	c := &halfBroken{cluster: clusterOf(xptest.Secret("s", xptest.In("infra"), xptest.ControlledBy(mine)))}
	s := newSession(t, c)
	for _, u := range []*unstructured.Unstructured{hostile, mine} {
		if got, want := s.take(u, &velerov1.Backup{}), u == mine; slices.Contains(got.Items, id("", "secrets", "infra", "s")) != want {
			t.Errorf("%s: want its Secret: %v; got %v", xp.String(u), want, got.Items)
		}
	}
}

// A writeOnly cluster has MRs of a kind that can be created but not read, as Kubernetes' reviews.
type writeOnly struct{ *cluster }

func (w writeOnly) Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	if r.Kind == xptest.ManagedKind {
		return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "buckets"}, "get")
	}

	return w.cluster.Get(ctx, r)
}

func (w writeOnly) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if gvk.Kind == xptest.ManagedKind {
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "buckets"}, "list")
	}

	return w.cluster.Each(ctx, gvk, namespace, options, do)
}

// A user who writes a reference also chooses the kind, which must not make a server look broken.
func TestKindsThatHaveNoObjects(t *testing.T) {
	runsOn, _ := platform()
	got := backUp(t, writeOnly{clusterOf(runsOn...)}, xptest.XR("x", xptest.Refs(xptest.MR("a"), xptest.MR("b"))), &velerov1.Backup{})
	if diff := cmp.Diff([]xp.Ref{xp.RefTo(xptest.MR("a")), xp.RefTo(xptest.MR("b"))}, got.Dangling); diff != "" {
		t.Errorf("a restore must not wait for objects that cannot exist: -want, +got:\n%s", diff)
	}
	if slices.ContainsFunc(got.Left, func(left string) bool { return !isOf(reason.Dangling)(left) }) {
		t.Errorf("want no other warning; got %v", got.Left)
	}
}

// An XR with thousands of objects of an unreadable kind gives one line in the log.
func TestBrokenKindsAreNamedOnce(t *testing.T) {
	var refs []*unstructured.Unstructured
	for n := range 1000 {
		refs = append(refs, xptest.MR(fmt.Sprint("b", n)))
	}
	objects, _ := platform()
	c := &halfBroken{cluster: clusterOf(objects...), kinds: xptest.ManagedKind}
	s := newSession(t, c)
	s.take(xptest.XR("x", xptest.Refs(refs...)), &velerov1.Backup{})
	if said := s.log.LastEntry().Message; len(s.codes()) != 1 || !strings.Contains(said, "Bucket b0 and 999 more of its kind can't be read: "+errAPI.Error()) {
		t.Errorf("%d lines; got %s", len(s.codes()), said)
	}
}

// A tenant's reference to a group of an extension API server that is down must not make each backup
// PartiallyFailed, since Velero passes over the last Completed one then only with a flag.
func TestUnreadableKindIsLoss(t *testing.T) {
	cases := map[string]struct {
		reason, version string
		want            logrus.Level
	}{
		"Managed":   {reason: "The backup can lack the only copy of an MR.", version: xptest.ManagedVersion, want: logrus.ErrorLevel},
		"Extension": {reason: "It stores nothing.", version: "metrics.k8s.io/v1beta1", want: logrus.WarnLevel},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, _ := platform()
			group, _, _ := strings.Cut(tc.version, "/")
			c := &halfBroken{cluster: clusterOf(objects...), groups: group}
			s := newSession(t, c)
			s.take(xptest.XR("x", xptest.Refs(xptest.Object(tc.version, "Broken", "", "o"))), &velerov1.Backup{})
			if last := s.log.LastEntry(); last == nil || last.Level != tc.want || last.Data["reason"] != string(reason.RelatedNotRead) {
				t.Errorf("%s\nthe last line is %v", tc.reason, last)
			}
		})
	}
}

// A twoVersions cluster prefers another version of MRs than XRs name, and can't convert to it.
type twoVersions struct{ *cluster }

var errConversion = errors.New("conversion webhook for cloud.example.org/v1, Kind=Bucket failed: service \"provider\" not found")

func (v twoVersions) Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	if r.Kind == xptest.ManagedKind && r.GroupVersionKind().Version == "v1" {
		return nil, errConversion
	}

	return v.cluster.Get(ctx, r)
}

func (v twoVersions) Each(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	if gvk.Kind == xptest.ManagedKind && gvk.Version == "v1" {
		return errConversion
	}

	return v.cluster.Each(ctx, gvk, namespace, options, do)
}

// Velero reads additional items in the version that the group prefers, and leaves the XR out if
// that fails.
func TestUnreadableItemsAreNotRequested(t *testing.T) {
	runsOn, _ := platform()
	xr := xptest.XR("x")
	mr := xptest.MR("b", xptest.ControlledBy(xr))
	mr.SetAPIVersion("cloud.example.org/v1beta1")
	xr = xptest.With(xr, xptest.Refs(mr))
	got := backUp(t, twoVersions{clusterOf(append(runsOn, mr)...)}, xr, &velerov1.Backup{})
	if slices.Contains(got.Items, bucket("b")) || !slices.Contains(got.Left, unread("Bucket b")) {
		t.Errorf("got %+v", got)
	}
}

// A listedOnly cluster lists MRs from its cache, and fails to convert a single one.
type listedOnly struct {
	*cluster

	tries int
}

func (l *listedOnly) Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	if r.Kind == xptest.ManagedKind {
		l.tries++

		return nil, errConversion
	}

	return l.cluster.Get(ctx, r)
}

func TestListedFromTheCacheIsReadOnce(t *testing.T) {
	converted := xp.Versions{Stored: "v0", Served: []string{"v0", "v1"}, Webhook: "Service a/b"}
	cases := map[string]struct {
		reason   string
		versions xp.Versions
		tries    int
		asked    bool
	}{
		"Converted": {reason: "Velero would leave out the XR with the unreadable resource.", versions: converted, tries: 1},
		"Stored":    {reason: "All objects are stored in this version, so the webhook is not needed.", versions: xp.Versions{Stored: "v1", Webhook: "Service a/b"}, asked: true},
		"None":      {reason: "The kind has no conversion webhook.", asked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			runsOn, _ := platform()
			xr := xptest.XR("x")
			a, b := xptest.MR("a", xptest.ControlledBy(xr)), xptest.MR("b", xptest.ControlledBy(xr))
			xr = xptest.With(xr, xptest.Refs(a, b))
			c := &listedOnly{cluster: clusterOf(append(runsOn, a, b)...)}
			c.versions = tc.versions
			got := backUp(t, c, xr, &velerov1.Backup{})
			for _, name := range []string{"a", "b"} {
				if slices.Contains(got.Items, bucket(name)) != tc.asked {
					t.Errorf("%s: got %v", tc.reason, got.Items)
				}
			}
			if c.tries != tc.tries || len(got.Left) > 0 == tc.asked {
				t.Errorf("%s: tried %d times, logged %v", tc.reason, c.tries, got.Left)
			}
		})
	}
}

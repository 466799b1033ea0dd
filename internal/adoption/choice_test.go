package adoption

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// numbered returns a revision of a Composition that is in the cluster.
func numbered(name string, number int64, of map[string]string) *unstructured.Unstructured {
	x := xptest.XR("x")
	options := []xptest.Option{xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)), xptest.Field(number, "spec", "revision")}
	for key, value := range of {
		options = append(options, xptest.Labelled(key, value))
	}

	return xptest.Revision(name, x, options...)
}

// selecting makes an XR or claim select its revision by a channel.
func selecting(channel string) xptest.Option {
	return func(u *unstructured.Unstructured) {
		path := xp.Instance{Unstructured: u}.UpdatePolicyPath()
		xptest.Field(map[string]any{"channel": channel}, append(path[:len(path)-1], "compositionRevisionSelector", "matchLabels")...)(u)
	}
}

func TestChoice(t *testing.T) {
	x := xptest.XR("x")
	stable, dev := map[string]string{"channel": "stable"}, map[string]string{"channel": "dev"}
	first, second, third := numbered("first", 1, stable), numbered("second", 2, stable), numbered("third", 3, dev)
	restored := numbered("restored", -7, dev)
	loose := xptest.With(numbered("loose", 9, stable), xptest.Without("metadata", "ownerReferences"))
	other := xptest.With(numbered("other", 9, stable), xptest.Labelled(xp.LabelCompositionName, "other"))
	all := []*unstructured.Unstructured{first, second, third, restored, loose, other}
	modern := xptest.XRV2("m", selecting("stable"))
	claim := xptest.Claim("o", xptest.OfXR(x), selecting("stable"))
	xrd := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.XRD("xorders.example.org", append([]xptest.Option{xptest.JSON(`{"spec":{"group":"example.org","names":{"kind":"XOrder"}}}`)}, o...)...)
	}
	cases := map[string]struct {
		reason   string
		xr       *unstructured.Unstructured
		policy   *string
		snapshot []*unstructured.Unstructured
		want     string
	}{
		"Newest":    {reason: "Without a selector the highest number counts.", xr: x, policy: new(xp.UpdateAutomatic), snapshot: all, want: "third"},
		"Selects":   {reason: "The highest number of those with the labels counts.", xr: xptest.XR("x", selecting("stable")), policy: new(xp.UpdateAutomatic), snapshot: all, want: "second"},
		"SelectsV2": {reason: "Crossplane v2 keeps the selector elsewhere.", xr: modern, policy: new(xp.UpdateAutomatic), snapshot: all, want: "second"},
		"None":      {reason: "No revision has the labels.", xr: xptest.XR("x", selecting("beta")), policy: new(xp.UpdateAutomatic), snapshot: all, want: ""},
		"Negative":  {reason: "Crossplane follows no negative number.", xr: xptest.XR("x", selecting("dev")), policy: new(xp.UpdateAutomatic), snapshot: []*unstructured.Unstructured{restored}},
		"Manual":    {reason: "The XR names its revision.", xr: xptest.XR("x", selecting("stable")), policy: new(xp.UpdateManual), snapshot: all, want: "its own"},
		"NoPolicy":  {reason: "The XRD's default is Automatic unless it is changed.", xr: xptest.XR("x", selecting("stable")), snapshot: all, want: "second"},
		"NoDefault": {
			reason: "The selector counts only with an explicit Automatic.", xr: xptest.XR("x", selecting("stable")), snapshot: append(all, xrd()), want: "third",
		},
		"DefaultAutomatic": {
			reason: "The API server writes the XRD's default.", xr: xptest.XR("x", selecting("stable")),
			snapshot: append(all, xrd(xptest.Field("Automatic", "spec", "defaultCompositionUpdatePolicy"))), want: "second",
		},
		"DefaultManual": {
			reason: "The API server writes the XRD's default.", xr: x, snapshot: append(all, xrd(xptest.Field("Manual", "spec", "defaultCompositionUpdatePolicy"))), want: "its own",
		},
		"Enforced": {
			reason: "Crossplane gives the XR the Composition that the XRD enforces.", xr: x, policy: new(xp.UpdateAutomatic),
			snapshot: append(all, xrd(xptest.Field("other", "spec", "enforcedCompositionRef", "name"))), want: "other",
		},
		"Claim": {
			reason: "Crossplane copies the claim's selector to its XR.", xr: xptest.XR("x", xptest.ClaimedBy(claim)), policy: new(xp.UpdateAutomatic),
			snapshot: append(all, claim), want: "second",
		},
		"ClaimOfAnother": {
			reason: "A claim that the XR does not name changes nothing.", xr: x, policy: new(xp.UpdateAutomatic), snapshot: append(all, claim), want: "third",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := snapshot(tc.snapshot...)
			c, ok := s.choiceOf(xp.CompositeFrom(tc.xr), tc.policy)
			got := "its own"
			if ok {
				got = ""
				if u := s.chosen(c); u != nil {
					got = u.GetName()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChoiceIsCrossplanes compares choices with those of crossplane
// internal/controller/apiextensions/composite/api.go (Fetch) and apis/apiextensions/v1
// (LatestRevision) for any revisions, policies and selectors.
func TestChoiceIsCrossplanes(t *testing.T) {
	channels := []string{"stable", "dev", "beta"}
	policies := []*string{nil, new(xp.UpdateAutomatic), new(xp.UpdateManual)}
	composition := xptest.Composition(xptest.CompositionName, xptest.XR("x"))
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 48)) //nolint:gosec // The same numbers each time.
		var revisions []*unstructured.Unstructured
		for _, number := range r.Perm(12)[:r.IntN(6)] {
			u := numbered(fmt.Sprintf("r%d", number), int64(number-4), map[string]string{"channel": channels[r.IntN(2)]})
			if r.IntN(4) == 0 {
				u = xptest.With(u, xptest.Without("metadata", "ownerReferences"))
			}
			revisions = append(revisions, u)
		}
		xr, policy := xptest.XR("x"), policies[r.IntN(3)]
		if r.IntN(2) == 0 {
			xr = xptest.With(xr, selecting(channels[r.IntN(3)]))
		}
		if policy == nil {
			policy = new(xp.UpdateAutomatic) // The API server has written the XRD's default.
		}
		var want *unstructured.Unstructured
		latest := int64(0)
		selector := labels.Everything()
		if s := xp.CompositeFrom(xr).RevisionSelector(); *policy == xp.UpdateAutomatic && s != nil {
			selector = labels.SelectorFromSet(s)
		}
		for _, u := range revisions {
			if n, _, _ := unstructured.NestedInt64(u.Object, "spec", "revision"); metav1.IsControlledBy(u, composition) &&
				selector.Matches(labels.Set(u.GetLabels())) && latest < n {
				want, latest = u, n
			}
		}
		s := snapshot(revisions...)
		c, ok := s.choiceOf(xp.CompositeFrom(xr), policy)
		if manual := *policy == xp.UpdateManual; manual == ok {
			t.Fatalf("seed %d: the policy is %s, but ok is %v", seed, *policy, ok)
		}
		if got := s.chosen(c); ok && got != want {
			t.Fatalf("seed %d: Crossplane chooses %v, not %v", seed, want, got)
		}
	}
}

func TestNextKeepsWhatCanFollowNothing(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	xr := func(o ...xptest.Option) *unstructured.Unstructured {
		u := held(xptest.XR("x", append([]xptest.Option{xptest.Refs(bucket)}, o...)...), unpaused(), xptest.Reconciled())

		return u
	}
	own := numbered(xptest.RevisionName, -7, map[string]string{"channel": "stable"})
	stays := func(what, next string) outcome {
		return outcome{Adopted: 1, Total: 1, Waiting: []string{
			"XOrder x: it stays on CompositionRevision orders-1a2b3c, because it is to follow " + what + ", and the cluster has none. " + next + " [NoRevisionToFollow]",
		}}
	}
	released := outcome{Step: "adopted; give its own settings back", Target: "XOrder x", Adopted: 1, Total: 1}
	const channel = "a revision of Composition orders with the labels channel=stable"
	claim := xptest.Claim("o", xptest.OfXR(x))
	runPlans(t, map[string]planCase{
		"NoneWithTheLabels": {
			reason:   "Without a revision Crossplane does not reconcile the XR any more.",
			snapshot: snapshot(xr(selecting("stable")), bucket, own, numbered("live", 2, map[string]string{"channel": "dev"})), ref: xp.RefTo(x),
			want: stays(channel, "Apply that Composition with these labels, or change the compositionRevisionSelector"),
		},
		"OfAClaim": {
			reason:   "Crossplane copies the claim's selector to the XR.",
			snapshot: snapshot(xr(selecting("stable"), xptest.ClaimedBy(claim)), held(claim), bucket, own), ref: xp.RefTo(x),
			want: stays(channel, "Apply that Composition with these labels, or change the compositionRevisionSelector of OrderClaim team-a/o"),
		},
		"OneWithTheLabels": {
			reason:   "Crossplane follows it, as without a restore.",
			snapshot: snapshot(xr(selecting("stable")), bucket, own, numbered("live", 1, map[string]string{"channel": "stable"})), ref: xp.RefTo(x), want: released,
		},
		"NoComposition": {
			reason:   "Crossplane needs the Composition to choose.",
			snapshot: snapshot(xr(), bucket, xptest.With(own, xptest.Without("metadata", "ownerReferences"))), ref: xp.RefTo(x),
			want: stays("a revision of Composition orders", "Apply that Composition"),
		},
		"AnyRevision": {reason: "Crossplane makes a revision of each Composition.", snapshot: snapshot(xr(), bucket, own), ref: xp.RefTo(x), want: released},
		"Manual": {
			reason: "The XR names its revision.", snapshot: snapshot(xr(selecting("stable"), xptest.Policy(xp.UpdateManual)), bucket, own), ref: xp.RefTo(x), want: released,
		},
	})
}

// While an XR is pinned Crossplane ignores its selector, and would write the newest of all.
func TestFollowWritesTheSelectedRevision(t *testing.T) {
	x := xptest.XR("x")
	named := func(resources ...string) xptest.Option {
		var list []any
		for _, r := range resources {
			list = append(list, map[string]any{"name": r})
		}

		return xptest.Field([]any{map[string]any{"input": map[string]any{"resources": list}}}, "spec", "pipeline")
	}
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	xr := held(xptest.XR("x", xptest.Refs(bucket), selecting("stable")), xptest.SeenPaused())
	stable := xptest.With(numbered("stable", 1, map[string]string{"channel": "stable"}), named("bucket"))
	dev := xptest.With(numbered("dev", 2, map[string]string{"channel": "dev"}), named("bucket"))
	p := Next(snapshot(xr, bucket, stable, dev), xp.RefTo(x))
	if got, _, _ := unstructured.NestedString(p.Patch, "spec", "compositionRevisionRef", "name"); got != "stable" {
		t.Fatalf("the XR must follow its channel: %v", p.Patch)
	}
	after := xptest.Merge(xr, p.Patch)
	if p = Next(snapshot(after, bucket, stable, dev), xp.RefTo(x)); p.Step != stepUnpause || !p.Warning.IsZero() || len(p.Remarks) > 0 {
		t.Errorf("the XR must be unpaused next, without a warning: %+v", p)
	}
	lacking := xptest.With(stable, named("network"))
	p = Next(snapshot(xr, bucket, lacking, dev), xp.RefTo(x))
	if p.Patch != nil || len(p.Waiting) != 1 || p.Waiting[0].Code != reason.CompositionRevisionMissing {
		t.Errorf("Crossplane would delete what the revision of the channel does not name: %+v", p)
	}
	if p = Next(snapshot(xr, bucket, dev), xp.RefTo(x)); p.Patch != nil || len(p.Waiting) != 1 || p.Waiting[0].Code != reason.CompositionRevisionMissing {
		t.Errorf("the XR must wait for a revision of its channel: %+v", p)
	}
}

// Crossplane v2 refuses a revision in mode Resources. Its XRs follow a converted revision, if that
// would replace none of their composed resources.
func TestNextFollowsAnotherRevision(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	nameless := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled())
	following := xptest.XR("x", xptest.Refs(bucket))
	xr := held(following, xptest.SeenPaused())
	manual := held(xptest.With(following, xptest.Field("Manual", "spec", "compositionUpdatePolicy")), xptest.SeenPaused())
	composition := xptest.Composition(xptest.CompositionName, x)
	converted := xptest.Revision("orders-2", x, xptest.ControlledBy(composition), xptest.Field(int64(2), "spec", "revision"),
		xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"network"},{"name":"bucket"}]}}]}}`))
	other := xptest.With(converted, xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"network"},{}, 7]}}, 7, {"input":{"resources":7}}]}}`))
	const lost = "CompositionRevision orders-1a2b3c: it is not in the cluster. " +
		"Restore it, or set another compositionRevisionRef on XOrder x. " +
		`If it was in mode Resources, which Crossplane v2 does not have, apply what "crossplane beta convert pipeline-composition" of v1.20 makes of its ` +
		"Composition orders"
	wait := func(why string) outcome {
		return outcome{Adopted: 1, Total: 1, Waiting: []string{lost + why + " [CompositionRevisionMissing]"}}
	}
	runPlans(t, map[string]planCase{
		"Converted": {
			reason: "The converted revision names every composed resource.", snapshot: snapshot(xr, bucket, converted), ref: xp.RefTo(x),
			want: outcome{Step: "its revision is gone; have it follow the one that it would get, which names all that it composes", Target: "XOrder x", Adopted: 1, Total: 1},
		},
		"Invalid": {
			reason: "The XR must not follow a revision that Crossplane can't run.", ref: xp.RefTo(x), snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.JSON(
				`{"status":{"conditions":[{"type":"ValidPipeline","status":"False","reason":"MissingCapabilities","message":"f can't"}]}}`))),
			want: outcome{Adopted: 1, Total: 1, Waiting: []string{
				"CompositionRevision orders-2: its pipeline is not valid: f can't. Install Functions with the capabilities that it needs [PipelineNotValid]",
			}},
		},
		"OtherKind": {
			reason: "Crossplane would replace the resource by one of the other kind.", ref: xp.RefTo(x), snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.JSON(
				`{"spec":{"pipeline":[{"input":{"resources":[{"name":"bucket","base":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Store"}}]}}]}}`))),
			want: wait(", and it continues. CompositionRevision orders-2 does not name Bucket b, which it composes"),
		},
		"None": {reason: "The message explains how to convert the Composition.", snapshot: snapshot(xr, bucket), ref: xp.RefTo(x), want: wait(", and it continues")},
		"Other": {
			reason: "Crossplane would delete a resource that the revision does not name.", snapshot: snapshot(xr, bucket, other), ref: xp.RefTo(x),
			want: wait(", and it continues. CompositionRevision orders-2 does not name Bucket b, which it composes"),
		},
		"Nameless": {
			reason:   "Conversion names unnamed templates, and Crossplane would then create those resources again.",
			snapshot: snapshot(xr, nameless, converted), ref: xp.RefTo(x),
			want: wait(", and it continues. CompositionRevision orders-2 does not name Bucket b, which it composes"),
		},
		"Stray": {
			reason:   "No XR follows a revision without its Composition.",
			snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.Without("metadata", "ownerReferences"))),
			ref:      xp.RefTo(x),
			want:     wait(", and it continues"),
		},
		"Manual": {
			reason: "With policy Manual the user selects the revision.", snapshot: snapshot(manual, bucket, converted), ref: xp.RefTo(x),
			want: wait(", and set its revision there"),
		},
	})
}

func TestFollowLetsCrossplaneWriteTheRevision(t *testing.T) {
	x := xptest.XR("x")
	bucket := xptest.MR("b", xptest.ControlledBy(x), xptest.Reconciled(), xptest.Annotated(xp.AnnotationResourceName, "bucket"))
	xr := held(xptest.XR("x", xptest.Refs(bucket)), xptest.SeenPaused())
	converted := xptest.Revision("orders-2", x, xptest.ControlledBy(xptest.Composition(xptest.CompositionName, x)),
		xptest.JSON(`{"spec":{"revision":1,"pipeline":[{"input":{"resources":[{"name":"bucket"}]}}]}}`))
	p := Next(snapshot(xr, bucket, converted), xp.RefTo(x))
	got, there, err := unstructured.NestedFieldNoCopy(p.Patch, "spec", "compositionRevisionRef")
	if got != nil || !there || err != nil {
		t.Fatalf("the reference to the deleted revision must be removed: %v", p.Patch)
	}
	after := xptest.Merge(xr, p.Patch)
	if p = Next(snapshot(after, bucket, converted), xp.RefTo(x)); p.Step != stepUnpause || !p.Warning.IsZero() || len(p.Remarks) > 0 {
		t.Errorf("the XR must be unpaused next, without a warning: %+v", p)
	}
}

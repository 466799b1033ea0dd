package adoption

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

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
		"SelectsV2": {reason: "Crossplane v2 keeps the selector elsewhere.", xr: modern, policy: new(xp.UpdateAutomatic), snapshot: all, want: "second"},
		"NoPolicy":  {reason: "The XRD's default is Automatic unless it is changed.", xr: xptest.XR("x", selecting("stable")), snapshot: all, want: "second"},
		"NoDefault": {reason: "The selector counts only with an explicit Automatic.", xr: xptest.XR("x", selecting("stable")), snapshot: append(all, xrd()), want: "third"},
		"DefaultManual": {
			reason: "The API server writes the XRD's default.", xr: x, snapshot: append(all, xrd(xptest.Field("Manual", "spec", "defaultCompositionUpdatePolicy"))), want: "its own",
		},
		"Enforced": {
			reason: "Crossplane gives the XR the Composition that the XRD enforces.", xr: x, policy: new(xp.UpdateAutomatic),
			snapshot: append(all, xrd(xptest.Field("other", "spec", "enforcedCompositionRef", "name"))), want: "other",
		},
		"Claim": {
			reason: "Crossplane copies the claim's selector to its XR.", xr: xptest.XR("x", xptest.ClaimedBy(claim)), policy: new(xp.UpdateAutomatic), snapshot: append(all, claim),
			want: "second",
		},
		"ClaimOfAnother": {reason: "A claim that the XR does not name changes nothing.", xr: x, policy: new(xp.UpdateAutomatic), snapshot: append(all, claim), want: "third"},
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
			xptest.Same(t, tc.want, got, tc.reason)
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
		u := held(xptest.XR("x", append([]xptest.Option{xptest.Refs(bucket)}, o...)...), xptest.Unpaused(), xptest.Reconciled())

		return u
	}
	own := numbered(xptest.RevisionName, -7, map[string]string{"channel": "stable"})
	claim := xptest.Claim("o", xptest.OfXR(x))
	runPlans(t, x, map[string]planCase{
		"NoneWithTheLabels": {
			reason: "Without a revision Crossplane does not reconcile the XR any more.", want: "1/1; waits: XOrder x NoRevisionToFollow",
			snapshot: snapshot(xr(selecting("stable")), bucket, own, numbered("live", 2, map[string]string{"channel": "dev"})),
		},
		"OfAClaim": {
			reason: "Crossplane copies the claim's selector to the XR.", want: "1/1; waits: XOrder x NoRevisionToFollow", says: "of OrderClaim team-a/o",
			snapshot: snapshot(xr(selecting("stable"), xptest.ClaimedBy(claim)), held(claim), bucket, own),
		},
		"OneWithTheLabels": {
			reason: "Crossplane follows it, as without a restore.", want: "1/1; release XOrder x",
			snapshot: snapshot(xr(selecting("stable")), bucket, own, numbered("live", 1, map[string]string{"channel": "stable"})),
		},
		"NoComposition": {
			reason: "Crossplane needs the Composition to choose.", want: "1/1; waits: XOrder x NoRevisionToFollow", says: "a revision of Composition orders, and",
			snapshot: snapshot(xr(), bucket, xptest.With(own, xptest.Without("metadata", "ownerReferences"))),
		},
		"AnyRevision": {reason: "Crossplane makes a revision of each Composition.", want: "1/1; release XOrder x", snapshot: snapshot(xr(), bucket, own)},
		"Manual":      {reason: "The XR names its revision.", want: "1/1; release XOrder x", snapshot: snapshot(xr(selecting("stable"), xptest.Policy(xp.UpdateManual)), bucket, own)},
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
	runPlans(t, x, map[string]planCase{
		"Converted": {
			reason: "The converted revision names every composed resource.",
			want:   "1/1; its revision is gone; have it follow the one that it would get, which names all that it composes XOrder x", snapshot: snapshot(xr, bucket, converted),
		},
		"Invalid": {
			reason: "The XR must not follow a revision that Crossplane can't run.", want: "1/1; waits: CompositionRevision orders-2 PipelineNotValid",
			snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.JSON(`{"status":{"conditions":[{"type":"ValidPipeline","status":"False","reason":"MissingCapabilities","message":"f can't"}]}}`))),
		},
		"OtherKind": {
			reason: "Crossplane would replace the resource by one of the other kind.", want: "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing",
			says:     "does not name Bucket b",
			snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.JSON(`{"spec":{"pipeline":[{"input":{"resources":[{"name":"bucket","base":{"apiVersion":"cloud.example.org/v1alpha1","kind":"Store"}}]}}]}}`))),
		},
		"None": {
			reason: "The message explains how to convert the Composition.", want: "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing", snapshot: snapshot(xr, bucket),
		},
		"Other": {
			reason: "Crossplane would delete a resource that the revision does not name.", want: "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing",
			says: "does not name Bucket b", snapshot: snapshot(xr, bucket, other),
		},
		"Nameless": {
			reason: "Conversion names unnamed templates, and Crossplane would then create those resources again.",
			want:   "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing", says: "does not name Bucket b", snapshot: snapshot(xr, nameless, converted),
		},
		"Stray": {
			reason: "No XR follows a revision without its Composition.", want: "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing", says: ", and it continues [",
			snapshot: snapshot(xr, bucket, xptest.With(converted, xptest.Without("metadata", "ownerReferences"))),
		},
		"Manual": {
			reason: "With policy Manual the user selects the revision.", want: "1/1; waits: CompositionRevision orders-1a2b3c CompositionRevisionMissing", says: "set its revision there",
			snapshot: snapshot(manual, bucket, converted),
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

// A warning that a held XR or claim follows another Composition than in the backup comes before the
// change takes effect.
func TestNextOfAChangedComposition(t *testing.T) {
	x := xptest.XR("x")
	claim := xptest.Claim("o", xptest.OfXR(x))
	follows := func(u *unstructured.Unstructured, composition, revision string) *unstructured.Unstructured {
		return xptest.With(held(u, xptest.SeenPaused()), xptest.Field(composition, "spec", "compositionRef", "name"), xptest.Field(revision, "spec", "compositionRevisionRef", "name"))
	}
	same := xp.Instance{Unstructured: x}
	none := xptest.With(held(x, xptest.SeenPaused()), xptest.Without("spec", "compositionRef"))
	adopted := held(xptest.XR("x", xptest.ClaimedBy(claim)), xptest.Unpaused(), xptest.Reconciled())
	for name, tc := range map[string]struct {
		reason   string
		snapshot *Snapshot
		want     string
	}{
		"Same": {reason: "The Composition did not change.", snapshot: snapshot(follows(x, same.Composition(), same.Revision()), xptest.Revision(same.Revision(), x))},
		"Composition": {
			reason: "The other Composition takes effect when the pin is removed.", snapshot: snapshot(follows(x, "other", same.Revision()), xptest.Revision(same.Revision(), x)),
			want: "its compositionRef from orders to other while it was held",
		},
		"Revision": {
			reason: "The other revision takes effect at once.", snapshot: snapshot(follows(x, same.Composition(), "other-1"), xptest.Revision("other-1", x)),
			want: "its compositionRevisionRef from " + same.Revision() + " to other-1 while",
		},
		"NoName": {
			reason: "The warning leaves out a value that can't be a name.", snapshot: snapshot(follows(x, "a\nb", same.Revision()), xptest.Revision(same.Revision(), x)),
			want: "its compositionRef from orders to a text that can't be its name while",
		},
		"Removed": {reason: "Crossplane then selects a Composition.", snapshot: snapshot(none, xptest.Revision(same.Revision(), x)), want: "its compositionRef from orders to none"},
		"Claim": {
			reason: "Crossplane copies the reference of the claim to the XR.", snapshot: snapshot(adopted, follows(claim, "other", same.Revision())),
			want: "OrderClaim team-a/o: another writer has changed its compositionRef",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Next(tc.snapshot, xp.RefTo(x))
			if plan.Patch == nil || !strings.Contains(plan.Warning.String(), tc.want) || plan.Warning.IsZero() != (tc.want == "") {
				t.Errorf("%s\nwant %q, got %+v", tc.reason, tc.want, plan)
			}
		})
	}
	waits := snapshot(held(xptest.XR("x", xptest.ClaimedBy(claim))), follows(claim, "other", same.Revision()), xptest.Revision(same.Revision(), x))
	if plan := Next(waits, xp.RefTo(x)); len(plan.Waiting) == 0 || len(plan.Remarks) != 1 || !strings.Contains(plan.Remarks[0].String(), "OrderClaim team-a/o: another writer") {
		t.Errorf("A waiting plan must carry the remark too; got %+v", plan)
	}
}

// A user who pins an object in Git during a hold wants it pinned.
func TestNextOfPinnedInGit(t *testing.T) {
	path := xp.Instance{Unstructured: xptest.XR("x")}.UpdatePolicyPath()
	automatic := xptest.Policy(xp.UpdateAutomatic)
	adopted := func(o ...xptest.Option) *unstructured.Unstructured {
		return held(xptest.XR("x", automatic, ofRestore()), append([]xptest.Option{xptest.Unpaused(), xptest.Reconciled()}, o...)...)
	}
	updated := func(o ...xptest.Option) *unstructured.Unstructured {
		const by, operation = "kubectl-client-side-apply", "Update"
		now := append([]xptest.Option{xptest.Unpaused(), xptest.Reconciled(), xptest.Managed(by, operation, laterAt, path)}, o...)

		return held(xptest.XR("x", automatic, ofRestore(), xptest.Managed(by, operation, saved, path)), now...)
	}
	claim := func(o ...xptest.Option) *unstructured.Unstructured {
		return xptest.Claim("o", append([]xptest.Option{xptest.OfXR(xptest.XR("x")), xptest.Reconciled()}, o...)...)
	}
	ofClaim := held(xptest.XR("x", automatic, xptest.ClaimedBy(claim())), xptest.Unpaused(), xptest.Reconciled())
	for name, tc := range map[string]struct {
		reason   string
		snapshot *Snapshot
		want     string
	}{
		"NoWriter": {reason: "Only the hold set the pin.", snapshot: snapshot(adopted()), want: xp.UpdateAutomatic},
		"Flux":     {reason: "Flux has written the pin since the hold.", snapshot: snapshot(adopted(xptest.Managed("kustomize-controller", "Apply", laterAt, path))), want: xp.UpdateManual},
		"Before":   {reason: "The manager in the backup had another value.", snapshot: snapshot(adopted(xptest.Managed("kubectl", "Update", saved, path))), want: xp.UpdateAutomatic},
		"Velero":   {reason: "Velero writes every field.", snapshot: snapshot(adopted(xptest.Managed("velero-server", "Update", laterAt, path))), want: xp.UpdateAutomatic},
		"Server": {
			reason: "The API server uses this name for unknown managers.", snapshot: snapshot(adopted(xptest.Managed("before-first-apply", "Update", laterAt, path))), want: xp.UpdateAutomatic,
		},
		"Forged": {
			reason: "A writer put a later time into the managedFields of the backup.", want: xp.UpdateAutomatic,
			snapshot: snapshot(xptest.With(held(xptest.XR("x", automatic, ofRestore(), xptest.Managed("argocd", "Update", laterAt, path))), xptest.Unpaused(), xptest.Reconciled(),
				xptest.Managed("argocd", "Update", laterAt, path))),
		},
		"Defaulted": {reason: "The creator also manages the default and has updated another field since.", want: xp.UpdateAutomatic, snapshot: snapshot(updated())},
		"AppliedClientSide": {
			reason: "The manifest that was applied since has the pin.", want: xp.UpdateManual,
			snapshot: snapshot(updated(xptest.Annotated(xp.AnnotationLastApplied, `{"spec":{"compositionUpdatePolicy":"Manual"}}`))),
		},
		"AppliedOther": {
			reason: "The manifest that was applied since has no pin.", want: xp.UpdateAutomatic,
			snapshot: snapshot(updated(xptest.Annotated(xp.AnnotationLastApplied, `{"spec":{"region":"here"}}`))),
		},
		"Claim": {reason: "Crossplane copies the policy of the claim to the XR.", snapshot: snapshot(ofClaim, claim(xptest.Policy(xp.UpdateManual))), want: xp.UpdateManual},
		"ClaimPaused": {
			reason: "Crossplane copies nothing from a paused claim.", want: xp.UpdateAutomatic,
			snapshot: snapshot(ofClaim, claim(xptest.Policy(xp.UpdateManual), xptest.Annotated(xp.AnnotationPaused, "true"))),
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := tc.snapshot.Get(xp.RefTo(xptest.XR("x")))
			plan := Next(tc.snapshot, xp.RefTo(u))
			if got, _ := (xp.Instance{Unstructured: xptest.Merge(u, plan.Patch)}).UpdatePolicy(); plan.Patch == nil || got != tc.want {
				t.Errorf("%s\nwant %q, got %q of %+v", tc.reason, tc.want, got, plan)
			}
		})
	}
}

package explorer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

type identified struct {
	instance instance
	object   object
}

// encode returns an object as the API server has it. No caller changes the result.
func (w *world) encode(i instance, o object) *unstructured.Unstructured {
	id := identified{i, o}
	u := w.encoded[id]
	if u == nil {
		u = w.build(i, &o)
		w.encoded[id] = u
	}

	return u
}

func (w *world) build(i instance, o *object) *unstructured.Unstructured {
	u := w.bare(i, o)
	u.SetUID(uid(i, o.life))
	u.SetResourceVersion("1")
	u.SetGeneration(2)
	if w.git {
		u.SetCreationTimestamp(metav1.NewTime(createdAt(o)))
	}
	if o.finalizer {
		u.SetFinalizers([]string{w.finalizer(i)})
	}
	if o.restored {
		xptest.Labelled(xp.LabelRestore, "monday")(u)
	}
	if o.deleting {
		xptest.Deleting()(u)
	}
	if o.paused {
		xptest.Annotated(xp.AnnotationPaused, "true")(u)
	}
	if o.mark != 0 {
		xptest.Annotated(hold.Annotation, w.marks[o.mark])(u)
	}
	if o.policy != unset {
		xptest.Policy(policies[o.policy])(u)
	}
	w.compose(u, i, o)
	w.setStatus(u, o)
	if w.judged {
		w.setManagers(u, i, o)
	}

	return u
}

const updateAutomatic = "Automatic"

var policies = []string{"", updateAutomatic, xp.UpdateManual}

// bare returns an object with its constant fields.
func (w *world) bare(i instance, o *object) *unstructured.Unstructured {
	name := w.nameOf(i)
	switch {
	case i == theClaim:
		return xptest.Claim("o", xptest.OfXR(w.bare(original(0), &object{})))
	case !w.isXR(i):
		build := xptest.NamespacedMR
		if w.rules == v120 {
			build = xptest.MR
		}
		u := build(name, xptest.Without("metadata", "annotations", xp.AnnotationExternalName))
		if o.external != 0 {
			xptest.Annotated(xp.AnnotationExternalName, strconv.Itoa(int(o.external)))(u)
		}
		if w.publishes.has(nodeOf(i)) {
			xptest.PublishesTo("infra", name)(u)
		}

		return u
	}
	u := xptest.XRV2(name)
	if w.rules == v120 {
		u = xptest.XR(name)
	}
	if nodeOf(i) == 1 {
		u.SetKind("Sub" + u.GetKind())
	}
	machinery := []string{"spec", "crossplane"}
	if w.rules == v120 {
		machinery = machinery[:1]
	}
	if w.selecting.has(nodeOf(i)) {
		xptest.Field(map[string]any{"matchLabels": map[string]any{"channel": "1"}}, append(machinery, "compositionRevisionSelector")...)(u)
	}
	if o.revision != 0 {
		xptest.Field(revisionName(nodeOf(i), o.revision), append(machinery, "compositionRevisionRef", "name")...)(u)
	} else {
		xptest.NeverComposed()(u)
	}
	if w.claimed && nodeOf(i) == 0 {
		xptest.ClaimedBy(xptest.Claim("o"))(u)
	}

	return u
}

// compose sets the refs, labels and owner references of an object.
func (w *world) compose(u *unstructured.Unstructured, i instance, o *object) {
	if w.isXR(i) && o.refs != 0 {
		var refs []*unstructured.Unstructured
		for r := range theClaim {
			if o.refs.has(r) {
				refs = append(refs, w.bare(r, &object{}))
			}
		}
		xptest.Refs(refs...)(u)
	}
	if i != theClaim && w.parent[nodeOf(i)] >= 0 {
		xptest.Labelled(xp.LabelComposite, w.nameOf(original(w.root(nodeOf(i)))))(u)
		xptest.Annotated(xp.AnnotationResourceName, w.nameOf(original(nodeOf(i))))(u)
	}
	if c := o.controller; c != 0 {
		by := w.bare(c.instance(), &object{})
		u.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: by.GetAPIVersion(), Kind: by.GetKind(), Name: by.GetName(), UID: uid(c.instance(), c.life()), Controller: ptr.To(true),
		}})
	}
}

// setStatus writes the status of an object.
func (w *world) setStatus(u *unstructured.Unstructured, o *object) {
	var list []any
	condition := func(conditionType, status, reason string) {
		c := map[string]any{"type": conditionType, "status": status, "reason": reason}
		if w.rules != v120 {
			c["observedGeneration"] = int64(1)
			if o.current {
				c["observedGeneration"] = int64(2)
			}
		}
		list = append(list, c)
	}
	switch o.synced {
	case syncedPaused:
		condition(xp.ConditionSynced, "False", xp.ReasonReconcilePaused)
	case syncedTrue:
		condition(xp.ConditionSynced, "True", "ReconcileSuccess")
	case syncedUnset:
	}
	if o.ready {
		condition(xp.ConditionReady, "True", "Available")
	}
	if list != nil {
		xptest.Field(list, "status", "conditions")(u)
	}
	if o.status {
		xptest.Field("10.0.0.1", "status", "address")(u)
	}
}

// createdAt returns when an object was created: before the backup, by a restore, or since.
func createdAt(o *object) time.Time {
	switch {
	case o.life == oldLife:
		return noon.Add(-2 * time.Hour)
	case o.restored:
		return noon.Add(-time.Hour)
	default:
		return noon.Add(-time.Minute)
	}
}

func (w *world) finalizer(i instance) string {
	switch {
	case i == theClaim:
		return xp.FinalizerClaim
	case w.isXR(i):
		return xp.FinalizerComposite
	default:
		return xp.FinalizerManaged
	}
}

func uid(i instance, life uint8) types.UID { return types.UID(fmt.Sprint(i, "#", life)) }

func revisionName(n node, revision uint8) string { return fmt.Sprint("composition-", n, "-", revision) }

// revision returns a revision of the Composition of an XR, each of which is in a channel of its own.
func (w *world) revision(n node, revision uint8) *unstructured.Unstructured {
	return xptest.Revision(revisionName(n, revision), w.backup[original(n)],
		xptest.Labelled("channel", strconv.Itoa(int(revision))), xptest.Field(int64(revision), "spec", "revision"))
}

// decode returns the model of a changed object, given its model before the change. It fails if the
// change is not part of the model.
func (w *world) decode(u *unstructured.Unstructured, was object) object {
	o := was
	o.mark, o.paused = w.mark(u.GetAnnotations()[hold.Annotation]), xp.IsPaused(u)
	o.policy = unset
	switch p, _ := (xp.Instance{Unstructured: u}).UpdatePolicy(); p {
	case updateAutomatic:
		o.policy = automatic
	case xp.UpdateManual:
		o.policy = manual
	}
	o.controller = 0
	if c, ok := xp.Controller(u); ok {
		of, life, _ := strings.Cut(string(c.UID), "#")
		by, err := strconv.Atoi(of)
		must(err)
		n, err := strconv.ParseUint(life, 10, 8)
		must(err)
		o.controller = ownedBy(by, uint8(n))
	}
	if o.policy != was.policy && w.rules != v120 {
		o.current = false // The API server has given it a new generation.
	}

	return o
}

func must(err error) {
	if err != nil {
		panic(err) // The model is wrong.
	}
}

// backUp builds the objects of the backup, as their users had them, with the plugin's notes.
func (w *world) backUp() {
	for n := range w.parent {
		o := object{live: true, synced: syncedTrue, current: true, ready: true, finalizer: true}
		if p := w.parent[n]; p >= 0 {
			o.controller = ownedBy(original(p), oldLife)
		}
		if n >= w.xrs {
			o.external = uint8(n + 1)
		} else {
			o.revision, o.status = 1, w.gates[n] == gatedByStatus
			o.paused = w.paused.has(n)
			switch {
			case w.manual.has(n):
				o.policy = manual
			case w.selecting.has(n):
				o.policy = automatic
			}
			for _, c := range w.children(n) {
				o.refs |= with(original(c))
			}
		}
		w.backup[original(n)] = w.build(original(n), &o)
	}
	for n := range w.xrs {
		var composed []*unstructured.Unstructured
		for _, c := range w.children(n) {
			composed = append(composed, w.backup[original(c)])
		}
		xp.SetSavedConditions(w.backup[original(n)], composed)
	}
	if w.claimed {
		w.backup[theClaim] = w.build(theClaim, &object{live: true, synced: syncedTrue, current: true, ready: true, finalizer: true})
	}
}

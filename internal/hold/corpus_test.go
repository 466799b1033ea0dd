package hold

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// releasing writes the marks of the next release. The marks of released versions never change.
var releasing = flag.String("releasing", "", "write the marks of a version that is about to be released")

// A specimen is a held object as a released version left it in a cluster.
type specimen struct {
	Reason string         `json:"reason"`
	Object map[string]any `json:"object"`
	// GivesBack is the patch that lifts the hold.
	GivesBack map[string]any `json:"givesBack"`
}

// specimens returns held objects that together have every field of a mark.
func specimens() map[string]specimen {
	x := xptest.XR("x", xptest.Policy("Automatic"), xptest.Annotated(xp.AnnotationPaused, "false"))
	bucket := xptest.MR("b", xptest.ControlledBy(x))
	claim := xptest.Claim("o", xptest.OfXR(x), xptest.Annotated(xp.AnnotationPaused, "true"))
	owner := xp.RefTo(x)
	yes := "true"
	of := Hold{Restore: restoreName, Since: cameAt}
	with := func(change func(h *Hold)) Hold {
		h := of
		change(&h)

		return h
	}
	fields := xptest.Managed("argocd-controller", "Apply", saved, []string{"spec", "size"})
	many := make([]*unstructured.Unstructured, manyRefs+1)
	for n := range many {
		many[n] = xptest.MR(fmt.Sprintf("b-%d", n))
	}
	all := map[string]specimen{}
	for name, s := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		put    Hold
		then   func(h *Hold)
	}{
		"xr":         {reason: "An XR can have settings of its own.", object: xptest.With(x, xptest.Refs(bucket), fields), put: of},
		"xr-v2":      {reason: "A v2 XR keeps its fields in another place.", object: xptest.XRV2("m", xptest.Refs(xptest.NamespacedMR("b"))), put: of},
		"xr-many":    {reason: "A mark packs the references of a large XR.", object: xptest.XR("many", xptest.Refs(many...)), put: of},
		"claim":      {reason: "A claim can have a pause of its own.", object: claim, put: of},
		"quarantine": {reason: "Only a user ends a quarantine.", object: x, put: with(func(h *Hold) { h.Quarantine = true })},
		"by-command": {reason: "Another cluster adopts it.", object: xptest.XR("x", xptest.Policy("Automatic")), put: with(func(h *Hold) { h.Restore, h.Quarantine, h.ByCommand = "", true, true })},
		"by-hand":    {reason: "Only a user releases a manual hold.", object: x, put: with(func(h *Hold) { h.ByHand = true })},
		"clone":      {reason: "A copy of a live object stays held.", object: bucket, put: with(func(h *Hold) { h.Clone, h.Reason = "Bucket team-a/b", "a copy" })},
		"create": {
			reason: "An MR without external-name must not create anything.", object: bucket, put: with(func(h *Hold) { h.Identity, h.Reason = xp.CreatePending, "a create was in flight" }),
			then: func(h *Hold) {
				h.Reported = &Reported{CreatePending: laterAt, CreateSucceeded: laterAt, Synced: laterAt}
			},
		},
		"observes": {
			reason: "An observing MR changes nothing.", object: xptest.With(bucket, xptest.Field([]any{"*"}, "spec", "managementPolicies")),
			put: with(func(h *Hold) { h.Observes, h.Status, h.Reason = true, []string{"atProvider"}, "observed first" }),
		},
		"settles": {
			reason: "A provider found the external resource of the MR.", object: xptest.With(bucket, xptest.Field([]any{"*"}, "spec", "managementPolicies")),
			put: with(func(h *Hold) { h.Observes, h.Reason = true, "observed first" }), then: func(h *Hold) { h.Settling, h.Lost = laterAt, true },
		},
		"reads": {
			reason: "An MR waits for a password Secret and for its XR.", object: xptest.With(bucket, xptest.Annotated(xp.AnnotationRestoreStatus, "false")),
			put: with(func(h *Hold) {
				h.Inputs = []Input{{Namespace: "infra", Name: "password", Stored: true, By: "velero restore create"}}
				h.Owner, h.Status, h.Reason = &owner, []string{"atProvider"}, "its password is missing"
			}),
		},
		"publishes": {
			reason: "The XR's connection Secret is in the backup.", object: x,
			put: with(func(h *Hold) {
				h.Secret, h.SecretBy, h.Failing = true, "velero restore create", "ReconcileError"
				h.SecretWas, h.FromUID = "old", &FromUID{XR: owner, UID: "uid", Fields: []string{"metadata.name"}}
			}),
		},
		"let-go": {
			reason: "Crossplane may reconcile the object already.", object: xptest.With(x, xptest.Refs(bucket)), put: of,
			then: func(h *Hold) {
				h.Unpaused, h.Polled, h.LastReported, h.ComposedConditions, h.Environments = laterAt, laterAt, "Bucket", []xp.TrueConditions{"Ready"}, []string{"e"}
				h.Required = []string{"requiredResources of the step gate"}
			},
		},
		"again":      {reason: "The plugin put the hold on again.", object: x, put: of, then: func(h *Hold) { h.Again, h.Paused = true, &yes }},
		"taken-over": {reason: "Another writer had created the object.", object: x, put: of, then: func(h *Hold) { h.TakenOver = true }},
		"freed":      {reason: "Only the mark is left to remove.", object: x, put: of, then: func(h *Hold) { h.Freed, h.Managers = true, []map[string]any{{"manager": "argocd-controller"}} }},
	} {
		u := s.object.DeepCopy()
		h, err := Put(u, s.put)
		if err != nil {
			panic(err) // The test is wrong.
		}
		if s.then != nil {
			s.then(h)
		}
		mark := key.mark(xp.RefTo(u), h)
		xp.Annotate(u, Annotation, mark)
		all[name] = specimen{Reason: s.reason, Object: u.Object, GivesBack: ReleasePatch(u, h)}
	}

	return all
}

// Each version lifts the holds of all released versions. "go test ./internal/hold -run
// TestReleasedMarks -releasing v0.2.0" records the marks of the next release.
func TestReleasedMarks(t *testing.T) {
	if *releasing != "" {
		keepSpecimens(t, *releasing)
	}
	versions, err := filepath.Glob("testdata/released/v*.json")
	if err != nil || len(versions) == 0 {
		t.Fatalf("no recorded marks of released versions: %v", err)
	}
	for _, version := range versions {
		all := map[string]specimen{}
		xptest.Must(t, json.Unmarshal(xptest.Value(os.ReadFile(filepath.Clean(version))), &all))
		for name, s := range all {
			t.Run(filepath.Base(version)+"/"+name, func(t *testing.T) {
				u := &unstructured.Unstructured{Object: s.Object}
				h, err := key.HoldOf(u)
				if err != nil || h == nil {
					t.Fatalf("%s Cannot read the mark: %v, %v", s.Reason, h, err)
				}
				xptest.Same(t, s.GivesBack, viaJSON(t, ReleasePatch(u, h)), s.Reason+" The own settings must return.")
				if refs, err := xp.CompositeFrom(u).ResourceRefs(); xp.IsComposite(u) && (err != nil || cmp.Diff(refs, h.Refs) != "") {
					t.Errorf("%s Found %d of %d references: %v", s.Reason, len(h.Refs), len(refs), err)
				}
				again := h.encode()
				xptest.Same(t, markIn(t, xp.Annotation(u, Annotation)), markIn(t, again), s.Reason+" Every field of the mark must be read.")
			})
		}
	}
}

// The recorded marks of the latest release have every field of a mark.
func TestReleasedMarksSayAll(t *testing.T) {
	said := map[string]bool{}
	for _, s := range specimens() {
		for field := range markIn(t, xp.Annotation(&unstructured.Unstructured{Object: s.Object}, Annotation)) {
			said[field] = true
		}
	}
	for f := range reflect.TypeFor[Hold]().Fields() {
		field, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if field != "format" && !said[field] { // The first format has no number.
			t.Errorf("no specimen has %s: extend specimens", field)
		}
	}
}

// A mark in a newer format is not read as an older one.
func TestHoldOfNewer(t *testing.T) {
	for name, mark := range map[string]string{"Format": `{"format":2,"restore":"velero/monday"}`, "OtherTypes": `{"format":2,"restore":{"name":"monday"},"since":1}`} {
		u := xptest.XR("x", xptest.Annotated(Annotation, mark), xptest.Annotated(xp.AnnotationPaused, "true"))
		if _, err := Of(u); !errors.Is(err, ErrNewer) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := Put(u, Hold{Restore: restoreName}); !errors.Is(err, ErrNewer) {
			t.Errorf("%s: a new hold must refuse an unreadable mark; got %v", name, err)
		}
	}
}

func keepSpecimens(t *testing.T, version string) {
	t.Helper()
	path := filepath.Join("testdata", "released", version+".json")
	if _, err := os.Stat(path); err == nil {
		t.Fatalf("%s exists already, and recorded marks never change", path)
	}
	b := xptest.Value(json.MarshalIndent(specimens(), "", " "))
	xptest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	xptest.Must(t, os.WriteFile(path, append(b, '\n'), 0o644))
}

// markIn returns the fields of a mark without its signature, and with packed fields unpacked.
func markIn(t *testing.T, mark string) map[string]any {
	t.Helper()
	says := map[string]any{}
	xptest.Must(t, json.Unmarshal([]byte(mark), &says))
	delete(says, "mac")
	for _, packed := range []string{"composed", "managedFields"} {
		if _, ok := says[packed]; ok {
			says[packed] = true
		}
	}

	return says
}

func viaJSON(t *testing.T, from map[string]any) map[string]any {
	t.Helper()
	b := xptest.Value(json.Marshal(from))
	to := map[string]any{}
	xptest.Must(t, json.Unmarshal(b, &to))

	return to
}

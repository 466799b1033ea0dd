package forest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// changeMark returns a defect that changes the mark.
func changeMark(change func(h *hold.Hold)) func(original, u *unstructured.Unstructured) {
	return func(_, u *unstructured.Unstructured) {
		for _, key := range []string{hold.Annotation, hold.Annotation} {
			h := &hold.Hold{}
			if mark, ok := u.GetAnnotations()[key]; ok && json.Unmarshal([]byte(mark), h) == nil {
				change(h)
				b, _ := json.Marshal(h)
				xp.Annotate(u, key, string(b))
			}
		}
	}
}

func removeAnnotations(keys ...string) func(original, u *unstructured.Unstructured) {
	return func(_, u *unstructured.Unstructured) {
		for _, key := range keys {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations", key)
		}
	}
}

// A property that nothing breaks proves nothing. Each deliberate defect must break the property
// that is about it.
func TestDefectsAreFound(t *testing.T) {
	t.Parallel()
	const enough = 300
	path := func(u *unstructured.Unstructured, field string) []string {
		if _, modern, _ := unstructured.NestedMap(u.Object, "spec", "crossplane"); modern {
			return []string{"spec", "crossplane", field}
		}

		return []string{"spec", field}
	}
	followAll := func(f *Forest, of xp.Item, ids []velero.ResourceIdentifier) []velero.ResourceIdentifier {
		for _, r := range f.byItem[of].Unfollowed {
			if o := f.byID[r.ID()]; o != nil {
				ids = append(ids, velero.ResourceIdentifier{GroupResource: o.Kind.Resource(), Namespace: o.GetNamespace(), Name: o.GetName()})
			}
		}

		return ids
	}
	cases := map[string]struct {
		defect Defect
		want   string
	}{
		"FollowsOneSidedLinks": {want: "P7-backup", defect: Defect{Additional: followAll}},
		"LeavesOutWhatBelongs": {want: "P7-backup", defect: Defect{
			Additional: func(_ *Forest, _ xp.Item, ids []velero.ResourceIdentifier) []velero.ResourceIdentifier {
				return ids[:len(ids)/2]
			},
		}},
		"DropsBackupWarnings": {want: "P8-backup", defect: Defect{DropLine: func(line string) bool { return strings.Contains(line, "the backup does not add it") }}},
		"DropsLostOwners":     {want: "P8-restore", defect: Defect{DropLine: func(line string) bool { return strings.Contains(line, "[RestoredWithoutOwner]") }}},
		"DropsLeftOut":        {want: "P8-restore", defect: Defect{DropLine: func(line string) bool { return strings.Contains(line, "not restored") }}},
		"KeepsOldOwners": {want: "P3-live-owners", defect: Defect{Created: func(original, u *unstructured.Unstructured) {
			u.SetOwnerReferences(original.GetOwnerReferences())
		}}},
		"KeepsOldManagedFields": {want: "P3-live-owners", defect: Defect{Created: func(original, u *unstructured.Unstructured) {
			u.SetManagedFields(original.GetManagedFields())
		}}},
		"ChangesController": {want: "P3-true-owners", defect: Defect{Created: func(_, u *unstructured.Unstructured) {
			refs := u.GetOwnerReferences()
			for i := range refs {
				refs[i].Name = "thief"
			}
			u.SetOwnerReferences(refs)
		}}},
		"DropsControllers": {want: "P2-controllers", defect: Defect{Created: func(_, u *unstructured.Unstructured) { u.SetOwnerReferences(nil) }}},
		"DropsReferences": {want: "P2-references", defect: Defect{Created: func(_, u *unstructured.Unstructured) {
			field := path(u, "resourceRefs")
			if refs, ok, _ := unstructured.NestedSlice(u.Object, field...); ok && len(refs) > 0 {
				_ = unstructured.SetNestedSlice(u.Object, refs[1:], field...)
			}
		}}},
		"LosesExternalNames": {want: "P1-identity", defect: Defect{Created: removeAnnotations(xp.AnnotationExternalName)}},
		"ReleasesUnknown": {want: "P1-identity", defect: Defect{Created: func(_, u *unstructured.Unstructured) {
			if xp.IsManaged(u) {
				removeAnnotations(xp.AnnotationPaused, hold.Annotation)(nil, u)
			}
		}}},
		"FollowsTheNewestRevision": {want: "P4-pinned", defect: Defect{Created: func(_, u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, path(u, "compositionUpdatePolicy")...)
		}}},
		"LeavesTheRevision": {want: "P4-pinned", defect: Defect{First: func(ids []velero.ResourceIdentifier) []velero.ResourceIdentifier {
			return slices.DeleteFunc(slices.Clone(ids), func(id velero.ResourceIdentifier) bool { return id.GroupResource == revision.Resource() })
		}}},
		"DropsTheHold": {want: "P5-held", defect: Defect{Created: removeAnnotations(xp.AnnotationPaused, hold.Annotation, hold.Annotation)}},
		"ReconcilesEarly": {want: "P5-ahead", defect: Defect{Created: func(_, u *unstructured.Unstructured) {
			if xp.IsManaged(u) {
				removeAnnotations(xp.AnnotationPaused, hold.Annotation)(nil, u)
			}
		}}},
		"DropsTheMark":      {want: "P5-held", defect: Defect{Created: removeAnnotations(hold.Annotation, hold.Annotation)}},
		"DropsThePause":     {want: "P5-held", defect: Defect{Created: removeAnnotations(xp.AnnotationPaused)}},
		"GivesNoReason":     {want: "P5-held", defect: Defect{Created: changeMark(func(h *hold.Hold) { h.Reason = "" })}},
		"ForgetsThePause":   {want: "P5-given-back", defect: Defect{Created: changeMark(func(h *hold.Hold) { h.Paused = nil })}},
		"ForgetsThePolicy":  {want: "P5-given-back", defect: Defect{Created: changeMark(func(h *hold.Hold) { h.UpdatePolicy = nil })}},
		"ChangesWhatIsLive": {want: "P6-live", defect: Defect{Again: func(live *unstructured.Unstructured) { xp.Annotate(live, "defect", "here") }}},
		"ChangesAgain":      {want: "P6-again", defect: Defect{Again: func(live *unstructured.Unstructured) { xp.Annotate(live, string(live.GetUID()), "here") }}},
		"ChangesUnrelated":  {want: "P7-foreign", defect: Defect{Created: func(_, u *unstructured.Unstructured) { xp.Annotate(u, "defect", "here") }}},
		"BringsBackOthers":  {want: "P7-restore", defect: Defect{BringBack: true}},
		"ReversesTheOrder":  {want: "order", defect: Defect{First: func([]velero.ResourceIdentifier) []velero.ResourceIdentifier { return nil }}},
		"Panics":            {want: "stands", defect: Defect{Created: func(_, _ *unstructured.Unstructured) { panic("a defect") }}},
	}
	tested := map[string]bool{}
	for _, tc := range cases {
		tested[tc.want] = true
	}
	for _, p := range Properties() {
		if !tested[p.Name] {
			t.Errorf("no defect proves that %s can be broken", p.Name)
		}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var others []string
			for seed := range uint64(enough) {
				broken := Judge(Simulate(seed, limits, tc.defect))
				if len(broken[tc.want]) > 0 {
					t.Logf("found in forest %d: %s", seed, broken[tc.want][0])

					return
				}
				for other := range broken {
					if !slices.Contains(others, other) {
						others = append(others, other)
					}
				}
			}
			t.Errorf("%s does not find it in %d forests; others do: %v", tc.want, enough, others)
		})
	}
}

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

var (
	compositionKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "Composition"}
	revisionKind    = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision"}
)

// take takes steps of a case, one after the other.
func (s *suite) take(t *testing.T, c *stack.Cluster, w *world, steps []cases.Step) {
	t.Helper()
	for _, step := range steps {
		s.takeOne(t, c, w, step)
	}
}

func (s *suite) takeOne(t *testing.T, c *stack.Cluster, w *world, step cases.Step) {
	t.Helper()
	ctx := t.Context()
	switch {
	case step.Apply != "":
		must(t, w.scene.Apply(ctx, c, step.Apply))
	case step.Patch != nil:
		s.patchAll(t, c, w, step.Patch)
	case step.Delete != nil:
		s.deleteAll(t, c, w, step.Delete)
	case step.Refused != nil:
		s.wantRefused(t, c, w, step.Refused)
	case step.Await != nil:
		s.awaitAll(t, c, w, step.Await)
	case step.Revise > 0:
		for i := range step.Revise {
			must(t, revise(ctx, c, w.Name, strconv.Itoa(i)))
		}
	case step.Fault != nil:
		s.fail(t, w, *step.Fault)
	case step.Recover:
		must(t, s.cloud.RecoverBy(ctx, w.caller("")))
	case step.Failed > 0:
		s.awaitFailed(t, c, w, step.Failed)
	case step.Lose != "":
		kind, id, _ := strings.Cut(step.Lose, " ")
		must(t, s.cloud.Delete(ctx, api.Kind(kind), id))
	case step.Settle:
		must(t, s.cloud.Release(ctx))
	case step.Follow != nil:
		s.followAll(t, c, w, step.Follow)
	case step.Stop != "":
		must(t, c.Stop(step.Stop))
	case step.Start != "":
		must(t, c.Restart(ctx, step.Start))
	case step.Details:
		must(t, w.scene.AddDetails(ctx, c))
	case step.Own != nil:
		s.ownAll(t, c, w, step.Own)
	case step.BackUp != nil:
		other := drill.Scene{Name: step.BackUp.Name, BackupArgs: step.BackUp.Args}
		backup, err := other.EndOfBackup(ctx, c)
		must(t, err)
		if phase := drill.Phase(backup); !isPhase(phase, step.BackUp.Phase) {
			t.Errorf("%s\nBackup %s is %s", w.Reason, step.BackUp.Name, phase)
		}
		logs, err := c.Velero(ctx, "backup", "logs", step.BackUp.Name)
		must(t, err)
		wantCodes(t, w, "The log of "+step.BackUp.Name, problems(logs), step.BackUp.Codes)
	case len(step.Release) > 0:
		if r := command(t, c, append([]string{"release"}, step.Release...)...); r.code != 0 {
			t.Errorf("%s\nrelease %v: %+v", w.Reason, step.Release, r)
		}
	case step.RestoreAgain != nil:
		s.restoreMore(t, c, w, step.RestoreAgain)
	case step.AwaitReady:
		must(t, w.scene.AwaitReady(ctx, c))
	default:
		t.Fatalf("case %s has an empty step", w.Name)
	}
}

// restoreMore restores a backup, and expects that to end as the step says.
func (s *suite) restoreMore(t *testing.T, c *stack.Cluster, w *world, again *cases.Again) {
	t.Helper()
	ctx := t.Context()
	w.restores++
	name := fmt.Sprintf("%s-again-%d", w.Name, w.restores)
	must(t, drill.Platform{}.StartRestore(ctx, c, name, cmp.Or(again.Of, w.Name), again.Args...))
	r, err := drill.AwaitRestore(ctx, c, name)
	must(t, err)
	if phase := drill.Phase(r); !isPhase(phase, again.Phase) {
		t.Errorf("%s\nRestore %s is %s:\n%s", w.Reason, name, phase, drill.Problems(ctx, c, name))
	}
	wantCodes(t, w, name, drill.Problems(ctx, c, name)+s.details(t, name), again.Codes)
}

// ownAll makes an object an owner of others.
func (s *suite) ownAll(t *testing.T, c *stack.Cluster, w *world, own *cases.Own) {
	t.Helper()
	ctx := t.Context()
	owner, err := get(ctx, c, kindOf(t, cmp.Or(own.Owner, own.Kind)), w.scene.Name, own.By)
	must(t, err)
	ref := metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}
	if own.Controller {
		ref.Controller = &own.Controller
	}
	for _, u := range w.some(t, c, own.Objects) {
		must(t, drill.Patch(ctx, c, &u, map[string]any{"metadata": map[string]any{"ownerReferences": append(u.GetOwnerReferences(), ref)}}))
	}
}

// revise makes a new revision of a Composition, with the same spec, and waits until Crossplane
// controls all.
func revise(ctx context.Context, c *stack.Cluster, composition, to string) error {
	selector := "crossplane.io/composition-name=" + composition
	before, err := list(ctx, c, revisionKind, "", selector)
	if err != nil {
		return err
	}
	u, err := get(ctx, c, compositionKind, "", composition)
	if err != nil {
		return err
	}
	if err := drill.Patch(ctx, c, u, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"example.org/revised": to}}}); err != nil {
		return fmt.Errorf("cannot revise Composition %s: %w", composition, err)
	}

	return c.Wait(ctx, time.Minute, "another revision of Composition "+composition, func(ctx context.Context) error {
		all, err := list(ctx, c, revisionKind, "", selector)
		if err != nil {
			return err
		}
		for _, r := range all {
			if len(r.GetOwnerReferences()) == 0 {
				return fmt.Errorf("%s has no owner", r.GetName())
			}
		}
		if len(all) <= len(before) {
			return fmt.Errorf("it has %d revisions, as before", len(all))
		}

		return nil
	})
}

// find returns the objects that a step means.
func (w *world) find(ctx context.Context, t *testing.T, c *stack.Cluster, o cases.Objects) ([]unstructured.Unstructured, error) {
	t.Helper()
	all, err := list(ctx, c, kindOf(t, o.Kind), cmp.Or(o.Namespace, w.scene.To, w.scene.Name), o.Labels)
	if err != nil {
		return nil, err
	}

	return slices.DeleteFunc(all, func(u unstructured.Unstructured) bool {
		if o.Name == "" {
			return u.GetNamespace() == "" && !strings.HasPrefix(u.GetName(), w.scene.Name+"-")
		}
		ok, err := path.Match(o.Name, u.GetName())

		return !ok || err != nil
	}), nil
}

// some is find that expects at least one.
func (w *world) some(t *testing.T, c *stack.Cluster, o cases.Objects) []unstructured.Unstructured {
	t.Helper()
	all, err := w.find(t.Context(), t, c, o)
	must(t, err)
	if len(all) == 0 {
		t.Fatalf("case %s: there is no %s %s%s", w.Name, o.Kind, o.Name, o.Labels)
	}

	return all
}

// patchAll patches objects. ${now} is the time, ${uid} the UID that the object had in the source, and
// ${external} the ID of the external resource that was created for it.
func (s *suite) patchAll(t *testing.T, c *stack.Cluster, w *world, p *cases.Patch) {
	t.Helper()
	kind, text := types.MergePatchType, p.Merge
	if len(p.JSON) > 0 {
		kind, text = types.JSONPatchType, p.JSON
	}
	var subresources []string
	if p.Status {
		subresources = []string{"status"}
	}
	resources, err := s.cloud.List(t.Context())
	must(t, err)
	for _, u := range w.some(t, c, p.Objects) {
		r, err := c.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
		must(t, err)
		values := []string{"${now}", time.Now().UTC().Format(time.RFC3339)}
		if w.before != nil {
			for uid, name := range w.before.uids {
				if strings.HasPrefix(name, u.GetKind()+".") && strings.HasSuffix(name, " "+strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")) {
					values = append(values, "${uid}", uid)
				}
			}
		}
		for _, e := range resources {
			if strings.Contains(e.CreatedBy.ManagedBy, ", "+u.GetKind()+", "+strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")+", ") {
				values = append(values, "${external}", e.ID)
			}
		}
		_, err = r.Patch(t.Context(), u.GetName(), kind, []byte(strings.NewReplacer(values...).Replace(string(text))), metav1.PatchOptions{FieldManager: "kubectl-patch"}, subresources...)
		must(t, err)
	}
}

func (s *suite) deleteAll(t *testing.T, c *stack.Cluster, w *world, d *cases.Deletion) {
	t.Helper()
	policy := metav1.DeletePropagationBackground
	if d.Foreground {
		policy = metav1.DeletePropagationForeground
	}
	for _, u := range w.some(t, c, d.Objects) {
		r, err := c.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
		must(t, err)
		must(t, r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{PropagationPolicy: &policy}))
	}
}

func (s *suite) wantRefused(t *testing.T, c *stack.Cluster, w *world, o *cases.Objects) {
	t.Helper()
	for _, u := range w.some(t, c, *o) {
		r, err := c.Resource(t.Context(), u.GroupVersionKind(), u.GetNamespace())
		must(t, err)
		if err := r.Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}); err == nil || !strings.Contains(err.Error(), "in-use") {
			t.Errorf("%s\nThe answer to the deletion of %s %s is %v", w.Reason, u.GetKind(), u.GetName(), err)
		}
	}
}

func (s *suite) awaitAll(t *testing.T, c *stack.Cluster, w *world, a *cases.Await) {
	t.Helper()
	must(t, c.Wait(t.Context(), 5*time.Minute, fmt.Sprintf("%s %s%s of case %s", a.Kind, a.Name, a.Labels, w.Name), func(ctx context.Context) error {
		all, err := w.find(ctx, t, c, a.Objects)
		if err != nil {
			return err
		}
		if a.Count == nil && len(all) == 0 || a.Count != nil && len(all) != *a.Count {
			return fmt.Errorf("there are %v", names(all))
		}
		var errs []error
		for _, u := range all {
			err := is(&u, a)
			if err == nil && a.Any {
				return nil
			}
			errs = append(errs, err)
		}

		return errors.Join(errs...)
	}))
}

// is returns an error if an object is not in the awaited state.
func is(u *unstructured.Unstructured, a *cases.Await) error {
	var errs []error
	for condition, status := range a.Conditions {
		errs = append(errs, stack.HasCondition(u, condition, status))
	}
	if a.Mark != "" && (!drill.Held(u) || !strings.Contains(markOf(u), a.Mark)) {
		errs = append(errs, fmt.Errorf("the mark of %s is %s", u.GetName(), markOf(u)))
	}
	if a.Deleting && u.GetDeletionTimestamp() == nil {
		errs = append(errs, fmt.Errorf("%s is not being deleted", u.GetName()))
	}
	b, err := u.MarshalJSON()
	if err != nil || !strings.Contains(string(b), a.Has) || a.Lacks != "" && strings.Contains(string(b), a.Lacks) {
		errs = append(errs, fmt.Errorf("%s does not have %q, or has %q: %w", u.GetName(), a.Has, a.Lacks, err))
	}

	return errors.Join(errs...)
}

// tamperWith makes the case's changes in its backup.
func (s *suite) tamperWith(t *testing.T, w *world, backup *unstructured.Unstructured) {
	t.Helper()
	file := filepath.Join(t.TempDir(), w.Name+".tar.gz")
	used := map[string]bool{}
	rewrite(t, s.host.BackupFile(w.Name), file, func(content []byte) []byte {
		u := &unstructured.Unstructured{}
		must(t, json.Unmarshal(content, &u.Object))
		for _, c := range w.Tampered {
			if !of(drill.Name(u))(c.Of) {
				continue
			}
			used[c.Of] = true
			patch, err := jsonpatch.DecodePatch(c.JSON)
			must(t, err)
			content, err = patch.Apply(content)
			must(t, err)
		}

		return content
	})
	for _, c := range w.Tampered {
		if !used[c.Of] {
			t.Fatalf("the backup of case %s has no %s", w.Name, c.Of)
		}
	}
	items, _, _ := unstructured.NestedInt64(backup.Object, "status", "progress", "totalItems")
	must(t, s.host.Upload(t.Context(), w.backup(), w.Name, int(items), file))
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// testEnded expects a restore to end as the case says, and used objects to be protected.
func (s *suite) testEnded(t *testing.T, w *world) {
	ctx := t.Context()
	r, err := drill.AwaitRestore(ctx, s.target, w.Name)
	must(t, err)
	details := s.details(t, w.Name)
	if phase := drill.Phase(r); !isPhase(phase, w.Expect.Phase) {
		t.Errorf("%s\nThe Restore is %s:\n%s", w.Reason, phase, drill.Problems(ctx, s.target, w.Name))
	}
	wantCodes(t, w, "The restore", details+drill.Problems(ctx, s.target, w.Name), w.Expect.Codes)
	unprotected, err := w.scene.Unprotected(ctx, s.target)
	must(t, err)
	for _, u := range unprotected {
		t.Errorf("%s\nRight after the restore, %s", w.Reason, u)
	}
}

// awaitSettled waits until a world is Ready, unless some of it never is.
func (s *suite) awaitSettled(t *testing.T, w *world) {
	t.Helper()
	if len(w.Expect.Held) == 0 && !w.Expect.Unready {
		must(t, w.scene.AwaitReady(t.Context(), s.target))
	}
}

// A state is what a scene is at one time.
type state struct {
	picture drill.Picture
	live    map[string]*unstructured.Unstructured
	uids    map[string]string
	ledger  *drill.Ledger
	// revisions are those of its Compositions.
	revisions drill.Picture
}

// stateOf returns the state of a scene.
func (s *suite) stateOf(ctx context.Context, c *stack.Cluster, scene drill.Scene) (*state, error) {
	is := &state{uids: map[string]string{}}
	var err error
	if is.picture, err = scene.Picture(ctx, c); err != nil {
		return nil, err
	}
	if is.live, err = scene.Live(ctx, c); err != nil {
		return nil, err
	}
	for name, u := range is.live {
		is.uids[string(u.GetUID())] = back(scene, name)
	}
	if is.revisions, err = scene.Revisions(ctx, c); err != nil {
		return nil, err
	}
	is.ledger, err = scene.Ledger(ctx, s.cloud)

	return is, err
}

// back returns a text about a scene with the namespace that it had in the source.
func back(scene drill.Scene, text string) string {
	if scene.To == "" {
		return text
	}

	return strings.ReplaceAll(text, scene.To, scene.Name)
}

// now returns the last entry of the cloud's journal.
func (s *suite) now(t *testing.T) int64 {
	t.Helper()
	journal, err := s.cloud.Journal(t.Context(), 0)
	must(t, err)
	if len(journal) == 0 {
		return 0
	}

	return journal[len(journal)-1].Seq
}

// testJudged compares a restored world with the one before, and the bystanders with themselves, once
// every MR was reconciled since the given entry of the cloud's journal.
func (s *suite) testJudged(t *testing.T, w *world, since int64) {
	ctx := t.Context()
	if len(w.Expect.Held) == 0 {
		must(t, w.scene.AwaitReads(ctx, s.target, s.cloud, since))
	}
	err := s.soon(t, func(ctx context.Context) error {
		after, err := s.stateOf(ctx, s.target, w.scene)
		if err != nil {
			return err
		}
		w.after = after

		return w.differs()
	})
	if w.after == nil {
		must(t, err)
	}
	s.wantCloud(t, w)
	if err != nil {
		t.Errorf("%s\n%v", w.Reason, err)
		t.Log(aCode.FindAllString(drill.Problems(ctx, s.target, w.Name), -1))
	}
	if err := w.misnumbered(); err != nil {
		t.Errorf("%s\n%v", w.Reason, err)
	}
	s.wantHeldAsSaid(t, w)
	s.wantBystander(t, w, since, false)
}

// soon repeats a comparison until it finds no difference, and returns what it finds for a minute: between
// two writes of a controller objects are never as before. The cloud's journal has what they did meanwhile.
func (s *suite) soon(t *testing.T, compare func(ctx context.Context) error) error {
	t.Helper()

	return s.target.Wait(t.Context(), time.Minute, "objects to be as they are to be", func(context.Context) error { return compare(t.Context()) })
}

const compositionLabel = "crossplane.io/composition-name"

// misnumbered returns which revisions have the number of another one, and which restored ones have lost
// their owner or their place. One of a Composition that is live has a number that none follows.
func (w *world) misnumbered() error {
	var errs []error
	at := map[string]string{}
	number := func(all drill.Picture, name string) int64 {
		fields, _ := all[name].Fields.(map[string]any)
		n, _, _ := unstructured.NestedInt64(fields, "spec", "revision")

		return n
	}
	for name, r := range w.after.revisions {
		n := number(w.after.revisions, name)
		place := fmt.Sprintf("%s %d", r.Labels[compositionLabel], n)
		if other, ok := at[place]; ok {
			errs = append(errs, fmt.Errorf("revisions %s and %s are %s", name, other, place))
		}
		at[place] = name
		was, ok := w.before.revisions[name]
		if !ok {
			continue
		}
		if diff := cmp.Diff(was.Owners, r.Owners); diff != "" {
			errs = append(errs, fmt.Errorf("the owners of revision %s: -before, +after:\n%s", name, diff))
		}
		for other, l := range w.before.revisions {
			o := number(w.after.revisions, other)
			later := number(w.before.revisions, name) < number(w.before.revisions, other)
			if l.Labels[compositionLabel] == r.Labels[compositionLabel] && later && n > 0 && o > 0 && n >= o {
				errs = append(errs, fmt.Errorf("revisions %s and %s have lost their order: %d, %d", name, other, n, o))
			}
		}
	}

	return errors.Join(errs...)
}

// wantCloud expects just the changes in the cloud that the case says.
func (s *suite) wantCloud(t *testing.T, w *world) {
	t.Helper()
	changes, err := w.scene.Changes(t.Context(), s.cloud, w.before.ledger.Seq, w.before.ledger.External, api.Update)
	must(t, err)
	counts := map[string]int{}
	for _, c := range changes {
		counts[string(c.Op)+" "+string(c.Kind)]++
	}
	if diff := cmp.Diff(w.Expect.Cloud, counts, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s\nIn the cloud: -want, +got:\n%s%v", w.Reason, diff, changes)
	}
}

// differs returns how the picture of the restored world differs beyond what the case expects. A UID
// of the source is no UID of the target, unless the case says so.
func (w *world) differs() error {
	now := w.after.uids
	if w.Expect.OldUIDs {
		now = maps.Clone(now)
		maps.Copy(now, w.before.uids)
	}
	before, err := w.withoutUIDs(w.before.picture, w.before.uids)
	if err != nil {
		return err
	}
	after, err := w.withoutUIDs(w.after.picture, now)
	if err != nil {
		return err
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, had := before[name]
		is, has := after[name]
		switch {
		case matches(w.Expect.Held, name) != "":
		case !has && !slices.ContainsFunc(w.Expect.Lost, of(name)):
			errs = append(errs, fmt.Errorf("%s is not there any more", name))
		case !had && !slices.ContainsFunc(w.Expect.New, of(name)):
			errs = append(errs, fmt.Errorf("%s was not there before: %+v", name, is))
		case had && has && slices.ContainsFunc(w.Expect.Lost, of(name)) && !slices.ContainsFunc(w.Expect.New, of(name)):
			errs = append(errs, fmt.Errorf("%s is still there", name))
		case had && has:
			w.forgive(name, &was, &is)
			if diff := cmp.Diff(was, is, cmpopts.EquateEmpty()); diff != "" {
				errs = append(errs, fmt.Errorf("%s: -before, +after:\n%s", name, diff))
			}
		}
	}

	return errors.Join(errs...)
}

// withoutUIDs returns a picture in which the UIDs of objects are the names of these, and the namespace is that
// of the source, without what is named and not there: that it is missing is seen by its absence.
func (w *world) withoutUIDs(p drill.Picture, uids map[string]string) (drill.Picture, error) {
	var pairs []string
	for uid, name := range uids {
		pairs = append(pairs, uid, "<"+name+">")
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a picture: %w", err)
	}
	all := drill.Picture{}
	if err := json.Unmarshal([]byte(strings.NewReplacer(pairs...).Replace(back(w.scene, string(b)))), &all); err != nil {
		return nil, fmt.Errorf("cannot decode a picture: %w", err)
	}

	maps.DeleteFunc(all, func(_ string, l drill.Likeness) bool { return l.Fields == drill.Absent })

	return all, nil
}

// forgive makes the parts equal that may differ.
func (w *world) forgive(name string, was, is *drill.Likeness) {
	for pattern, parts := range w.Expect.Changed {
		if !of(name)(pattern) {
			continue
		}
		for _, part := range parts {
			field := reflect.ValueOf(was).Elem().FieldByName(part)
			field.Set(reflect.ValueOf(is).Elem().FieldByName(part))
		}
	}
}

// of returns whether a pattern is one of a name.
func of(name string) func(pattern string) bool {
	return func(pattern string) bool {
		// Names have no backslash, so a slash in a pattern can match as any other character.
		ok, err := path.Match(strings.ReplaceAll(pattern, "/", "|"), strings.ReplaceAll(name, "/", "|"))

		return ok && err == nil
	}
}

// matches returns the value of the first pattern that is one of the name; "" if none is.
func matches(patterns map[string]string, name string) string {
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		if of(name)(pattern) {
			return patterns[pattern]
		}
	}

	return ""
}

// wantHeldAsSaid expects every pattern of what is to be held to name held objects, with the reason.
func (s *suite) wantHeldAsSaid(t *testing.T, w *world) {
	t.Helper()
	if len(w.Expect.Held) == 0 {
		return
	}
	for pattern, code := range w.Expect.Held {
		n := 0
		for name, u := range w.after.live {
			if !of(back(w.scene, name))(pattern) {
				continue
			}
			n++
			if !paused(u) && !onlyObserves(u) || !drill.Held(u) || !strings.Contains(markOf(u), "["+code+"]") {
				t.Errorf("%s\n%s is not held for %s: %v", w.Reason, name, code, u.GetAnnotations())
			}
		}
		if n == 0 {
			t.Errorf("%s\nThere is no %s among %v", w.Reason, pattern, slices.Sorted(maps.Keys(w.after.live)))
		}
	}
}

// wantBystander expects the bystanders to be as they were once each MR was reconciled again. With
// drift they may follow another revision.
func (s *suite) wantBystander(t *testing.T, w *world, since int64, drift bool) {
	t.Helper()
	b := w.theirs
	if b == nil {
		return
	}
	ctx := t.Context()
	must(t, b.scene.AwaitReady(ctx, s.target))
	must(t, b.scene.AwaitReads(ctx, s.target, s.cloud, since))
	err := s.soon(t, func(ctx context.Context) error {
		after, err := b.scene.Picture(ctx, s.target)
		if err != nil {
			return err
		}
		before := b.state.picture
		if drift {
			before, after = withoutRevisions(before), withoutRevisions(after)
		}
		if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("-before, +after:\n%s", diff)
		}

		return nil
	})
	if err != nil {
		t.Errorf("%s\nBystanders: %v", w.Reason, err)
	}
	changes, err := b.scene.Changes(ctx, s.cloud, b.state.ledger.Seq, b.state.ledger.External)
	must(t, err)
	if len(changes) > 0 {
		t.Errorf("%s\nBystanders, in the cloud: %v", w.Reason, changes)
	}
}

// testWorldsValidated expects validate to report just what the cases say, and the damage by Velero
// alone.
func (s *suite) testWorldsValidated(t *testing.T, worlds []*world) {
	must(t, s.soon(t, func(context.Context) error {
		v, r := s.judge(t)
		if r.stderr != "" {
			return fmt.Errorf("validate wrote %s", r.stderr)
		}

		return misreported(v, worlds)
	}))
}

// misreported returns which problems validate reports beyond those of the cases, and which it does not.
func misreported(v validation, worlds []*world) error {
	var errs []error
	reported := map[string]bool{}
	for _, p := range v.Problems {
		at := strings.TrimPrefix(strings.TrimPrefix(p.Object.Namespace+"/"+p.Object.Name, "/"), "others-")
		if strings.Contains(at, "alone-") {
			continue
		}
		i := -1
		for j, w := range worlds { // The longest name, since one can begin with another.
			if strings.HasPrefix(strings.TrimPrefix(at, "/"), w.Name) && (i < 0 || len(w.Name) > len(worlds[i].Name)) {
				i = j
			}
		}
		if i < 0 || !slices.Contains(worlds[i].Expect.Reports, p.Code) {
			errs = append(errs, fmt.Errorf("validate reports a problem that does not exist: %+v", p))

			continue
		}
		reported[worlds[i].Name+" "+p.Code] = true
	}
	for _, w := range worlds {
		for _, code := range w.Expect.Reports {
			if !reported[w.Name+" "+code] {
				errs = append(errs, fmt.Errorf("%s\nvalidate does not report %s of case %s", w.Reason, code, w.Name))
			}
		}
	}

	return errors.Join(errs...)
}

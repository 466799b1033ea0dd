package backupitem

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inputs adds the Secrets that an MR's provider reads, if the setting credentials asks for them. A
// setting is needed since a user who can create a cluster-scoped MR or a ProviderConfig can name
// any Secret. Otherwise it warns of those that are not in the backup. A provider that generates a
// password without a Secret changes that of a live database (upjet pkg/controller/handler, and the
// initializer PasswordGenerator of its providers). It records which of them exist, so that a
// restore waits for these.
func (t *Tree) inputs(ctx context.Context, f *found, backup *velerov1.Backup) {
	refs := xp.InputSecrets(f.of)
	if xp.IsWorkspace(f.of) {
		if r, ok := xp.WorkspaceSecret(f.of, t.resolver.configOf(ctx, f, f.of)); ok {
			refs = append(refs, r)
		}
	}
	if len(refs) == 0 {
		return
	}
	settings, err := t.settings(backup)
	if err != nil {
		t.settingsWarning.Do(func() {
			f.notes = append(f.notes, unknownSetting(f.of, "the setting "+setting.NameCredentials, err,
				"The backup lacks the Secrets that MRs name in other namespaces"))
		})
	}
	for _, r := range refs {
		t.inputAt(ctx, f, r, settings.Credentials, backup)
	}
}

// inputAt is inputs for one Secret. If the Secret with the state of a tool does not exist, that is in
// another cluster.
func (t *Tree) inputAt(ctx context.Context, f *found, r xp.Ref, credentials bool, backup *velerov1.Backup) {
	item := secretItem(r)
	s, err := t.resolver.input(ctx, f, r)
	stored := included(backup, r.Namespace) && t.resolver.finds(ctx, s, item, backup)
	comes := stored && !selective(backup)
	switch {
	case s == nil && xp.IsStateSecret(r.Name):
	case credentials && err == nil && !isInOtherNamespace(f.of, r):
		f.takeInput(r, s)
		if !comes && xp.IsReleaseSecret(r.Name) {
			t.resolver.takeRevisions(ctx, f)
		}
	case !stored && t.resolver.isFirst(item):
		f.skip(f.of, r, reason.InputMissing.Messagef("%s", missingInputText(f.of, r, backup)))
	}
	if err == nil {
		f.inputs = append(f.inputs, xp.Input{Ref: r, Exists: s != nil, Stored: s != nil && comes && !isExcluded(s)})
	}
}

// takeInput takes a Secret that an MR's provider reads, or says that there is none.
func (f *found) takeInput(r xp.Ref, s *unstructured.Unstructured) {
	if s == nil {
		f.skip(f.of, r, reason.InputMissing.Messagef("it does not exist"))
	} else {
		f.takeSecret(f.of, r, s)
	}
}

func secretItem(r xp.Ref) xp.Item {
	return xp.Item{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: r.Namespace, Name: r.Name}
}

// isInOtherNamespace reports whether a namespaced MR names a Secret in another namespace, which
// only a Helm Release and a Terraform Workspace do. Nothing in the Secret shows which of these
// manages it, and a user can name any.
func isInOtherNamespace(mr *unstructured.Unstructured, r xp.Ref) bool {
	return mr.GetNamespace() != "" && mr.GetNamespace() != r.Namespace
}

// missingInputText returns what happens if a backup lacks a Secret that an MR's provider reads, and
// the next step.
func missingInputText(mr *unstructured.Unstructured, r xp.Ref, backup *velerov1.Backup) string {
	next := ". Add " + r.Namespace + " to --include-namespaces"
	if included(backup, r.Namespace) {
		next = ". Have the filters of the backup include it"
	}
	state, ok := xp.StateIn(r.Name)
	without := state.Keeper + " keeps its " + state.What + " there, and without it " + state.Again
	switch {
	case !ok:
		return "its provider reads it, and without it fails, or generates another password than the one in use" + next + ", or set " +
			setting.NameCredentials + " to include"
	case isInOtherNamespace(mr, r):
		return without + next
	default:
		return without + next + ", or set " + setting.NameCredentials + " to include"
	}
}

// takeRevisions adds the Secrets of a Helm release's older revisions.
func (res *Resolver) takeRevisions(ctx context.Context, f *found) {
	for _, older := range xp.RevisionSecrets(f.of) {
		if s, err := res.input(ctx, f, older); err == nil && s != nil && leavesOut(s).IsZero() {
			f.takeSecret(f.of, older, s)
		}
	}
}

// maxNamespaceLists is how many namespaces have a list of their own for Secrets that providers
// read. The others share a list of all namespaces.
const maxNamespaceLists = 16

// input returns a Secret that an MR's provider reads, nil if there is none. It lists a namespace's
// Secrets once, since each MR can name another, and reads none singly.
func (res *Resolver) input(ctx context.Context, f *found, r xp.Ref) (*unstructured.Unstructured, error) {
	in := r.Namespace
	res.mu.Lock()
	if len(res.inputsIn) < maxNamespaceLists {
		res.inputsIn[in] = true
	}
	if !res.inputsIn[in] {
		in = ""
	}
	res.mu.Unlock()
	s, err := res.findInList(ctx, r, in, metav1.ListOptions{})
	if err != nil {
		f.addUnreadable(r, err)
	}

	return s, err
}

// noteInputs writes what is known of the Secrets that an MR's provider reads onto the stored copy.
// The items that passed the filters are in the backup, whatever their labels.
func (f *found) noteInputs(u *unstructured.Unstructured) {
	taken := sets.New(f.items...)
	for n, in := range f.inputs {
		item := secretItem(in.Ref)
		f.inputs[n].Stored = in.Stored || f.published[item] && taken.Has(item)
	}
	xp.SetInputs(u, f.inputs)
}

// selective reports whether a backup selects by labels.
func selective(backup *velerov1.Backup) bool {
	return backup.Spec.LabelSelector != nil || len(backup.Spec.OrLabelSelectors) > 0
}

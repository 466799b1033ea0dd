package backupitem

import (
	"context"
	"slices"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inputs adds the Secrets that an MR has its provider read, if the settings ask for credentials:
// who can have a cluster-scoped MR made can name any Secret, as who makes a ProviderConfig can.
// Else it warns of those that the backup does not have: a provider that is to make a password where
// there is no Secret changes that of a database that is there (upjet pkg/controller/handler, and
// the initializer PasswordGenerator of its providers). It takes note of which there are, for a
// restore to wait for these.
func (t *Tree) inputs(ctx context.Context, f *found, backup *velerov1.Backup) {
	refs := xp.InputSecrets(f.of)
	if len(refs) == 0 {
		return
	}
	settings, err := t.settings(backup)
	if err != nil {
		t.unsettled.Do(func() {
			f.unknown = append(f.unknown, gap{
				of: xp.RefTo(f.of), what: "the setting " + setting.NameCredentials,
				why: err.Error() + ". Managed resources are stored without the Secrets that they name in other namespaces, which is what there is without the setting. " +
					"Correct the settings, then back up again",
			})
		})
	}
	for _, r := range refs {
		t.inputAt(ctx, f, r, settings.Credentials, backup)
	}
}

// inputAt is inputs for one Secret. What there is none of and Helm would keep a release in is in
// another cluster.
func (t *Tree) inputAt(ctx context.Context, f *found, r xp.Ref, credentials bool, backup *velerov1.Backup) {
	item := secretItem(r)
	s, err := t.resolver.input(ctx, f, r)
	stored := included(backup, r.Namespace) && !t.resolver.filteredOut(ctx, f, item, backup)
	comes := stored && !selective(backup)
	switch {
	case s == nil && xp.IsReleaseSecret(r.Name):
	case credentials && err == nil && !isInOtherNamespace(f.of, r):
		f.takeInput(r, s, item)
		if !comes && xp.IsReleaseSecret(r.Name) {
			t.resolver.takeRevisions(ctx, f)
		}
	case !stored && t.resolver.isFirst(item):
		f.skip(f.of, r, missingInputText(f.of, r))
	}
	if err == nil {
		f.inputs = append(f.inputs, xp.Input{Ref: r, Exists: s != nil, Stored: s != nil && comes && !isExcluded(s)})
	}
}

func secretItem(r xp.Ref) xp.Item {
	return xp.Item{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: r.Namespace, Name: r.Name}
}

// isInOtherNamespace reports whether a Secret is in another namespace than an MR that is in one, as
// only those are that Helm keeps releases in. Such a Secret says nothing of who manages the
// release, and whoever makes a Release can name any.
func isInOtherNamespace(mr *unstructured.Unstructured, r xp.Ref) bool {
	return mr.GetNamespace() != "" && mr.GetNamespace() != r.Namespace
}

// missingInputText is what comes of it that a backup does not have a Secret that the provider of an
// MR reads, and what to do.
func missingInputText(mr *unstructured.Unstructured, r xp.Ref) string {
	switch {
	case !xp.IsReleaseSecret(r.Name):
		return "its provider reads that and the backup does not have it: restored without it, the provider fails, or makes another password than the one that " +
			"is in use; add " + r.Namespace + " to --include-namespaces, or set " + setting.NameCredentials + " to include"
	case isInOtherNamespace(mr, r):
		return installedAgain + "; add " + r.Namespace + " to --include-namespaces"
	default:
		return installedAgain + "; add " + r.Namespace + " to --include-namespaces, or set " + setting.NameCredentials + " to include"
	}
}

// installedAgain is what comes of it that a backup does not have what Helm keeps of a release.
const installedAgain = "Helm keeps its release there and the backup does not have it: restored without it, " + xp.InstalledAgain

// takeRevisions adds what Helm keeps of a release beside its newest revision.
func (res *Resolver) takeRevisions(ctx context.Context, f *found) {
	for _, older := range xp.RevisionSecrets(f.of) {
		if s, err := res.input(ctx, f, older); err == nil && s != nil && leavesOut(s) == "" {
			f.takeInput(older, s, secretItem(older))
		}
	}
}

// maxNamespaceLists is in how many namespaces Secrets that MRs have their providers read are listed
// one after the other. What is in others is listed at once.
const maxNamespaceLists = 16

// input returns a Secret that an MR has its provider read, nil if there is none. The Secrets of a
// namespace are listed once, since each MR can have one of its own, and what is not among them is
// not asked for.
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

// takeInput adds a Secret that an MR has its provider read; s is nil if there is none.
func (f *found) takeInput(r xp.Ref, s *unstructured.Unstructured, item xp.Item) {
	switch {
	case s == nil:
		f.skip(f.of, r, "it does not exist")
	case leavesOut(s) != "":
		f.skip(f.of, r, leavesOut(s))
	default:
		f.items = append(f.items, item)
		f.published[item] = true
	}
}

// noteInputs writes what is known of the Secrets that an MR has its provider read onto the copy
// that is stored. What the filters have left of the items is in the backup, whatever its labels.
func (f *found) noteInputs(u *unstructured.Unstructured) {
	for n, in := range f.inputs {
		item := secretItem(in.Ref)
		f.inputs[n].Stored = in.Stored || f.published[item] && slices.Contains(f.items, item)
	}
	xp.SetInputs(u, f.inputs)
}

// selective reports whether a backup takes only what has some labels.
func selective(backup *velerov1.Backup) bool {
	return backup.Spec.LabelSelector != nil || len(backup.Spec.OrLabelSelectors) > 0
}

package backupitem

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// inputs adds the Secrets that a cluster-scoped MR has its provider read, if the settings ask for credentials: who can have an MR made can name any Secret, as
// who makes a ProviderConfig can. Else it warns of those that the backup does not have: a provider that is to make a password where there is no Secret
// changes that of a database that is there (upjet pkg/controller/handler, and the initializer PasswordGenerator of its providers).
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
		item := xp.Item{GroupResource: schema.GroupResource{Resource: "secrets"}, Namespace: r.Namespace, Name: r.Name}
		switch {
		case settings.Credentials:
			t.links.input(ctx, f, r, item)
		case (!included(backup, r.Namespace) || t.links.filteredOut(ctx, f, item, backup)) && t.links.isFirst(item):
			f.skip(f.of, r, "its provider reads that and the backup does not have it: restored without it, the provider fails, or makes another password than the one "+
				"that is in use; add "+r.Namespace+" to --include-namespaces, or set "+setting.NameCredentials+" to include")
		}
	}
}

// input adds a Secret that an MR has its provider read. The Secrets of a namespace are read at once, since each MR can have one of its own.
func (l *Links) input(ctx context.Context, f *found, r xp.Ref, item xp.Item) {
	s, err := l.listed(ctx, r, metav1.ListOptions{})
	switch {
	case err != nil:
		f.lose(r, err)
	case s == nil:
		f.skip(f.of, r, "it does not exist")
	case leavesOut(s) != "":
		f.skip(f.of, r, leavesOut(s))
	default:
		f.items = append(f.items, item)
		f.published[item] = true
	}
}

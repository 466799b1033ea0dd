package backupitem

import (
	"context"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// ofComposite finds what an XR composes, what it runs on, its claim and its connection secret.
func (l *Links) ofComposite(ctx context.Context, f *found, xr xp.Composite) error {
	if err := l.platform(ctx, f, xr); err != nil {
		return err
	}
	f.before = append(f.before, f.shared...)

	composed, err := l.composed(ctx, f, xr)
	if err != nil {
		return err
	}
	f.composed = composed
	if _, err := xr.ResourceRefs(); err != nil {
		f.unknown = append(f.unknown, gap{
			of: xp.RefTo(xr.Unstructured), what: "its resourceRefs",
			why: err.Error() + "; it is stored as it is, without what it composes, and a restore refuses it. Have its spec list references again, then back up again",
		})
	}
	for _, u := range composed {
		item, err := l.item(u)
		if err != nil {
			return err
		}
		f.items = append(f.items, item)
	}
	if err := l.claim(ctx, f, xr); err != nil {
		return err
	}
	l.leftovers(ctx, f, xr)

	return l.secret(ctx, f, xr.Unstructured)
}

// platform adds the CompositionRevision, Composition and XRD, of which each says itself that it is for this kind of XR.
func (l *Links) platform(ctx context.Context, f *found, xr xp.Composite) error {
	const version = xp.GroupAPIExtensions + "/v1"
	for _, p := range []struct {
		ref  xp.Ref
		item xp.Item
	}{
		{xp.Ref{APIVersion: version, Kind: "CompositionRevision", Name: xr.Revision()}, xp.Item{GroupResource: xp.ResourceRevision, Name: xr.Revision()}},
		{xp.Ref{APIVersion: version, Kind: "Composition", Name: xr.Composition()}, xp.Item{GroupResource: xp.ResourceComposition, Name: xr.Composition()}},
	} {
		if p.ref.Name == "" {
			continue
		}
		u, err := l.get(ctx, p.ref)
		if err != nil {
			return err
		}
		switch {
		case u == nil:
			f.skip(xr.Unstructured, p.ref, "it does not exist")
		case !xp.Composes(u, xr):
			f.skip(xr.Unstructured, p.ref, "it is for another kind of XR")
		default:
			f.shared = append(f.shared, p.item)
		}
	}
	gvr, _, err := l.reader.Resource(xr.GroupVersionKind())
	if err != nil {
		return err
	}
	xrd := xp.Ref{APIVersion: version, Kind: "CompositeResourceDefinition", Name: gvr.GroupResource().String()}
	u, err := l.get(ctx, xrd)
	if err != nil {
		return err
	}
	if u == nil {
		f.skip(xr.Unstructured, xrd, "it does not exist, so a restore has nothing that reconciles the XR")

		return nil
	}
	f.shared = append(f.shared, xp.Item{GroupResource: xp.ResourceXRD, Name: xrd.Name})

	return nil
}

// composed returns what the XR references and controls. What it references and does not find, or what another owner controls, was no part of it
// when it was backed up either, and is remembered as dangling. Refs that can't be read lead nowhere: the XR itself would be missing in the backup otherwise.
func (l *Links) composed(ctx context.Context, f *found, xr xp.Composite) ([]*unstructured.Unstructured, error) {
	refs, err := xr.ResourceRefs()
	if err != nil {
		return nil, nil //nolint:nilerr // The XR's own backup warns of it.
	}
	options := metav1.ListOptions{LabelSelector: xp.LabelComposite}
	if claim, ok := xr.ClaimRef(); ok {
		options.LabelSelector = labels.Set{xp.LabelClaimNamespace: claim.Namespace}.String()
	}
	var composed []*unstructured.Unstructured
	for _, r := range refs {
		u, err := l.listed(ctx, r, options)
		if err != nil {
			return nil, err
		}
		switch {
		case u == nil:
			f.dangling = append(f.dangling, r)
			f.skip(xr.Unstructured, r, "it does not exist")
		case u.GetDeletionTimestamp() != nil:
			f.dangling = append(f.dangling, r)
			f.skip(xr.Unstructured, r, "it is being deleted, so Velero does not back it up")
		case u.GetLabels()[velerov1.ExcludeFromBackupLabel] == "true":
			f.skip(xr.Unstructured, r, "its label "+velerov1.ExcludeFromBackupLabel+" keeps it out of backups; a restored XR waits for it")
		case xp.Composed(xr, u):
			composed = append(composed, u)
		default:
			if _, ok := xp.Controller(u); ok {
				f.dangling = append(f.dangling, r)
			}
			f.skip(xr.Unstructured, r, "it is not controlled by this XR")
		}
	}

	return composed, nil
}

func (l *Links) claim(ctx context.Context, f *found, xr xp.Composite) error {
	ref, ok := xr.ClaimRef()
	if !ok {
		return nil
	}
	u, err := l.get(ctx, ref)
	if err != nil {
		return err
	}
	switch {
	case u == nil:
		f.skip(xr.Unstructured, ref, "it does not exist")
	case !xp.Bound(xp.ClaimFrom(u), xr):
		f.skip(xr.Unstructured, ref, "it is bound to another XR")
	default:
		item, err := l.item(u)
		if err != nil {
			return err
		}
		f.items = append(f.items, item)
	}

	return nil
}

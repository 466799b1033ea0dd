package backupitem

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

const (
	// failures is how many reasons are remembered why something could not be read.
	failures = 1024
	// longestName is what an API server takes for a name at most. A longer one would make a path
	// that what is before the API server may refuse.
	longestName = 253
)

// A group is one that could not be asked which kinds it serves.
type group string

// failure returns why what the key stands for (a group, a GroupVersion or a GroupKind) could not be
// read. It is asked for once in a backup, since what does not answer is waited for: thousands of
// objects can have a kind of which the webhook is down.
func (res *Resolver) failure(key any) error {
	err, _ := res.failed.Get(key)
	failed, _ := err.(error)

	return failed
}

// failing takes note of why what the key stands for can't be read.
func (res *Resolver) failing(key any, err error) error {
	res.failed.Add(key, err)

	return err
}

// served returns the version in which a kind is served; ok is false if it is not.
func (res *Resolver) served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error) {
	if err := res.failure(group(gk.Group)); err != nil {
		return gvk, false, err
	}
	if gvk, ok, err = res.reader.Served(gk); err != nil {
		return gvk, false, res.failing(group(gk.Group), err)
	}

	return gvk, ok, nil
}

// resource returns what a kind is called. It fails with an error that meta.IsNoMatchError knows if
// the kind is not served.
func (res *Resolver) resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	if err := res.failure(gvk.GroupVersion()); err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	gvr, namespaced, err := res.reader.Resource(gvk)
	if err != nil && !meta.IsNoMatchError(err) {
		err = res.failing(gvk.GroupVersion(), err)
	}

	return gvr, namespaced, err
}

// A readable kind is one of which there can be objects.
type readable struct {
	schema.GroupVersionKind

	namespaced bool
}

// resolve returns in which version a kind can be read: in that which its group prefers, in which
// Velero reads what it is asked for. If the kind can't be converted to that, Velero fails, and
// leaves the item out that has asked. A kind that is served in none was never asked for by itself,
// since a tenant can name any number of them; ok is false for it.
func (res *Resolver) resolve(gvk schema.GroupVersionKind) (r readable, ok bool, err error) {
	preferred, ok, unknown := res.served(gvk.GroupKind())
	switch {
	case unknown != nil:
		preferred = gvk
	case !ok:
		return readable{}, false, nil
	}
	_, namespaced, err := res.resource(preferred)
	switch {
	case meta.IsNoMatchError(err):
		return readable{}, false, unknown
	case err != nil:
		return readable{}, false, err
	default:
		return readable{GroupVersionKind: preferred, namespaced: namespaced}, true, nil
	}
}

// at returns how the API server names what a reference to an object of the kind names.
func (r readable) at(ref xp.Ref) xp.Ref {
	ref.APIVersion = r.GroupVersion().String()
	if !r.namespaced {
		ref.Namespace = ""
	}

	return ref
}

// each does what a Reader's Each does, and asks no more for a kind that can't be listed.
func (res *Resolver) each(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured),
) error {
	if err := res.failure(gvk.GroupKind()); err != nil {
		return err
	}
	err := res.reader.Each(ctx, gvk, namespace, options, do)
	if err != nil && !isAbsent(err) {
		err = res.failing(gvk.GroupKind(), err)
	}

	return err
}

// fetch does what a Reader's Get does, and asks no more for a kind that can't be read.
func (res *Resolver) fetch(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	gk := r.GroupVersionKind().GroupKind()
	if err := res.failure(gk); err != nil {
		return nil, err
	}
	u, err := res.reader.Get(ctx, r)
	if err != nil && !isAbsent(err) && !isRefused(err) {
		err = res.failing(gk, err)
	}

	return u, err
}

// checkReadable fails if Velero can't read what r names, which exists, by itself: an API server
// lists from memory what it can't convert any more. It is tried once for each kind that a webhook
// converts.
func (res *Resolver) checkReadable(ctx context.Context, r xp.Ref) error {
	gvk := r.GroupVersionKind()
	gk := gvk.GroupKind()
	if err := res.failure(gk); err != nil {
		return err
	}
	if _, tried := res.checkedKinds.Get(gk); tried || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return nil
	}
	res.checkedKinds.Add(gk, true)
	v, err := res.reader.Versions(ctx, gk)
	if err != nil || !v.Converts(gvk.Version) {
		return nil //nolint:nilerr // It is as good as what was listed.
	}
	if _, err := res.reader.Get(ctx, r); xp.IsConversion(err) {
		return res.failing(gk, err)
	}

	return nil
}

// isAbsent reports whether an error says that there is no such object, or no object of the kind at
// all.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsMethodNotSupported(err)
}

// isRefused reports whether the API server does not take a request for what it asks for. That says
// nothing of other objects of the kind: a tenant can write any name.
func isRefused(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

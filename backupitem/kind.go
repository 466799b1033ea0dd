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

// failures is how many reasons for failed reads are kept.
const failures = 1024

// A group is an API group, as a key of what failed.
type group string

// try reads something, unless that failed before for the key: a group, a GroupVersion or a GroupKind.
// A webhook that is down costs a timeout for each of thousands of objects. An error that passes
// does not concern all that has the key.
func (res *Resolver) try(key any, passes func(error) bool, read func() error) error {
	if err := res.failure(key); err != nil {
		return err
	}
	err := read()
	if err != nil && !passes(err) {
		res.failed.Add(key, err)
	}

	return err
}

// failure returns why what has the key could not be read, nil if it could.
func (res *Resolver) failure(key any) error {
	err, _ := res.failed.Get(key)
	failed, _ := err.(error)

	return failed
}

// served returns the version in which a kind is served; ok is false if it is not.
func (res *Resolver) served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error) {
	err = res.try(group(gk.Group), isAbsent, func() (err error) {
		gvk, ok, err = res.reader.Served(gk)

		return err
	})

	return gvk, ok && err == nil, err
}

// resource returns the resource of a kind, and whether it is namespaced. If the kind is not served,
// meta.IsNoMatchError is true of the error.
func (res *Resolver) resource(gvk schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced bool, err error) {
	err = res.try(gvk.GroupVersion(), isAbsent, func() (err error) {
		gvr, namespaced, err = res.reader.Resource(gvk)

		return err
	})

	return gvr, namespaced, err
}

// A readable kind is one that the API server serves.
type readable struct {
	schema.GroupVersionKind

	namespaced bool
}

// resolve returns the version of a kind that its group prefers, in which Velero reads additional
// items. If the kind can't be converted to that, Velero fails and leaves out the item that
// requested it. ok is false if no version is served. Such a kind costs no request of its own, since
// a tenant can name any number of them.
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

// at returns the reference in the version and scope of the kind.
func (r readable) at(ref xp.Ref) xp.Ref {
	ref.APIVersion = r.GroupVersion().String()
	if !r.namespaced {
		ref.Namespace = ""
	}

	return ref
}

// each is a Reader's Each that does not try a kind again that can't be listed.
func (res *Resolver) each(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured),
) error {
	return res.try(gvk.GroupKind(), isAbsent, func() error { return res.reader.Each(ctx, gvk, namespace, options, do) })
}

// fetch is a Reader's Get that does not try a kind again that can't be read.
func (res *Resolver) fetch(ctx context.Context, r xp.Ref) (u *unstructured.Unstructured, err error) {
	err = res.try(r.GroupVersionKind().GroupKind(), concernsOne, func() (err error) {
		u, err = res.reader.Get(ctx, r)

		return err
	})

	return u, err
}

// checkReadable fails if Velero can't read the live object r singly: an API server lists from its
// cache what it can't convert any more. It tries one object of each kind that a webhook converts.
func (res *Resolver) checkReadable(ctx context.Context, r xp.Ref) error {
	gvk := r.GroupVersionKind()
	gk := gvk.GroupKind()
	if err := res.failure(gk); err != nil {
		return err
	}
	if !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) || !res.isFirst(gk) {
		return nil
	}
	v, err := res.reader.Versions(ctx, gk)
	if err != nil || !v.Converts(gvk.Version) {
		return nil //nolint:nilerr // The list is good enough.
	}
	_, err = res.reader.Get(ctx, r)
	if !xp.IsConversion(err) {
		return nil
	}
	res.failed.Add(gk, err)

	return err
}

// isAbsent reports whether an error means that an object or its kind does not exist.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsMethodNotSupported(err)
}

// concernsOne reports whether an error concerns no other object of the kind: a tenant can write any
// name.
func concernsOne(err error) bool {
	return isAbsent(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

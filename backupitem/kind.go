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
	// failures is how many reasons for failed reads are kept.
	failures = 1024
	// longestName is the API server's limit for a name. A proxy may refuse the path of a longer
	// one.
	longestName = 253
)

// A group is an API group, as a key of what failed.
type group string

// failure returns why a group, a GroupVersion or a GroupKind could not be read, nil if it could. A
// backup tries once: a webhook that is down costs a timeout for each of thousands of objects.
func (res *Resolver) failure(key any) error {
	err, _ := res.failed.Get(key)
	failed, _ := err.(error)

	return failed
}

// recordFailure records why what a key stands for can't be read, and returns that.
func (res *Resolver) recordFailure(key any, err error) error {
	res.failed.Add(key, err)

	return err
}

// served returns the version in which a kind is served; ok is false if it is not.
func (res *Resolver) served(gk schema.GroupKind) (gvk schema.GroupVersionKind, ok bool, err error) {
	if err := res.failure(group(gk.Group)); err != nil {
		return gvk, false, err
	}
	if gvk, ok, err = res.reader.Served(gk); err != nil {
		return gvk, false, res.recordFailure(group(gk.Group), err)
	}

	return gvk, ok, nil
}

// resource returns the resource of a kind, and whether it is namespaced. If the kind is not served,
// meta.IsNoMatchError is true of the error.
func (res *Resolver) resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	if err := res.failure(gvk.GroupVersion()); err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	gvr, namespaced, err := res.reader.Resource(gvk)
	if err != nil && !meta.IsNoMatchError(err) {
		err = res.recordFailure(gvk.GroupVersion(), err)
	}

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
	if err := res.failure(gvk.GroupKind()); err != nil {
		return err
	}
	err := res.reader.Each(ctx, gvk, namespace, options, do)
	if err != nil && !isAbsent(err) {
		err = res.recordFailure(gvk.GroupKind(), err)
	}

	return err
}

// fetch is a Reader's Get that does not try a kind again that can't be read.
func (res *Resolver) fetch(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	gk := r.GroupVersionKind().GroupKind()
	if err := res.failure(gk); err != nil {
		return nil, err
	}
	u, err := res.reader.Get(ctx, r)
	if err != nil && !isAbsent(err) && !isRefused(err) {
		err = res.recordFailure(gk, err)
	}

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
	if _, tried := res.checkedKinds.Get(gk); tried || !xp.IsCustomGroup(gk.Group) || xp.IsCrossplaneGroup(gk.Group) {
		return nil
	}
	res.checkedKinds.Add(gk, true)
	v, err := res.reader.Versions(ctx, gk)
	if err != nil || !v.Converts(gvk.Version) {
		return nil //nolint:nilerr // The list is good enough.
	}
	if _, err := res.reader.Get(ctx, r); xp.IsConversion(err) {
		return res.recordFailure(gk, err)
	}

	return nil
}

// isAbsent reports whether an error means that an object or its kind does not exist.
func isAbsent(err error) bool {
	return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || apierrors.IsMethodNotSupported(err)
}

// isRefused reports whether an error concerns the request only, and no other object of the kind: a
// tenant can write any name.
func isRefused(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

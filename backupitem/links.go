package backupitem

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Reader reads the cluster that is backed up. Its errors are ones that apierrors.IsNotFound and meta.IsNoMatchError know.
type Reader interface {
	Get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error)
	Resource(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)
}

// Links finds what belongs to an item. It remembers what it has read for a while: the action for item blocks and the one that backs up
// ask for the same, one right after the other.
type Links struct {
	reader Reader
	read   *lru.Cache
}

// Objects that are remembered. It bounds the memory for a backup of any size.
const remembered = 1024

// NewLinks returns Links that read from the cluster that is backed up.
func NewLinks(reader Reader) *Links {
	return &Links{reader: reader, read: lru.New(remembered)}
}

func (l *Links) of(ctx context.Context, u *unstructured.Unstructured) (*found, error) {
	switch {
	case xp.IsClaim(u):
		return l.ofClaim(ctx, xp.ClaimFrom(u))
	case xp.IsComposite(u):
		return l.ofComposite(ctx, xp.CompositeFrom(u))
	case xp.IsManaged(u):
		f := &found{}

		return f, l.secret(ctx, f, u)
	default:
		return &found{}, nil
	}
}

// get returns nil if the object does not exist, or its kind is not served.
func (l *Links) get(ctx context.Context, r xp.Ref) (*unstructured.Unstructured, error) {
	if u, ok := l.read.Get(r.ID()); ok {
		return u.(*unstructured.Unstructured), nil //nolint:forcetypeassert // Nothing else is put in.
	}
	u, err := l.reader.Get(ctx, r)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil //nolint:nilnil // Not there is an answer.
	}
	if err != nil {
		return nil, err
	}
	l.read.Add(r.ID(), u)

	return u, nil
}

// item returns a live object as Velero names it.
func (l *Links) item(u *unstructured.Unstructured) (xp.Item, error) {
	gvr, _, err := l.reader.Resource(u.GroupVersionKind())
	if err != nil {
		return xp.Item{}, fmt.Errorf("cannot find the resource of %s: %w", xp.String(u), err)
	}

	return xp.Item{GroupResource: gvr.GroupResource(), Namespace: u.GetNamespace(), Name: u.GetName()}, nil
}

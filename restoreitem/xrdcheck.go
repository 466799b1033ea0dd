package restoreitem

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// An XRDReader reads the XRDs of the cluster.
type XRDReader interface {
	// Terminating returns the XRD of the kind of an XR or a claim if that XRD is being deleted,
	// else nil.
	Terminating(ctx context.Context, gk schema.GroupKind) (*unstructured.Unstructured, error)
}

// XRDCheck refuses what must not be created. The controller of an XRD that is being deleted deletes
// all XRs and claims of its kinds, and with an XR what it composes and the external resources. What
// a newer version of this plugin has written can't be read. All actions of a restore share one.
type XRDCheck struct {
	reader XRDReader
	// refused has the reason for each refused XR and claim; what they compose is refused, too.
	refused table[xp.ID, string]
}

// NewXRDCheck returns an XRDCheck that has refused nothing yet.
func NewXRDCheck(reader XRDReader) *XRDCheck { return &XRDCheck{reader: reader} }

// check fails if an item must not be restored to the namespace. A nil XRDCheck accepts everything.
func (x *XRDCheck) check(item *unstructured.Unstructured, namespace string) error {
	if x == nil {
		return nil
	}
	self := xp.RefTo(item)
	self.Namespace = namespace
	if err := x.checkFormats(item, self); err != nil {
		return err
	}
	if xp.IsDefinition(item) {
		return x.checkDefinition(item)
	}
	if xp.IsComposite(item) || xp.IsClaim(item) {
		if err := x.checkKind(self, self.GroupVersionKind().GroupKind()); err != nil {
			return err
		}
	}
	if !xp.IsComposed(item) {
		return nil
	}
	c, ok := xp.Controller(item)
	if !ok {
		return nil
	}
	if err := x.checkKind(self, schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()); err != nil {
		return err
	}
	if why, ok := ofOwner(&x.refused, c, namespace); ok {
		x.refused.put(self.ID(), why)

		return reason.OwnerNotRestored.Errorf("cannot restore %s: its XR %s %s was not restored, so nothing would manage it: %s", self, c.Kind, c.Name, why)
	}

	return nil
}

// checkFormats refuses what a newer version of this plugin has written in an unknown format.
func (x *XRDCheck) checkFormats(item *unstructured.Unstructured, self xp.Ref) error {
	err := xp.CheckFormat(item)
	if _, unread := hold.Of(item); err == nil && errors.Is(unread, hold.ErrNewer) {
		err = unread
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w; %s, and restore it again", err, hold.HowToRead)
	x.refused.put(self.ID(), err.Error())

	return reason.NewerFormat.Errorf("cannot restore %s: %w", self, err)
}

// checkDefinition refuses to overwrite an XRD that is being deleted.
func (x *XRDCheck) checkDefinition(item *unstructured.Unstructured) error {
	for _, kind := range xp.DefinitionKinds(item) {
		xrd, err := x.reader.Terminating(context.Background(), kind)
		if err != nil {
			return apiErrorf("cannot find out whether %s is being deleted: %w", xp.String(item), err)
		}
		if xrd != nil && xrd.GetName() == item.GetName() {
			return reason.XRDTerminating.Errorf("cannot restore %s: %s; then restore again", xp.String(item), xp.XRDTerminating(xrd))
		}
	}

	return nil
}

// checkKind refuses an object if the XRD of the kind is being deleted.
func (x *XRDCheck) checkKind(self xp.Ref, kind schema.GroupKind) error {
	xrd, err := x.reader.Terminating(context.Background(), kind)
	if err != nil {
		return apiErrorf("cannot find out whether the XRD of %s is being deleted: %w", self, err)
	}
	if xrd == nil {
		return nil
	}
	why := xp.XRDTerminating(xrd) + ", and restore again"
	x.refused.put(self.ID(), why)
	if kind != self.GroupVersionKind().GroupKind() {
		return reason.XRDTerminating.Errorf("cannot restore %s, which is composed by an XR of the kind %s: %s", self, kind.Kind, why)
	}

	return reason.XRDTerminating.Errorf("cannot restore %s: %s", self, why)
}

package backupitem

import (
	"context"
	"sync"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A SourceReader reads what a backup notes about the cluster that it is taken in.
type SourceReader interface {
	// UID identifies the cluster.
	UID(ctx context.Context) (string, error)
	// Handovers returns what the command hold holds.
	Handovers(ctx context.Context, velero string) (adoption.Handovers, error)
	// ReadMarkKey returns the key that verifies its marks.
	ReadMarkKey(ctx context.Context, namespace string) (adoption.Key, error)
}

// source is what is read once in a backup.
type source struct {
	reader SourceReader
	once   sync.Once

	uid       string
	handovers adoption.Handovers
	key       adoption.Key
}

// WithSource makes the action note on stored copies which cluster they are from, and whether that
// was quiet for a handover.
func (t *Tree) WithSource(reader SourceReader) *Tree {
	t.source = &source{reader: reader}

	return t
}

// read reads the source once. Without an answer the notes lack what is not known.
func (s *source) read(ctx context.Context, velero string, log logrus.FieldLogger) {
	s.once.Do(func() {
		unread := func(code reason.Code, what string, err error) {
			gap{of: xp.Ref{Kind: "Backup"}, what: what, isLoss: true, why: code.Messagef("%s can't be read: %v. If a handover is under way, another cluster "+
				"can't rely on this backup. When the API server answers, back up again", what, err)}.log(log)
		}
		var err error
		if s.uid, err = s.reader.UID(ctx); err != nil {
			unread(reason.RelatedNotRead, "which cluster it is from", err)
		}
		if s.handovers, err = s.reader.Handovers(ctx, velero); err != nil {
			unread(reason.RelatedNotRead, "whether there is a handover", err)
		}
		if len(s.handovers) == 0 {
			return
		}
		if s.key, err = s.reader.ReadMarkKey(ctx, velero); err != nil {
			s.key = make(adoption.Key, adoption.KeySize) // No mark has this signature, so nothing counts as quiet.
			unread(reason.MarkKeyMissing, "whether the source is quiet", err)
		}
	})
}

// noteSource notes on the stored copy which cluster it is from. It warns of an object in the scope
// of a handover that something in this cluster can still write for.
func (t *Tree) noteSource(ctx context.Context, u *unstructured.Unstructured, backup *velerov1.Backup) {
	isUntouched := xp.IsUntouched(u) && xp.IsComposed(u) // Its provider will create its external resource.
	if t.source == nil || !isUntouched && !xp.IsClaim(u) && !xp.IsComposite(u) && !xp.IsManaged(u) {
		return
	}
	t.source.read(ctx, backup.Namespace, t.log)
	note, why := xp.Source{Cluster: t.source.uid}, reason.Message{}
	if h, ok := t.source.handovers.Of(u); ok {
		note.Handover, why = h.Since, t.source.key.WhyNotQuiet(u)
	} else if h, err := adoption.HoldOf(u); err == nil && h != nil && h.IsHandover() {
		note.Handover = h.Since
		why = reason.NotHandedOver.Messagef("the command hold holds it, but the record of that handover is lost or can't be read; run hold again")
	}
	if !why.IsZero() {
		note.Busy = string(why.Code)
		m := reason.NotHandedOver.Messagef("%s is in the scope of a handover and not quiet, so a restore in another cluster refuses it: %s", xp.String(u), why.Text)
		warn(t.log, logrus.Fields{"object": xp.String(u), "cause": why.Text}, m)
	}
	xp.SetSource(u, note)
}

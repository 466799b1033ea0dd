package adoption

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Standby is a live object in quarantine that a newer backup can refresh: nothing in this cluster
// reconciles it.
type Standby struct {
	UID types.UID
	// Version is its resourceVersion.
	Version string
	// Restore, Schedule and Content are those of its hold. Content is "" if the object lacks a part of
	// that.
	Restore, Schedule, Content string
	// Handover is true if the command hold holds it.
	Handover bool
	// ChangedBy is another writer that has changed it since; "" for none.
	ChangedBy string
}

// A Refresh is what a newer backup brings for an object in quarantine.
type Refresh struct {
	// Object is what the restore would create, in its namespace, with a signed mark.
	Object *unstructured.Unstructured
	// Labels are those that Velero writes on what it creates.
	Labels map[string]string
	// Status are the fields of the status to bring back.
	Status map[string]any
	// Content identifies what the backup brings.
	Content string
}

// StandbyOf returns u as an object that a newer backup can refresh. ok is false if it is none: it
// is not in quarantine, is a copy, or is being deleted, or its mark has another key.
func (k Key) StandbyOf(u *unstructured.Unstructured) (s Standby, ok bool) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil || !h.Quarantine || h.Clone != "" || u.GetDeletionTimestamp() != nil || !xp.IsPaused(u) {
		return Standby{}, false
	}

	content := h.Content
	if len(xp.MissingStatus(u, h.Status)) > 0 {
		content = "" // Velero was stopped between its creation and the write of its status.
	}

	return Standby{
		UID: u.GetUID(), Version: u.GetResourceVersion(), Restore: h.Restore, Schedule: h.Schedule, Content: content, Handover: h.Handover,
		ChangedBy: h.changedBy(u),
	}, true
}

// IsPromoted reports whether a user has ended the quarantine of u, which a restore of the schedule
// brought, and it is held until it is adopted.
func (k Key) IsPromoted(u *unstructured.Unstructured, schedule string) bool {
	h, err := k.HoldOf(u)

	return err == nil && h != nil && !h.Quarantine && h.Schedule != "" && h.Schedule == schedule
}

// changedBy returns the first writer, besides this plugin and Velero, that has changed u since it
// was restored, as managedFields name it; "" if there is none. The entries of the backup are known
// by their times, since the clocks of two clusters differ. The status does not count: the
// controllers report there that u is paused.
func (h *Hold) changedBy(u *unstructured.Unstructured) string {
	known := unpackManagers(h.Fields)
	for _, m := range entriesOf(u) {
		manager, _ := m["manager"].(string)
		if s, _ := m["subresource"].(string); s != "" || manager == FieldManager || manager == managerVelero {
			continue
		}
		isKnown := func(k map[string]any) bool { return isSame(k, m) && k["time"] == m["time"] }
		written, _ := m["time"].(string)
		if known == nil && parseTime(written).Before(parseTime(h.Since)) || slices.ContainsFunc(known, isKnown) {
			continue
		}

		return manager
	}

	return ""
}

// Digest identifies the content of values that can be encoded as JSON.
func Digest(values ...any) (string, error) {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(values); err != nil {
		return "", fmt.Errorf("cannot encode the content: %w", err)
	}

	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// WithoutContent returns a copy of an object to refresh whose mark does not identify the content.
func (k Key) WithoutContent(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	h, err := k.HoldOf(u)
	if err != nil || h == nil {
		return nil, fmt.Errorf("cannot read the mark of %s: %w", xp.String(u), err)
	}
	h.Content = ""
	mark, err := k.mark(xp.RefTo(u), h)
	if err != nil {
		return nil, err
	}
	without := u.DeepCopy()
	xp.Annotate(without, AnnotationHold, mark)

	return without, nil
}

// Refreshed returns the last patch of a refresh: the mark of the item, and its field managers,
// besides those of subresources.
func Refreshed(after, item *unstructured.Unstructured) map[string]any {
	var entries, own []map[string]any
	for _, m := range entriesOf(item) {
		if s, _ := m["subresource"].(string); s == "" {
			own = append(own, m)
		}
	}
	for _, m := range entriesOf(after) {
		if s, _ := m["subresource"].(string); s != "" || len(own) == 0 {
			entries = append(entries, m)
		}
	}
	p := managersPatch(after, append(entries, own...))
	set(p, xp.Annotation(item, AnnotationHold), "metadata", "annotations", AnnotationHold)

	return p
}

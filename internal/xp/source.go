package xp

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// A Source is what a backup notes on the stored copy of a claim, an XR or an MR about the cluster
// that it was taken in.
type Source struct {
	// Cluster is the UID of the namespace kube-system; "" if it could not be read.
	Cluster string
	// Handover is when the command hold began to hold the scope of the object, in RFC 3339; "" if
	// the object was not to be held.
	Handover string
	// Busy is the code of the reason why something in that cluster could still write to the
	// external resource; "" if nothing could.
	Busy string
}

// SetSource notes s on the backup's copy of u. A zero s removes the note.
func SetSource(u *unstructured.Unstructured, s Source) {
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return // Every object that Velero backs up has metadata.
	}
	note := map[string]any{}
	for name, value := range map[string]string{"cluster": s.Cluster, "handover": s.Handover, "busy": s.Busy} {
		if value != "" {
			note[name] = value
		}
	}
	if len(note) == 0 {
		delete(metadata, FieldSource)

		return
	}
	metadata[FieldSource] = note
}

// SourceOf reads the note of SetSource; the zero value if there is none.
func SourceOf(u *unstructured.Unstructured) Source {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", FieldSource)
	note, _ := v.(map[string]any)
	text := func(name string) string {
		value, _ := note[name].(string)

		return value
	}

	return Source{Cluster: text("cluster"), Handover: text("handover"), Busy: text("busy")}
}

package hold

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A Hold is the content of the mark on a held object. An XR or a claim is paused and pinned to its
// CompositionRevision from its creation on. Times are in RFC 3339.
type Hold struct {
	// Format is the format of the mark (docs/dev/architecture.md); 0 means 1.
	Format int `json:"format,omitempty"`
	// Of is the object that the mark is on, as Kind.group/name; "" in early marks. A function can
	// copy all annotations of an XR to its composed resources.
	Of string `json:"of,omitempty"`
	// Restore is the Velero Restore that put the hold on, as namespace/name, and Since the time.
	Restore string `json:"restore"`
	Since   string `json:"since"`
	// Reason is why the hold is on, and the next step.
	Reason string `json:"reason"`
	// LastReported identifies the latest report, in an Event and the Reason, as internal/adoption
	// writes it; ReportedStart if there was only the first, and "" if there was none.
	LastReported string `json:"lastReported,omitempty"`
	// Polled is when the first poll wrote the mark. Velero polls a restore's operations when all
	// items are restored.
	Polled string `json:"polled,omitempty"`
	// Paused is the user's own value of crossplane.io/paused; nil if there was none.
	Paused *string `json:"paused,omitempty"`
	// Pinned means that the hold set the composition update policy to Manual. UpdatePolicy is the
	// policy before that; nil if there was none.
	Pinned       bool    `json:"pinned,omitempty"`
	UpdatePolicy *string `json:"compositionUpdatePolicy,omitempty"`
	// Composition and Revision are the names that the object referenced in the backup; "" for none.
	Composition string `json:"composition,omitempty"`
	Revision    string `json:"revision,omitempty"`
	// Unpaused is when the pause was removed for the adoption; "" before that.
	Unpaused string `json:"unpaused,omitempty"`
	// Clone is the live original that the object is a copy of; "" for none. Both would manage the
	// same external resources, so a user decides.
	Clone string `json:"cloneOf,omitempty"`
	// Quarantine means that nothing is done until a user ends the quarantine.
	Quarantine bool `json:"quarantine,omitempty"`
	// ByHand means that a user releases the object when it waits for nothing else.
	ByHand bool `json:"releaseByHand,omitempty"`
	// ByCommand means that the command hold put the hold on a live object. There is no Restore.
	ByCommand bool `json:"byCommand,omitempty"`
	// Refs are the XR's composed resources in the backup. A claim has none.
	Refs []xp.Ref `json:"resourceRefs,omitempty"`
	// ComposedConditions are the conditions that each of Refs had then; empty if not in the backup.
	ComposedConditions []xp.TrueConditions `json:"composedConditions,omitempty"`
	// Composed is Refs and ComposedConditions, packed, if an XR composes many. Key.HoldOf unpacks it,
	// Of does not.
	Composed string `json:"composed,omitempty"`
	// Environments are the EnvironmentConfigs of the backup that the XR's pipeline names.
	Environments []string `json:"environmentConfigs,omitempty"`
	// Required is what the XR's CompositionRevision requires in the backup, from xp.Required.
	Required []string `json:"required,omitempty"`
	// Failing is why Crossplane could not reconcile the XR then, from FailingOf; "" if it could.
	Failing string `json:"failing,omitempty"`
	// Identity is why an MR must not be left to create an external resource; "" if it may.
	Identity xp.Identity `json:"identity,omitempty"`
	// Reported is what the provider of an MR had noted before the hold; nil if not known.
	Reported *Reported `json:"reported,omitempty"`
	// Observes means that the hold made an MR observe only. Policies are the managementPolicies
	// before that; empty if there were none.
	Observes bool     `json:"observes,omitempty"`
	Policies []string `json:"managementPolicies,omitempty"`
	// Settling is when this plugin noted that the provider of an observing MR found its external
	// resource or, with Lost, no longer finds it; "" before that.
	Settling string `json:"settling,omitempty"`
	Lost     bool   `json:"lost,omitempty"`
	// Secret means that the backup has the connection secret of an XR or MR. SecretBy is the command
	// that restores it, if the restore leaves it out. SecretWas is its name in the backup, if another.
	Secret    bool   `json:"secret,omitempty"`
	SecretBy  string `json:"secretBy,omitempty"`
	SecretWas string `json:"secretWas,omitempty"`
	// FromUID are the fields that a Composition has made from a UID; nil if there are none.
	FromUID *FromUID `json:"fromUID,omitempty"`
	// Inputs are the Secrets that the provider of an MR reads, that existed at the backup and were
	// missing at the restore.
	Inputs []Input `json:"inputs,omitempty"`
	// Owner is the XR that composed an MR, if the XR was live and not paused when the MR was
	// restored. Whether it still does shows when Crossplane makes it the controller.
	Owner *xp.Ref `json:"owner,omitempty"`
	// Status are the status fields that Velero was asked to restore. RestoreStatus is the user's
	// own value of the annotation that asks for it; nil if there was none.
	Status        []string `json:"status,omitempty"`
	RestoreStatus *string  `json:"restoreStatus,omitempty"`
	// Again means that the hold was put on again after another writer had removed it. Refs are then
	// what the XR listed at that time.
	Again bool `json:"again,omitempty"`
	// TakenOver means that another writer had created the XR, and it was given its Refs. Crossplane
	// can still write others until it has seen the pause.
	TakenOver bool `json:"takenOver,omitempty"`
	// Freed means that the object has its own settings back and can be reconciled, so only the mark
	// is left. Managers are the managers of these settings until then, from managersOf.
	Freed    bool             `json:"freed,omitempty"`
	Managers []map[string]any `json:"managers,omitempty"`
	// Fields are the managedFields of the backup, from packManagers.
	Fields string `json:"managedFields,omitempty"`
}

// ReportedStart is Hold.LastReported if only the start of the hold was reported.
const ReportedStart = "arrived"

// IsMarked reports whether u is an MR with a mark, readable or not.
func IsMarked(u *unstructured.Unstructured) bool {
	return xp.HasAnnotation(u, Annotation) && xp.IsManaged(u)
}

// OwnPause reports whether a user had paused the held object.
func (h *Hold) OwnPause() bool { return h.Paused != nil && *h.Paused == "true" }

// IsByCommand reports whether the command hold holds the object, and no user has ended that.
func (h *Hold) IsByCommand() bool { return h.ByCommand && h.Quarantine }

// By returns what put the hold on, for a message.
func (h *Hold) By() string {
	switch {
	case h.ByCommand:
		return "the command hold"
	case h.Restore == "":
		return "an unknown Restore"
	default:
		return "the Restore " + h.Restore
	}
}

// OwnPolicies returns the user's own managementPolicies, in JSON.
func (h *Hold) OwnPolicies() string {
	if len(h.Policies) == 0 {
		return `["*"]`
	}

	return `["` + strings.Join(h.Policies, `","`) + `"]`
}

// Settings returns the user's own settings that come back when a hold is lifted.
func Settings(h *Hold) []string {
	var settings []string
	if h.Paused != nil {
		settings = append(settings, xp.AnnotationPaused+": "+*h.Paused)
	}
	if h.Pinned {
		policy := "not set, which means Automatic"
		if h.UpdatePolicy != nil {
			policy = *h.UpdatePolicy
		}
		settings = append(settings, "compositionUpdatePolicy: "+policy)
	}
	if h.Observes {
		policies := h.OwnPolicies()
		if len(h.Policies) == 0 {
			policies = "not set, which means " + policies
		}
		settings = append(settings, "managementPolicies: "+policies)
	}

	return settings
}

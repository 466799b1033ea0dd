// Package setting defines the plugin's settings and parses them: those of a cluster from a
// ConfigMap, and those of a Backup or Restore from its annotations, which win. It has no client;
// any package may import it. Start reading at Definitions: a new setting is added there and in
// Settings.
package setting

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Prefix is that of settings in annotations. Keys in the ConfigMap have none.
const Prefix = "velero.crossplane.io/"

// DefaultKindTimeout is the default of KindTimeout. A new kind is served a second or two after its
// XRD. A provider that starts can need most of a minute to answer.
const DefaultKindTimeout = time.Minute

// A Clone is how a restore treats a copy of an object that is alive in the same cluster. Both would
// manage the same external resources.
type Clone string

// Values of Clone.
const (
	// Hold restores the copy paused.
	Hold Clone = "hold"
	// Observe restores MRs that only observe, and holds the XRs.
	Observe Clone = "observe"
	// New restores XRs and claims without their composed resources, so that Crossplane creates new
	// ones.
	New Clone = "new"
)

// A Holding is what a restore holds besides the objects that it adopts.
type Holding string

// Values of Holding.
const (
	// HoldUnsafe holds MRs whose external resource is not known for certain.
	HoldUnsafe Holding = "unsafe"
	// HoldAll is a quarantine: everything stays held until a user releases it.
	HoldAll Holding = "all"
	// HoldNone holds nothing else.
	HoldNone Holding = "none"
)

// An Observing selects the MRs that may only observe at first after a restore.
type Observing int

// Values of Observing.
const (
	// ObserveUpjet selects the MRs that upjet could create a second time despite their
	// external-name.
	ObserveUpjet Observing = iota
	// ObserveAll selects all MRs.
	ObserveAll
	// ObserveNone selects no MRs.
	ObserveNone
)

// Settings are the settings of one Backup or Restore.
type Settings struct {
	Clone Clone
	Hold  Holding
	// Credentials makes a backup include the Secrets that ProviderConfigs or MRs name.
	Credentials bool
	// ObserveFirst selects the MRs that only observe until their provider has found their external
	// resource.
	ObserveFirst Observing
	// FromID are the kinds of MRs whose external-name equals their status.atProvider.id. NotFromID
	// are kinds for which the built-in list must not be used. NoneKnown turns off that list.
	FromID, NotFromID []schema.GroupKind
	NoneKnown         bool
	// Unnamed are the kinds of MRs that never have an external-name: their provider needs none.
	Unnamed []schema.GroupKind
	// AdoptionTimeout is how long an operation waits for the adoption of its XR; 0 for no limit.
	AdoptionTimeout time.Duration
	// KindTimeout is how long a restore waits for a kind to be served.
	KindTimeout time.Duration
	// ByHand leaves the release of a restore's holds to a user.
	ByHand bool
	// WithoutStatus restores no status.
	WithoutStatus bool
}

// A Source reads a cluster's settings from Velero's namespace. It returns nil if there are none.
type Source interface {
	Settings(ctx context.Context, namespace string) (map[string]string, error)
}

// Of returns a function that returns the settings for a Backup or Restore. It reads the source
// once, and again only after an error.
func Of(source Source) func(of metav1.Object) (Settings, error) {
	var mu sync.Mutex
	var read bool
	var config map[string]string

	return func(of metav1.Object) (Settings, error) {
		mu.Lock()
		defer mu.Unlock()
		if !read {
			var err error
			if config, err = source.Settings(context.Background(), of.GetNamespace()); err != nil {
				return Settings{}, err
			}
			read = true
		}

		return Parse(config, of.GetAnnotations())
	}
}

// An InvalidError means that settings exist and cannot be understood. A retry does not help.
type InvalidError struct{ Err error }

func (e InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e InvalidError) Unwrap() error { return e.Err }

// Parse returns the settings in the ConfigMap's data, overridden by those in the annotations;
// either may be nil. It fails with an InvalidError on an unknown name or value, so that no setting
// is silently ignored.
func Parse(config, annotations map[string]string) (Settings, error) {
	s := Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: DefaultKindTimeout}
	for _, e := range entries(Place{Kind: KindConfigMap, Data: config}) {
		if _, err := e.set(&s); err != nil {
			return s, InvalidError{fmt.Errorf("cannot read the ConfigMap of settings: %w", err)}
		}
	}
	for _, e := range entries(Place{Data: annotations}) {
		if _, err := e.set(&s); err != nil {
			return s, InvalidError{fmt.Errorf("cannot read the annotation %s: %w", e.key, err)}
		}
	}

	return s, nil
}

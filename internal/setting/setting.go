// Package setting says how this plugin is to behave where people may want different things. A
// ConfigMap holds the settings of a cluster, and the annotations of a Backup or Restore those of
// that one.
package setting

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Prefix of the settings as annotations of a Backup or Restore. In the ConfigMap they have none.
const Prefix = "velero.crossplane.io/"

// DefaultKindTimeout is for how long a restore waits for a kind if nobody says otherwise.
// Crossplane takes a second or two to have one served, and a provider that is being started most of
// a minute to answer.
const DefaultKindTimeout = time.Minute

// A Clone says what becomes of a restored copy of something that is alive in the same cluster: both
// would manage the same external resources.
type Clone string

// What becomes of a copy.
const (
	// Hold restores it paused, so that it does nothing.
	Hold Clone = "hold"
	// Observe restores MRs that only observe, and holds the XRs.
	Observe Clone = "observe"
	// New restores XRs and claims without what they composed, so that they compose anew.
	New Clone = "new"
)

// A Holding says what a restore holds besides what it has to hold for a while to have it adopted.
type Holding string

// What is held.
const (
	// HoldUnsafe holds MRs of which it is not known which external resource they manage.
	HoldUnsafe Holding = "unsafe"
	// HoldAll is a quarantine: everything stays held until a person releases it.
	HoldAll Holding = "all"
	// HoldNone holds nothing besides.
	HoldNone Holding = "none"
)

// An Observing says which MRs a restore has observed before they may do anything else.
type Observing int

// What is observed first.
const (
	// ObserveUpjet has those observed that upjet could make a second time though they have an
	// external-name.
	ObserveUpjet Observing = iota
	// ObserveAll has all observed.
	ObserveAll
	// ObserveNone has none observed.
	ObserveNone
)

// Settings of a Backup or Restore.
type Settings struct {
	Clone Clone
	Hold  Holding
	// Credentials says that a backup takes the Secrets that ProviderConfigs name.
	Credentials bool
	// ObserveFirst says which restored MRs only observe until they were observed.
	ObserveFirst Observing
	// FromID are the kinds of MRs whose external-name is what their status.atProvider.id says.
	// NotFromID are those of which that is not to be taken from what is known of their providers,
	// and NoneKnown says it of all.
	FromID, NotFromID []schema.GroupKind
	NoneKnown         bool
	// Unnamed are the kinds of MRs that never have an external-name, by which their providers can
	// do without one.
	Unnamed []schema.GroupKind
	// AdoptionTimeout is after which time an operation fails whose XR is not adopted; 0 if there is
	// none.
	AdoptionTimeout time.Duration
	// KindTimeout is for how long a restore waits for a kind.
	KindTimeout time.Duration
	// ByHand says that a person lifts the holds of a restore.
	ByHand bool
	// WithoutStatus says that no status comes back.
	WithoutStatus bool
}

// A Source has the settings of a cluster in the namespace of Velero. It returns nil if there are
// none.
type Source interface {
	Settings(ctx context.Context, namespace string) (map[string]string, error)
}

// Of returns a function that returns the settings for a Backup or Restore. It asks the source once,
// and again only if that failed.
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

// An InvalidError is of settings that are there, and of which nobody knows what they mean. It won't
// go away by itself.
type InvalidError struct{ Err error }

func (e InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with them.
func (e InvalidError) Unwrap() error { return e.Err }

// Parse returns the settings in the data of the ConfigMap, overridden by those among the
// annotations; either may be nil. It fails with an InvalidError on names and values that it does
// not know: a setting that is not heard must not look as if it were.
func Parse(config, annotations map[string]string) (Settings, error) {
	s := Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: DefaultKindTimeout}
	for _, e := range entries(Place{Kind: KindConfigMap, Data: config}) {
		if err := s.set(e); err != nil {
			return s, InvalidError{fmt.Errorf("cannot read the ConfigMap of settings: %w", err)}
		}
	}
	for _, e := range entries(Place{Data: annotations}) {
		if err := s.set(e); err != nil {
			return s, InvalidError{fmt.Errorf("cannot read the annotation %s: %w", e.key, err)}
		}
	}

	return s, nil
}

func (s *Settings) set(e entry) error {
	d, err := definitionOf(e.name)
	if err != nil {
		return err
	}

	return d.set(s, e.value)
}

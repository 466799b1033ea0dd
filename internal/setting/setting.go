// Package setting says how this plugin is to behave where people may want different things. A ConfigMap holds the settings of a cluster, and the
// annotations of a Backup or Restore those of that one.
package setting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Prefix of the settings as annotations of a Backup or Restore. In the ConfigMap they have none.
const Prefix = "velero.crossplane.io/"

// Names of the settings.
const (
	NameClone       = "clone"
	NameCredentials = "provider-credentials"
)

// A Clone says what becomes of a restored copy of something that is alive in the same cluster: both would manage the same external resources.
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

// Settings of a Backup or Restore.
type Settings struct {
	Clone Clone
	// Credentials says that a backup takes the Secrets that ProviderConfigs name.
	Credentials bool
}

// A Source has the settings of a cluster in the namespace of Velero. It returns nil if there are none.
type Source interface {
	Settings(ctx context.Context, namespace string) (map[string]string, error)
}

// Of returns a function that returns the settings for a Backup or Restore. It asks the source once, and again only if that failed.
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

// Parse returns the settings in the data of the ConfigMap, overridden by those among the annotations; either may be nil. It fails on names
// and values that it does not know: a setting that is not heard must not look as if it were.
func Parse(config, annotations map[string]string) (Settings, error) {
	s := Settings{Clone: Hold}
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if err := s.set(name, config[name]); err != nil {
			return s, fmt.Errorf("cannot read the ConfigMap of settings: %w", err)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, ok := strings.CutPrefix(key, Prefix)
		if !ok {
			continue
		}
		if err := s.set(name, annotations[key]); err != nil {
			return s, fmt.Errorf("cannot read the annotation %s: %w", key, err)
		}
	}

	return s, nil
}

func (s *Settings) set(name, value string) error {
	switch name {
	case NameClone:
		s.Clone = Clone(value)
		if s.Clone != Hold && s.Clone != Observe && s.Clone != New {
			return fmt.Errorf("%s is hold, observe or new, not %q", NameClone, value)
		}
	case NameCredentials:
		if value != "include" && value != "exclude" {
			return fmt.Errorf("%s is include or exclude, not %q", NameCredentials, value)
		}
		s.Credentials = value == "include"
	default:
		return fmt.Errorf("there is no setting %q; there are %s and %s", name, NameClone, NameCredentials)
	}

	return nil
}

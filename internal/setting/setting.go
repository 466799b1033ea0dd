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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Prefix of the settings as annotations of a Backup or Restore. In the ConfigMap they have none.
const Prefix = "velero.crossplane.io/"

// Names of the settings.
const (
	NameClone       = "clone"
	NameCredentials = "provider-credentials"
	NameHold        = "hold"
	NameObserve     = "observe-first"
	NameFromID      = "external-name-from-id"
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

// Settings of a Backup or Restore.
type Settings struct {
	Clone Clone
	Hold  Holding
	// Credentials says that a backup takes the Secrets that ProviderConfigs name.
	Credentials bool
	// ObserveFirst says that restored MRs only observe until they were observed.
	ObserveFirst bool
	// FromID are the kinds of MRs whose external-name is what their status.atProvider.id says.
	FromID []schema.GroupKind
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
	s := Settings{Clone: Hold, Hold: HoldUnsafe}
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
		if !slices.Contains([]Clone{Hold, Observe, New}, s.Clone) {
			return fmt.Errorf("%s is hold, observe or new, not %q", NameClone, value)
		}
	case NameHold:
		s.Hold = Holding(value)
		if !slices.Contains([]Holding{HoldUnsafe, HoldAll, HoldNone}, s.Hold) {
			return fmt.Errorf("%s is unsafe, all or none, not %q", NameHold, value)
		}
	case NameCredentials:
		if value != "include" && value != "exclude" {
			return fmt.Errorf("%s is include or exclude, not %q", NameCredentials, value)
		}
		s.Credentials = value == "include"
	case NameObserve:
		if value != "true" && value != "false" {
			return fmt.Errorf("%s is true or false, not %q", NameObserve, value)
		}
		s.ObserveFirst = value == "true"
	case NameFromID:
		var err error
		s.FromID, err = kinds(value)

		return err
	default:
		return fmt.Errorf("there is no setting %q; there are %s, %s, %s, %s and %s", name, NameClone, NameFromID, NameHold, NameObserve, NameCredentials)
	}

	return nil
}

// kinds reads a list of kinds.
func kinds(value string) ([]schema.GroupKind, error) {
	var list []schema.GroupKind
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	for entry := range strings.SplitSeq(value, ",") {
		entry = strings.TrimSpace(entry)
		gk := schema.ParseGroupKind(entry)
		if !isKind(gk.Kind) || len(validation.IsDNS1123Subdomain(gk.Group)) > 0 {
			return nil, fmt.Errorf("%s is a list of kinds with their groups, such as VPC.ec2.aws.upbound.io,Zone.route53.aws.upbound.io; %q is none", NameFromID, entry)
		}
		list = append(list, gk)
	}

	return list, nil
}

// isKind tells kinds from resources, such as vpcs, which are in lower case.
func isKind(s string) bool {
	return strings.ToLower(s) != s && len(validation.IsDNS1035Label(strings.ToLower(s))) == 0
}

package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// These are the kinds of Places.
const (
	KindConfigMap = "ConfigMap"
	KindBackup    = "Backup"
	KindRestore   = "Restore"
)

// SourceDefault is the source of a setting that is not set.
const SourceDefault = "default"

// A Place has settings: a ConfigMap in its data, a Backup or Restore in its annotations.
type Place struct {
	Kind, Namespace, Name string
	Data                  map[string]string
}

// String returns the place's kind, namespace and name.
func (p Place) String() string { return p.Kind + " " + p.Namespace + "/" + p.Name }

// purpose returns what the place's settings apply to: ForBackup or ForRestore; "" for a ConfigMap,
// whose settings apply to both.
func (p Place) purpose() string {
	return map[string]string{KindBackup: ForBackup, KindRestore: ForRestore}[p.Kind]
}

// An Effective is a setting with its value in effect and the source of that.
type Effective struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`
	Source  string   `json:"source"`
	For     []string `json:"for"`
	Meaning string   `json:"meaning"`
}

// A Fault is an error in a place. With one, restores hold everything of Crossplane, and backups
// ignore the settings.
type Fault struct {
	// Name is the setting's name as written; "" if the fault is not about a single setting.
	Name  string `json:"name,omitempty"`
	Place string `json:"place"`
	// Code is the code of the reason.
	Code   reason.Code `json:"code"`
	Reason string      `json:"reason"`
	Next   string      `json:"next"`
}

// Effect returns the settings in effect for a Backup or Restore, or all settings if of is nil, and
// the faults. If there are several ConfigMaps, none applies.
func Effect(configs []Place, of *Place) ([]Effective, []Fault) {
	places, faults := configs, []Fault(nil)
	if len(configs) > 1 {
		places, faults = nil, severalFaults(configs)
	}
	what := ""
	if of != nil {
		places, what = append(slices.Clone(places), *of), of.purpose()
	}
	var all []Effective
	for _, d := range Definitions() {
		if d.isFor(what) {
			all = append(all, Effective{Name: d.Name, Value: d.Default, Source: SourceDefault, For: d.For, Meaning: d.Meaning})
		}
	}
	for _, p := range places {
		for _, e := range entries(p) {
			if fault, bad := e.fault(p); bad {
				faults = append(faults, fault)
			} else if n := slices.IndexFunc(all, func(s Effective) bool { return s.Name == e.name }); n >= 0 {
				all[n].Value, all[n].Source = e.value, p.String()
			}
		}
	}

	return all, faults
}

func severalFaults(configs []Place) []Fault {
	faults := make([]Fault, len(configs))
	for i, c := range configs {
		faults[i] = Fault{
			Place: c.String(), Code: reason.SettingsDuplicated,
			Reason: fmt.Sprintf("there can be one ConfigMap of settings, and there are %d, so none applies", len(configs)),
			Next:   "keep one of them, and delete the others or remove their labels",
		}
	}

	return faults
}

// An entry is a setting as written.
type entry struct {
	// key is its key in the place. name is the key without Prefix.
	key, name, value string
}

// entries returns the settings in a place, sorted by key: all keys of a ConfigMap, and the
// annotations with Prefix.
func entries(p Place) []entry {
	var all []entry
	for _, key := range slices.Sorted(maps.Keys(p.Data)) {
		name, own := strings.CutPrefix(key, Prefix)
		if p.Kind == KindConfigMap {
			name, own = key, true
		}
		if own {
			all = append(all, entry{key: key, name: name, value: p.Data[key]})
		}
	}

	return all
}

// set writes the entry into settings. The Definition is the zero value if there is none.
func (e entry) set(s *Settings) (Definition, error) {
	d, err := definitionOf(e.name)
	if err == nil {
		err = d.set(s, e.value)
	}

	return d, err
}

// fault returns the fault of an entry; bad is false if it has none.
func (e entry) fault(p Place) (f Fault, bad bool) {
	f = Fault{Name: e.key, Place: p.String(), Next: "correct its value, or remove it"}
	d, err := e.set(&Settings{})
	if d.Name == "" {
		f.Next = "correct its name, or remove it"
	}
	switch {
	case err == nil && d.isFor(p.purpose()):
		return Fault{}, false
	case err == nil:
		f.Code = reason.SettingIgnored
		f.Reason = fmt.Sprintf("%s is a setting of a %s, so it has no effect on a %s", e.name, d.For[0], p.purpose())
		f.Next = fmt.Sprintf("remove it, and set it for the %s that needs it", d.For[0])

		return f, true
	}
	f.Code, f.Reason = reason.CodeOf(err), err.Error()
	switch p.Kind {
	case KindConfigMap:
		f.Next += "; until then a restore holds everything of Crossplane, and a backup ignores the settings"
	case KindBackup:
		f.Next += ", then back up again: this backup ignored the settings"
	default:
		f.Next += "; this restore holds everything of Crossplane"
	}

	return f, true
}

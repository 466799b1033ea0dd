package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kinds of Places.
const (
	KindConfigMap = "ConfigMap"
	KindBackup    = "Backup"
	KindRestore   = "Restore"
)

// SourceDefault is where a setting comes from that nobody has set.
const SourceDefault = "default"

// A Place is where somebody has written settings: the data of a ConfigMap, or the annotations of a
// Backup or Restore.
type Place struct {
	Kind, Namespace, Name string
	Data                  map[string]string
}

// String names the place.
func (p Place) String() string { return p.Kind + " " + p.Namespace + "/" + p.Name }

// purpose returns what settings must be for to be heard of what has them in its annotations; "" for
// a ConfigMap, which has settings for everything.
func (p Place) purpose() string {
	switch p.Kind {
	case KindBackup:
		return ForBackup
	case KindRestore:
		return ForRestore
	default:
		return ""
	}
}

// An Effective setting is one with the value that it has, and the place where that comes from.
type Effective struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`
	Source  string   `json:"source"`
	For     []string `json:"for"`
	Meaning string   `json:"meaning"`
}

// A Fault is something in a place that is not heard, and why nothing goes on until it is.
type Fault struct {
	// Name is that of the setting, as it is written there; "" if the fault is in no single one.
	Name   string `json:"name,omitempty"`
	Place  string `json:"place"`
	Reason string `json:"reason"`
	Next   string `json:"next"`
}

// Effect returns the settings that a Backup or Restore hears, by name, or all if that is nil, and
// all that is wrong with what people have written. Of several ConfigMaps none is heard.
func Effect(configs []Place, of *Place) ([]Effective, []Fault) {
	var places []Place
	var faults []Fault
	if len(configs) == 1 {
		places = configs
	} else if len(configs) > 1 {
		faults = severalFaults(configs)
	}
	what := ""
	if of != nil {
		places, what = append(places, *of), of.purpose()
	}
	var all []Effective
	for _, d := range Definitions() {
		if d.IsFor(what) {
			all = append(all, Effective{Name: d.Name, Value: d.Default, Source: SourceDefault, For: d.For, Meaning: d.Meaning})
		}
	}
	for _, p := range places {
		for _, e := range entries(p) {
			fault, bad := e.fault(p)
			if bad {
				faults = append(faults, fault)

				continue
			}
			if n := slices.IndexFunc(all, func(s Effective) bool { return s.Name == e.name }); n >= 0 {
				all[n].Value, all[n].Source = e.value, p.String()
			}
		}
	}

	return all, faults
}

func severalFaults(configs []Place) []Fault {
	names := make([]string, len(configs))
	for i, c := range configs {
		names[i] = c.Namespace + "/" + c.Name
	}
	faults := make([]Fault, len(configs))
	for i, c := range configs {
		faults[i] = Fault{
			Place: c.String(), Reason: "there can be one ConfigMap of settings, and there are " + list(names, "and") + ", of which none is heard",
			Next: "keep one of them, and delete the others or remove their labels",
		}
	}

	return faults
}

// An entry is a setting as somebody has written it.
type entry struct {
	// key is what it is called there, and name without what annotations begin with.
	key, name, value string
}

// entries returns the settings that are written in a place, in a stable order: all keys of a
// ConfigMap, and of annotations those that are this plugin's.
func entries(p Place) []entry {
	var all []entry
	for _, key := range slices.Sorted(maps.Keys(p.Data)) {
		name, own := strings.CutPrefix(key, Prefix)
		switch {
		case p.Kind == KindConfigMap:
			all = append(all, entry{key: key, name: key, value: p.Data[key]})
		case own:
			all = append(all, entry{key: key, name: name, value: p.Data[key]})
		}
	}

	return all
}

// fault returns what is wrong with the entry; bad is false if nothing is.
func (e entry) fault(p Place) (f Fault, bad bool) {
	f = Fault{Name: e.key, Place: p.String(), Next: "correct its value, or remove it"}
	d, err := definitionOf(e.name)
	if err != nil {
		f.Next = "correct its name, or remove it"
	} else {
		err = d.set(&Settings{}, e.value)
	}
	switch {
	case err == nil && d.IsFor(p.purpose()):
		return Fault{}, false
	case err == nil:
		f.Reason = fmt.Sprintf("%s is for a %s, and a %s does not hear it", e.name, d.For[0], p.purpose())
		f.Next = fmt.Sprintf("remove it, and set it for the %s that it is meant for", d.For[0])

		return f, true
	}
	f.Reason = err.Error()
	switch p.Kind {
	case KindConfigMap:
		f.Next += "; until then whatever of Crossplane's a restore comes to is an error, and backups go without the settings"
	case KindBackup:
		f.Next += " and begin again: it went without the settings"
	default:
		f.Next += " and begin again: what of Crossplane's it came to is an error"
	}

	return f, true
}

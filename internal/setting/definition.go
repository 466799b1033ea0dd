package setting

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// These are the names of the settings.
const (
	NameTimeout     = "adoption-timeout"
	NameClone       = "clone"
	NameFromID      = "external-name-from-id"
	NameHold        = "hold"
	NameKind        = "kind-timeout"
	NameObserve     = "observe-first"
	NameCredentials = "provider-credentials"
	NameRelease     = "release"
	NameStatus      = "restore-status"
	NameUnnamed     = "without-external-name"
)

// These are the objects that a setting can apply to.
const (
	ForBackup  = "backup"
	ForRestore = "restore"
)

// These describe the values of settings without a fixed choice.
const (
	formTimeout = "a duration of more than 0, such as 30m or 1h30m, or empty for none"
	formKind    = "a duration of more than 0, such as 30s or 10m"
	formUnnamed = "a list of kinds with their groups, such as Attachment.iam.example.org,Rule.ec2.example.org"
	formKinds   = "a list of kinds with their groups, such as VPC.ec2.aws.upbound.io,-Zone.route53.aws.upbound.io, and none to use only these"
)

// A Definition describes a setting.
type Definition struct {
	Name string
	// For lists what the setting applies to: ForBackup, ForRestore or both.
	For []string
	// Default is the value if the setting is not set.
	Default string
	// Values are all allowed values; nil if Form describes them.
	Values []string
	Form   string
	// Meaning describes the setting in one line.
	Meaning string

	set func(s *Settings, value string) error
}

// Definitions returns all settings, sorted by name.
func Definitions() []Definition {
	return []Definition{
		duration(NameTimeout, "", formTimeout, "how long an operation waits for the adoption of its XR before it fails",
			func(s *Settings, d time.Duration) { s.AdoptionTimeout = d }),
		choice(NameClone, ForRestore, "how a restore treats a copy of an object that exists in the same cluster",
			func(s *Settings, value string) { s.Clone = Clone(value) }, string(Hold), string(Observe), string(New)),
		{
			Name: NameFromID, For: []string{ForBackup, ForRestore}, Form: formKinds,
			Meaning: "the kinds of MRs whose external-name is their status.atProvider.id, besides those that the plugin knows", set: setFromID,
		},
		choice(NameHold, ForRestore, "what a restore holds besides the objects that it adopts",
			func(s *Settings, value string) { s.Hold = Holding(value) }, string(HoldUnsafe), string(HoldAll), string(HoldNone)),
		duration(NameKind, "1m", formKind, "how long a restore waits for a kind that is not served yet, or that can't be converted",
			func(s *Settings, d time.Duration) { s.KindTimeout = d }),
		choice(NameObserve, ForRestore, "which MRs only observe until their provider has found their external resource",
			func(s *Settings, value string) {
				s.ObserveFirst = map[string]Observing{"upjet": ObserveUpjet, "true": ObserveAll, "false": ObserveNone}[value]
			}, "upjet", "true", "false"),
		choice(NameCredentials, ForBackup, "whether a backup includes the Secrets with the credentials of ProviderConfigs, and those that MRs name",
			func(s *Settings, value string) { s.Credentials = value == "include" }, "exclude", "include"),
		choice(NameRelease, ForRestore, "whether the restore releases what it holds, or a user does",
			func(s *Settings, value string) { s.ByHand = value == "by-hand" }, "automatic", "by-hand"),
		choice(NameStatus, ForRestore, "whether a restore brings back the status that functions have written and may read",
			func(s *Settings, value string) { s.WithoutStatus = value == "none" }, "needed", "none"),
		{
			Name: NameUnnamed, For: []string{ForBackup, ForRestore}, Form: formUnnamed,
			Meaning: "the kinds of MRs that never have an external-name", set: setUnnamed,
		},
	}
}

// choice returns a setting with fixed values. The first is the default.
func choice(name, of, meaning string, set func(s *Settings, value string), values ...string) Definition {
	return Definition{
		Name: name, For: []string{of}, Default: values[0], Values: values, Meaning: meaning,
		set: func(s *Settings, value string) error {
			if !slices.Contains(values, value) {
				return reason.SettingInvalid.Errorf("%s is %s, not %q", name, list(values, "or"), value)
			}
			set(s, value)

			return nil
		},
	}
}

// duration returns a setting of a restore with a duration of more than 0, or none if that is the
// default.
func duration(name, byDefault, form, meaning string, set func(s *Settings, d time.Duration)) Definition {
	return Definition{
		Name: name, For: []string{ForRestore}, Default: byDefault, Form: form, Meaning: meaning,
		set: func(s *Settings, value string) error {
			d, err := time.ParseDuration(value)
			if isNone := value == "" && byDefault == ""; !isNone && (err != nil || d <= 0) {
				return reason.SettingInvalid.Errorf("%s is %s, not %q", name, form, value)
			}
			set(s, d)

			return nil
		},
	}
}

// isFor reports whether the setting applies to ForBackup or ForRestore; "" matches every setting.
func (d Definition) isFor(what string) bool { return what == "" || slices.Contains(d.For, what) }

// definitionOf returns a setting by name. The error lists all names.
func definitionOf(name string) (Definition, error) {
	all := Definitions()
	names := make([]string, len(all))
	for i, d := range all {
		if d.Name == name {
			return d, nil
		}
		names[i] = d.Name
	}

	return Definition{}, reason.SettingUnknown.Errorf("there is no setting %q. There are %s", name, list(names, "and"))
}

// list joins at least two names for a message: a, b and c.
func list(names []string, last string) string {
	n := len(names) - 1

	return strings.Join(names[:n], ", ") + " " + last + " " + names[n]
}

// noneKnown is an entry of external-name-from-id that turns off the built-in kinds. notOf is the
// prefix of a kind that turns it off.
const (
	noneKnown = "none"
	notOf     = "-"
)

func setFromID(s *Settings, value string) error {
	s.FromID, s.NotFromID, s.NoneKnown = nil, nil, false
	for _, entry := range split(value) {
		name, not := strings.CutPrefix(entry, notOf)
		gk, is := kind(name)
		switch {
		case entry == noneKnown:
			s.NoneKnown = true
		case !is:
			return reason.SettingInvalid.Errorf("%s is %s; %q is not a kind", NameFromID, formKinds, entry)
		case not:
			s.NotFromID = append(s.NotFromID, gk)
		default:
			s.FromID = append(s.FromID, gk)
		}
	}
	if n := slices.IndexFunc(s.FromID, func(gk schema.GroupKind) bool { return slices.Contains(s.NotFromID, gk) }); n >= 0 {
		return reason.SettingInvalid.Errorf("%s can't have both %s and %s%[2]s", NameFromID, s.FromID[n], notOf)
	}

	return nil
}

func setUnnamed(s *Settings, value string) error {
	s.Unnamed = nil
	for _, entry := range split(value) {
		gk, is := kind(entry)
		if !is {
			return reason.SettingInvalid.Errorf("%s is %s; %q is not a kind", NameUnnamed, formUnnamed, entry)
		}
		s.Unnamed = append(s.Unnamed, gk)
	}

	return nil
}

// split returns the entries of a list.
func split(value string) []string {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	entries := strings.Split(value, ",")
	for n := range entries {
		entries[n] = strings.TrimSpace(entries[n])
	}

	return entries
}

// kind reads a kind with its group. Without upper case it is a resource, such as vpcs.
func kind(s string) (schema.GroupKind, bool) {
	gk := schema.ParseGroupKind(s)
	lower := strings.ToLower(gk.Kind)

	return gk, lower != gk.Kind && len(validation.IsDNS1035Label(lower)) == 0 && len(validation.IsDNS1123Subdomain(gk.Group)) == 0
}

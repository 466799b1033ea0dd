package setting

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

func TestEffect(t *testing.T) {
	config := func(name string, data map[string]string) Place {
		return Place{Kind: KindConfigMap, Namespace: "velero", Name: name, Data: data}
	}
	restore := func(annotations map[string]string) *Place {
		return &Place{Kind: KindRestore, Namespace: "velero", Name: "monday", Data: annotations}
	}
	type want struct {
		// Set are the settings that are set, with their place.
		Set map[string]string
		// Faults are names, places and the beginnings of reasons.
		Faults []string
	}
	cases := map[string]struct {
		reason  string
		configs []Place
		of      *Place
		want    want
	}{
		"Defaults": {reason: "Without settings every value is the default.", of: restore(map[string]string{"velero.io/hold": "x", "hold": "all"})},
		"Restore": {
			reason: "The annotation of a Restore overrides the ConfigMap.", configs: []Place{config("s", map[string]string{"hold": "all", "release": "by-hand"})},
			of:   restore(map[string]string{"velero.crossplane.io/hold": "none"}),
			want: want{Set: map[string]string{"hold": "none from Restore velero/monday", "release": "by-hand from ConfigMap velero/s"}},
		},
		"SameAsDefault": {
			reason: "The source of a value matters even if it equals the default.", configs: []Place{config("s", map[string]string{"hold": "unsafe"})},
			want: want{Set: map[string]string{"hold": "unsafe from ConfigMap velero/s"}},
		},
		"Backup": {
			reason: "A backup uses only the settings for backups.", configs: []Place{config("s", map[string]string{"hold": "all", "provider-credentials": "include"})},
			of:   &Place{Kind: KindBackup, Namespace: "velero", Name: "b"},
			want: want{Set: map[string]string{"provider-credentials": "include from ConfigMap velero/s"}},
		},
		"Faults": {
			reason:  "The command must report all faults at once.",
			configs: []Place{config("s", map[string]string{"clone": "Hold", "clones": "hold", "adoption-timeout": "soon"})},
			of:      restore(map[string]string{"velero.crossplane.io/release": "manual", "velero.crossplane.io/hold": "all"}),
			want: want{Set: map[string]string{"hold": "all from Restore velero/monday"}, Faults: []string{
				`adoption-timeout in ConfigMap velero/s: adoption-timeout is a duration`, `clone in ConfigMap velero/s: clone is hold, observe or new, not "Hold"`,
				`clones in ConfigMap velero/s: there is no setting "clones"`,
				`velero.crossplane.io/release in Restore velero/monday: release is automatic or by-hand, not "manual"`,
			}},
		},
		"NotApplicable": {
			reason: "A setting without effect on a backup must be a fault.",
			of:     &Place{Kind: KindBackup, Namespace: "velero", Name: "b", Data: map[string]string{"velero.crossplane.io/hold": "all"}},
			want:   want{Faults: []string{`velero.crossplane.io/hold in Backup velero/b: hold is a setting of a restore, so it has no effect on a backup`}},
		},
		"Several": {
			reason: "The plugin must not choose between several ConfigMaps.", configs: []Place{config("s", map[string]string{"hold": "all"}), config("t", nil), config("u", nil)},
			of: restore(map[string]string{"velero.crossplane.io/clone": "new"}),
			want: want{Set: map[string]string{"clone": "new from Restore velero/monday"}, Faults: []string{
				` in ConfigMap velero/s: there can be one ConfigMap of settings, and there are 3, so none applies`,
				` in ConfigMap velero/t: there can be one ConfigMap of settings, and there are 3, so none applies`,
				` in ConfigMap velero/u: there can be one ConfigMap of settings, and there are 3, so none applies`,
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all, faults := Effect(tc.configs, tc.of)
			got := want{Set: map[string]string{}}
			for _, s := range all {
				d, err := definitionOf(s.Name)
				if err != nil || tc.of != nil && !d.isFor(tc.of.purpose()) {
					t.Errorf("%s must not be in the result", s.Name)
				}
				if s.Source == SourceDefault && s.Value == d.Default {
					continue
				}
				got.Set[s.Name] = s.Value + " from " + s.Source
			}
			for _, f := range faults {
				if f.Next == "" {
					t.Errorf("%s has no next step", f.Reason)
				}
				got.Faults = append(got.Faults, f.Name+" in "+f.Place+": "+f.Reason)
			}
			for i := range min(len(got.Faults), len(tc.want.Faults)) {
				if strings.HasPrefix(got.Faults[i], tc.want.Faults[i]) {
					got.Faults[i] = tc.want.Faults[i]
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Effect finds faults if and only if Parse fails. The first one is Parse's error.
func FuzzEffect(f *testing.F) {
	f.Add("hold", "all", "clone", "x")
	f.Add("x", "", NameTimeout, "")
	f.Fuzz(func(t *testing.T, name, value, key, annotation string) {
		config := Place{Kind: KindConfigMap, Namespace: "velero", Name: "s", Data: map[string]string{name: value}}
		restore := &Place{Kind: KindRestore, Namespace: "velero", Name: "r", Data: map[string]string{Prefix + key: annotation}}
		_, err := Parse(config.Data, restore.Data)
		all, faults := Effect([]Place{config}, restore)
		faults = slices.DeleteFunc(faults, func(f Fault) bool { return f.Code == reason.SettingIgnored })
		if (err == nil) != (len(faults) == 0) || err != nil && !strings.HasSuffix(err.Error(), faults[0].Reason) {
			t.Errorf("Parse returns %v, and the faults are %v", err, faults)
		}
		if len(all) == 0 {
			t.Error("the result has no settings")
		}
	})
}

package hooks

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func printed(t *testing.T, objects []*unstructured.Unstructured, s settings) (out string, code int, err error) {
	t.Helper()
	var b bytes.Buffer
	s.options = &options{Program: Program{Out: &b, Err: &b}, velero: "velero"}
	server := newServer(objects...)
	err = failed(s.run(t.Context(), cluster.New(server, server)))

	return b.String(), codeOf(err), err
}

func TestSettings(t *testing.T) {
	config := func(name string, data map[string]any) *unstructured.Unstructured {
		return xptest.Object("v1", "ConfigMap", "velero", name, xptest.Labelled("velero.io/plugin-config", ""),
			xptest.Labelled("velero.crossplane.io/settings", ""), xptest.Field(data, "data"))
	}
	of := func(kind, name, value string) *unstructured.Unstructured {
		return xptest.Object("velero.io/v1", kind, "velero", "nightly", xptest.Annotated("velero.crossplane.io/"+name, value))
	}
	type want struct {
		Of     string
		Set    map[string]string
		Faults []string
		Code   int
		Err    string
	}
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		of      settings
		want    want
	}{
		"Cluster": {
			reason: "Without a Restore the command must show only the ConfigMap's settings.", objects: []*unstructured.Unstructured{config("s", map[string]any{"hold": "all"}), of("Restore", "hold", "none")},
			want: want{Set: map[string]string{"hold": "all from ConfigMap velero/s"}},
		},
		"Restore": {
			reason: "The annotation of a Restore overrides the ConfigMap.", of: settings{restore: "nightly"},
			objects: []*unstructured.Unstructured{config("s", map[string]any{"hold": "all", "adoption-timeout": "30m"}), of("Restore", "hold", "none")},
			want: want{Of: "Restore velero/nightly", Set: map[string]string{
				"hold": "none from Restore velero/nightly", "adoption-timeout": "30m from ConfigMap velero/s",
			}},
		},
		"RestoreWithNamespace": {
			reason: "Velero's commands accept the namespace in the name too.", of: settings{restore: "velero/nightly"}, objects: []*unstructured.Unstructured{of("Restore", "hold", "none")},
			want: want{Of: "Restore velero/nightly", Set: map[string]string{"hold": "none from Restore velero/nightly"}},
		},
		"Backup": {
			reason: "The annotation of a Backup overrides the ConfigMap.", of: settings{backup: "nightly"}, objects: []*unstructured.Unstructured{of("Backup", "provider-credentials", "include")},
			want: want{Of: "Backup velero/nightly", Set: map[string]string{"provider-credentials": "include from Backup velero/nightly"}},
		},
		"Faults": {
			reason: "The command must name every fault.", of: settings{restore: "nightly"},
			objects: []*unstructured.Unstructured{config("s", map[string]any{"holds": "all", "clone": "no"}), of("Restore", "release", "manual")},
			want: want{Of: "Restore velero/nightly", Code: ExitProblems, Faults: []string{
				"clone in ConfigMap velero/s", "holds in ConfigMap velero/s", "velero.crossplane.io/release in Restore velero/nightly",
			}},
		},
		"NoRestore": {
			reason: "The error must name the missing Restore.", of: settings{restore: "gone"},
			want: want{Code: ExitFailed, Err: "cannot find the Restore velero/gone: there is none of this name; see: velero restore get -n velero"},
		},
		"NoBackup": {
			reason: "The error must name the missing Backup.", of: settings{backup: "gone"},
			want: want{Code: ExitFailed, Err: "cannot find the Backup velero/gone: there is none of this name; see: velero backup get -n velero"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.of.out.format = printer.YAML
			out, code, err := printed(t, tc.objects, tc.of)
			var e effective
			if err := yaml.Unmarshal([]byte(out), &e); err != nil {
				t.Fatal(err)
			}
			got := want{Of: e.Of, Set: map[string]string{}, Code: code}
			if err != nil {
				got.Err = err.Error()
			}
			for _, s := range e.Settings {
				if s.Source != setting.SourceDefault {
					got.Set[s.Name] = s.Value + " from " + s.Source
				}
			}
			for _, f := range e.Faults {
				got.Faults = append(got.Faults, f.Name+" in "+f.Place)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The table has a line for each setting, then the faults with their next step.
func TestSettingsAsATable(t *testing.T) {
	restore := xptest.Object("velero.io/v1", "Restore", "velero", "nightly", xptest.Annotated("velero.crossplane.io/hold", "all"),
		xptest.Annotated("velero.crossplane.io/release", "manual"))
	out, code, _ := printed(t, []*unstructured.Unstructured{restore}, settings{restore: "nightly", out: output{format: printer.Table}})
	const want = `SETTING                VALUE      FROM                    FOR
adoption-timeout       -          default                 restore
clone                  hold       default                 restore
external-name-from-id  -          default                 backup, restore
hold                   all        Restore velero/nightly  restore
kind-timeout           1m         default                 restore
observe-first          upjet      default                 restore
release                automatic  default                 restore
restore-status         needed     default                 restore
without-external-name  -          default                 backup, restore

1 fault:
  Restore velero/nightly, velero.crossplane.io/release: release is automatic or by-hand, not "manual" [SettingInvalid]
    next: correct its value, or remove it; this restore holds everything of Crossplane
`
	if diff := cmp.Diff(want, out); diff != "" || code != ExitProblems {
		t.Errorf("code %d, -want, +got:\n%s", code, diff)
	}
}

func TestSettingsUsage(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		says   string
	}{
		"Argument": {reason: "The command has no arguments.", args: []string{"nightly"}, says: "nightly"},
		"Both":     {reason: "An object can't be both a Backup and a Restore.", args: []string{"--restore", "a", "--backup", "b"}, says: "backup"},
		"Format":   {reason: "Settings are no tree, so the format html makes no sense.", args: []string{"-o", "html"}, says: "table, json, yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if r := command(t, nil, append([]string{"settings"}, tc.args...)...); r.code != ExitUsage || !strings.Contains(r.err, tc.says) {
				t.Errorf("%s\ncode %d, %s", tc.reason, r.code, r.err)
			}
		})
	}
}

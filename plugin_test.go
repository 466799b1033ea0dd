package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
)

func TestFeaturesOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"None":   {reason: "Velero has no features by default.", args: []string{"--plugin-dir=/plugins", "--log-level=debug"}},
		"One":    {reason: "Velero's Deployment has the flag in this form.", args: []string{"--features=OwnerRefRelink"}, want: []string{"OwnerRefRelink"}},
		"Apart":  {reason: "The value can be an argument of its own.", args: []string{"--features", "EnableCSI"}, want: []string{"EnableCSI"}},
		"Many":   {reason: "Commas separate features, and the flag can be repeated.", args: []string{"--features=a,b", "--features=c"}, want: []string{"a", "b", "c"}},
		"Beside": {reason: "Other flags of Velero have no effect.", args: []string{"--namespace=velero", "--features=a", "--new=1"}, want: []string{"a"}},
		"Empty":  {reason: "A flag without a value has no effect.", args: []string{"--features="}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("plugin", pflag.ContinueOnError)
			features, _ := veleroFlags(flags)
			// Velero binds its own flags to the same set. A flag of the same name would keep the
			// plugin from starting.
			framework.NewServer().BindFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *features, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestModifiersOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"None":  {reason: "Velero has no default modifier.", args: []string{"--plugin-dir=/plugins"}},
		"Named": {reason: "The default is for each restore without a modifier of its own.", args: []string{"--default-resource-modifier-configmap=cni", "--features=a"}, want: "cni"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("plugin", pflag.ContinueOnError)
			_, modifiers := veleroFlags(flags)
			framework.NewServer().BindFlags(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if *modifiers != tc.want {
				t.Errorf("%s\ngot %q, want %q", tc.reason, *modifiers, tc.want)
			}
		})
	}
}

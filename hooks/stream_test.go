package hooks

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const asPlugin = "/home/someone/.krew/bin/kubectl-crossplane_restore"

func TestTypedAs(t *testing.T) {
	xptest.Run(t, map[string]xptest.Row[string, string]{
		"Binary":     {Reason: "The binary has the name of the release.", In: "/plugins/velero-plugin-for-crossplane", Want: Name},
		"Other":      {Reason: "Another name may be that of a wrapper, which nobody types.", In: "/tmp/go-build1/exe/main", Want: Name},
		"Plugin":     {Reason: "kubectl reads an underscore as a dash.", In: asPlugin, Want: "kubectl crossplane-restore"},
		"Windows":    {Reason: "Windows has another separator, and a suffix.", In: `C:\krew\bin\kubectl-crossplane_restore.exe`, Want: "kubectl crossplane-restore"},
		"Words":      {Reason: "A dash separates words.", In: "kubectl-crossplane-restore", Want: "kubectl crossplane restore"},
		"PrefixOnly": {Reason: "There is no plugin without a name.", In: "kubectl-", Want: Name},
	}, typedAs)
}

func TestTyped(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"Command":   {reason: "A command is what the user types.", text: "run: velero-plugin-for-crossplane release shop\n", want: "run: kubectl crossplane-restore release shop\n"},
		"Wrapped":   {reason: "A line can end within a command.", text: "velero-plugin-for-crossplane\n  validate", want: "kubectl crossplane-restore\n  validate"},
		"Quoted":    {reason: "JSON has commands in strings.", text: `{"next":"velero-plugin-for-crossplane hold -A"}`, want: `{"next":"kubectl crossplane-restore hold -A"}`},
		"Path":      {reason: "In Velero's Pod the program has its own name.", text: "-- /plugins/velero-plugin-for-crossplane validate", want: "-- /plugins/velero-plugin-for-crossplane validate"},
		"NoCommand": {reason: "The name alone is that of the plugin.", text: "velero-plugin-for-crossplane v0.1.0\n", want: "velero-plugin-for-crossplane v0.1.0\n"},
		"Longer":    {reason: "Another name can begin with it.", text: "velero-plugin-for-crossplane-validate wait", want: "velero-plugin-for-crossplane-validate wait"},
	}
	root := newRoot(newOptions(Program{}))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if n, err := newTyped(&b, "kubectl crossplane-restore", root).Write([]byte(tc.text)); n != len(tc.text) || err != nil {
				t.Fatalf("it wrote %d bytes of %d: %v", n, len(tc.text), err)
			}
			if diff := cmp.Diff(tc.want, b.String()); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlugin(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		code   int
		// want are parts of the output.
		want []string
	}{
		"Help":       {reason: "Help must show the commands as they are typed.", args: []string{"release", "--help"}, want: []string{"kubectl crossplane-restore release --dry-run", "Usage:\n  kubectl crossplane-restore release"}},
		"Usage":      {reason: "An error must point to the help as it is typed.", args: []string{"valdate"}, code: ExitUsage, want: []string{`See "kubectl crossplane-restore --help".`}},
		"Message":    {reason: "A message can have a command.", args: []string{"explain", "Nonsense"}, code: ExitUsage, want: []string{`"kubectl crossplane-restore explain" lists all`}},
		"Completion": {reason: "kubectl completes the plugin.", args: []string{"completion"}, want: []string{"#!/bin/sh\nexec kubectl crossplane-restore __complete \"$@\"\n"}},
		"Complete":   {reason: "The script must get completions.", args: []string{"__complete", "valid"}, want: []string{"validate\t"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			program := Program{Out: &out, Err: &out, Path: asPlugin}
			if code := Run(t.Context(), tc.args, program); code != tc.code {
				t.Errorf("%s The code is %d", tc.reason, code)
			}
			for _, want := range tc.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s It has no %q:\n%s", tc.reason, want, out.String())
				}
			}
			if strings.Contains(out.String(), " "+Name+" ") {
				t.Errorf("%s It has %s:\n%s", tc.reason, Name, out.String())
			}
		})
	}
}

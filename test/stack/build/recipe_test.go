package build

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrapperMod(t *testing.T) {
	const goMod = `{"Go": "1.25.0", "Replace": [
		{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
		{"Old": {"Path": "example.org/fork"}, "New": {"Path": "example.org/forked"}}
	]}`
	var mod modFile
	if err := json.Unmarshal([]byte(goMod), &mod); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		recipe Recipe
		want   string
	}{
		"Plain": {
			reason: "Go ignores the replaces of a dependency, so the wrapper must not copy them by default.",
			recipe: Recipe{Module: "example.org/m", Version: "v1.2.3"},
			want:   "module wrapper\n\ngo 1.25.0\n\nrequire example.org/m v1.2.3\n",
		},
		"Staging": {
			reason: "Kubernetes publishes its staging folders as modules of another major version.",
			recipe: Recipe{Module: "k8s.io/kubernetes", Version: "v1.35.4", Staging: true, Replaces: []string{"a => b v1.0.0"}},
			want: "module wrapper\n\ngo 1.25.0\n\nrequire k8s.io/kubernetes v1.35.4\n\nreplace k8s.io/api => k8s.io/api v0.35.4\n\n" +
				"replace a => b v1.0.0\n",
		},
		"As": {
			reason: "A fork must be required by the module path in its go.mod.",
			recipe: Recipe{Module: "example.org/m", Version: "v1.2.3", As: "example.org/own"},
			want:   "module wrapper\n\ngo 1.25.0\n\nrequire example.org/own v1.2.3\n\nreplace example.org/own => example.org/m v1.2.3\n",
		},
		"Stubs": {
			reason: "A stub of a module is a directory of the wrapper.",
			recipe: Recipe{
				Module: "example.org/m", Version: "v1.2.3", Replaces: []string{"a => b v1.0.0"},
				Stubs: map[string]map[string]string{"example.org/z": nil, "example.org/y": nil},
			},
			want: "module wrapper\n\ngo 1.25.0\n\nrequire example.org/m v1.2.3\n\nreplace a => b v1.0.0\n\n" +
				"replace example.org/y => ./stub/example.org/y\n\nreplace example.org/z => ./stub/example.org/z\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, wrapperMod(tc.recipe, mod)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKey(t *testing.T) {
	base := Recipe{Name: "p", Version: "v1.0.0"}
	cases := map[string]struct {
		reason string
		change func(*Recipe)
		same   bool
	}{
		"Nothing":  {reason: "An unchanged recipe must find the program in the cache.", change: func(*Recipe) {}, same: true},
		"OnDemand": {reason: "The time of a build must not change its key.", change: func(r *Recipe) { r.OnDemand = true }, same: true},
		"Ldflags":  {reason: "Other linker flags make another program.", change: func(r *Recipe) { r.Ldflags = []string{"a=b"} }},
		"Stubs": {reason: "Another stub makes another program.", change: func(r *Recipe) {
			r.Stubs = map[string]map[string]string{"example.org/m": {"m.go": "package m\n"}}
		}},
		"Version": {reason: "Another version makes another program.", change: func(r *Recipe) { r.Version = "v1.0.1" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed := base
			tc.change(&changed)
			if got := base.key() == changed.key(); got != tc.same {
				t.Errorf("%s\n%s and %s", tc.reason, base.key(), changed.key())
			}
			if !strings.HasPrefix(changed.key(), changed.Version+"-") {
				t.Errorf("the key must begin with the version: %s", changed.key())
			}
		})
	}
}

func TestEnsureRefusesUnknownPrograms(t *testing.T) {
	_, err := Ensure(t.Context(), t.Output(), "no-such-program")
	if err == nil || !strings.Contains(err.Error(), `"no-such-program"`) {
		t.Errorf("the error must name the program: %v", err)
	}
	names := Names()
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("the names of programs must be unique: %v", names)
	}
}

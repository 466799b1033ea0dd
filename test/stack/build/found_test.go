package build

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// script writes a program that prints a text.
func script(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho '"+text+"'\n"), 0o755); err != nil { //nolint:gosec // It is a program.
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	asset := kubernetes("with-assets", "", Kubernetes)
	asset.Assets = "crds"
	etcd := Recipe{Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Version: "v3.7.3"}
	cases := map[string]struct {
		reason string
		// folder has the programs, by their paths.
		folder map[string]string
		recipe Recipe
		// found is the path of the program. said is a part of what is reported.
		found, said string
	}{
		"Same":   {reason: "A patch version does not matter.", folder: map[string]string{"kube-apiserver": "Kubernetes v1.35.0"}, recipe: kubernetes("kube-apiserver", "", Kubernetes), found: "kube-apiserver", said: "kube-apiserver v1.35.0 from "},
		"Older":  {reason: "Another minor has other behaviour.", folder: map[string]string{"kube-apiserver": "Kubernetes v1.34.9"}, recipe: kubernetes("kube-apiserver", "", Kubernetes), said: "its version is v1.34.9"},
		"Etcd":   {reason: "Kubernetes works with each etcd 3.", folder: map[string]string{"etcd": "etcd Version: 3.6.4\nGit SHA: 5400cdc\nGo Version: go1.24.11"}, recipe: etcd, found: "etcd", said: "etcd v3.6.4 from"},
		"Silent": {reason: "A program of an unknown version may be any.", folder: map[string]string{"etcd": "hello"}, recipe: etcd, said: "it prints no version"},
		"Assets": {reason: "A published program lacks the files of its module.", folder: map[string]string{"with-assets": "v1.35.4"}, recipe: asset},
		"Cache":  {reason: "Another cache has exactly this program.", folder: map[string]string{filepath.Join(asset.Name, asset.key(), asset.Name): ""}, recipe: asset, found: filepath.Join(asset.Name, asset.key(), asset.Name), said: "from"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range slices.Sorted(maps.Keys(tc.folder)) {
				script(t, filepath.Join(dir, file), tc.folder[file])
			}
			t.Setenv(ProgramsEnv, dir)
			var out bytes.Buffer
			b := &builder{out: &out, began: time.Now(), set: Set{}}
			rest, err := b.find(t.Context(), []Recipe{tc.recipe})
			if err != nil {
				t.Fatal(err)
			}
			want, missing := "", 1
			if tc.found != "" {
				want, missing = filepath.Join(dir, tc.found), 0
			}
			if diff := cmp.Diff(want, b.set[tc.recipe.Name].Path); diff != "" || len(rest) != missing {
				t.Errorf("%s %d are missing; -want, +got:\n%s", tc.reason, len(rest), diff)
			}
			if !strings.Contains(out.String(), tc.said) || tc.said == "" && out.Len() > 0 {
				t.Errorf("%s It reports: %s", tc.reason, out.String())
			}
		})
	}
}

func TestFindNoFolder(t *testing.T) {
	t.Setenv(ProgramsEnv, filepath.Join(t.TempDir(), "none"))
	if _, err := (&builder{}).find(t.Context(), nil); err == nil {
		t.Error("A folder that does not exist must be refused")
	}
}

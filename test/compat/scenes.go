package compat

import (
	"cmp"
	"path/filepath"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// native is the scene whose Compositions only Crossplane v1 can run.
const native = "native"

// scenes returns the scenes for a pair: those of the source's version.
func (p Pair) scenes() ([]drill.Scene, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	dir, scenes := "v2", []drill.Scene{
		{Name: "nested", Count: 4, Size: 44},
		{Name: "legacy", Count: 4, Size: 28},
		{Name: "usages", Count: 2, Size: 12},
		{Name: "composed", Dir: "usages-composed", Count: 2, Size: 8},
		{Name: "clusterusages", Count: 2, Size: 10, BackupArgs: selected("clusterusages")},
		{Name: "config", Count: 2, Size: 6, BackupArgs: selected("config")},
	}
	if !isV2(p.From.Crossplane) {
		dir, scenes = "v1.20", []drill.Scene{
			{Name: "nested", Count: 4, Size: 48},
			{Name: "secrets", Count: 4, Size: 28},
			{Name: "usages", Count: 2, Size: 12, BackupArgs: selected("usages")},
			{Name: "composed", Dir: "usages-composed", Count: 2, Size: 10, BackupArgs: selected("composed")},
			{Name: "config", Count: 2, Size: 6, BackupArgs: selected("config")},
			{Name: native, Count: 2, Size: 12},
		}
	}
	for i := range scenes {
		// Another version of Crossplane gives the revision of the same Composition another name.
		scenes[i].Dir, scenes[i].Drift = filepath.Join(root, "test", "e2e", "testdata", dir, cmp.Or(scenes[i].Dir, scenes[i].Name)), true
	}

	return scenes, nil
}

// selected returns the arguments that back up one scene's cluster-scoped objects. Other scenes have
// objects of the same kinds.
func selected(scene string) []string {
	return []string{"--include-namespaces", scene, "--include-cluster-resources=true", "--selector", "scene=" + scene}
}

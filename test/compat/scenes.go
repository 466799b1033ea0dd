package compat

import (
	"cmp"
	"path/filepath"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// native is the scene whose Compositions only Crossplane v1 can run.
const native = "native"

// cases begins the folders of scenes that are cases, from the folder of a version's scenes.
const cases = "../../../cases/"

// scenes returns the scenes for a pair: those of the source's version.
func (p Pair) scenes() ([]drill.Scene, error) {
	root, err := build.Root()
	if err != nil {
		return nil, err
	}
	version, dir, scenes := stack.V2, "v2", []drill.Scene{
		{Name: "nested", Dir: cases + "nested", Count: 4, Size: 44},
		{Name: "legacy", Dir: cases + "legacy-xrd", Count: 4, Size: 28},
		{Name: "usages", Dir: cases + "usages", Count: 2, Size: 12},
		{Name: "composed", Dir: "usages-composed", Count: 2, Size: 8},
		{Name: "clusterusages", Dir: cases + "cluster-usages", Count: 2, Size: 10, BackupArgs: selected("clusterusages")},
		{Name: "config", Dir: cases + "configs", Count: 2, Size: 6, BackupArgs: selected("config")},
	}
	if !isV2(p.From.Crossplane) {
		version, dir, scenes = stack.V1, "v1.20", []drill.Scene{
			{Name: "nested", Dir: cases + "nested", Count: 4, Size: 48},
			{Name: "secrets", Count: 4, Size: 28},
			{Name: "usages", Dir: cases + "usages", Count: 2, Size: 12, BackupArgs: selected("usages")},
			{Name: "composed", Dir: "usages-composed", Count: 2, Size: 10, BackupArgs: selected("composed")},
			{Name: "config", Dir: cases + "configs", Count: 2, Size: 6, BackupArgs: selected("config")},
			{Name: native, Count: 2, Size: 12},
		}
	}
	for i := range scenes {
		scenes[i].Crossplane = version
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

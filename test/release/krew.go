package release

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// KrewName is the plugin's name in krew's index, by which kubectl runs it too.
	KrewName = "crossplane-restore"

	repository = "https://github.com/crossplane-contrib/velero-plugin-for-crossplane"
)

// A krewPlugin has the fields of krew's Plugin that the manifest sets. krew's own types come with
// versions of Kubernetes' modules that the tests can't have.
type krewPlugin struct {
	metav1.TypeMeta `json:",inline"`

	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

// A krewPlatform is where krew finds the program for a platform.
type krewPlatform struct {
	Selector metav1.LabelSelector `json:"selector"`
	URI      string               `json:"uri"`
	SHA256   string               `json:"sha256"`
	Bin      string               `json:"bin"`
	Files    []krewFile           `json:"files"`
}

// A krewFile is a file of an archive that krew installs.
type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krew writes the manifest by which krew installs the program as a plugin of kubectl. Maintainers
// propose it to krew's index.
func (r Release) krew(platforms []v1.Platform) error {
	p := krewPlugin{TypeMeta: metav1.TypeMeta{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"}}
	p.Metadata.Name = KrewName
	p.Spec.Version, p.Spec.Homepage = r.Version, repository
	p.Spec.ShortDescription = "Inspect backups and check restores of Crossplane"
	p.Spec.Description = `Shows which objects of Crossplane a backup of Velero has and what a restore
would hold, what is held in a cluster and why, and whether each composed
resource was adopted. Releases what a restore has left on hold, and hands a live
cluster over to another one.
`
	p.Spec.Caveats = `The cluster needs Velero with velero-plugin-for-crossplane. Begin with:
  kubectl crossplane-restore validate
`
	for _, platform := range platforms {
		each, err := r.krewPlatform(platform)
		if err != nil {
			return err
		}
		p.Spec.Platforms = append(p.Spec.Platforms, each)
	}
	b, err := yaml.Marshal(p)
	if err != nil {
		return fmt.Errorf("cannot encode the manifest for krew: %w", err)
	}
	if err := os.WriteFile(r.file("_krew.yaml"), b, 0o644); err != nil {
		return fmt.Errorf("cannot write the manifest for krew: %w", err)
	}

	return nil
}

// krewPlatform returns where krew finds the program for a platform, and its checksum.
func (r Release) krewPlatform(p v1.Platform) (krewPlatform, error) {
	suffix, packed, program := "_"+p.OS+"_"+p.Architecture, ".tar.gz", Name
	if p.OS == windows {
		packed, program = ".zip", Name+".exe"
	}
	archive := Name + "_" + r.Version + suffix + packed
	content, err := os.ReadFile(filepath.Join(r.Out, archive))
	if err != nil {
		return krewPlatform{}, fmt.Errorf("cannot read an archive for the manifest for krew: %w", err)
	}

	return krewPlatform{
		URI:      repository + "/releases/download/" + r.Version + "/" + archive,
		SHA256:   fmt.Sprintf("%x", sha256.Sum256(content)),
		Selector: metav1.LabelSelector{MatchLabels: map[string]string{"os": p.OS, "arch": p.Architecture}},
		Files: []krewFile{
			{From: r.folder(suffix) + program, To: "."},
			{From: r.folder(suffix) + "LICENSE", To: "."},
			{From: r.folder(suffix) + "THIRD_PARTY_LICENSES.txt", To: "."},
		},
		Bin: program,
	}, nil
}

package release

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// KrewName is the plugin's name in krew's index, by which kubectl runs it too.
const KrewName = "crossplane-restore"

// krewPlugin is the manifest by which krew installs the program as a plugin of kubectl. Maintainers
// propose it to krew's index.
var krewPlugin = template.Must( //nolint:gochecknoglobals // Go has no constant templates.
	template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: ` + KrewName + `
spec:
  version: {{.Version}}
  homepage: https://` + module + `
  shortDescription: Inspect backups and check restores of Crossplane
  description: |
    Shows which objects of Crossplane a backup of Velero has and what a restore
    would hold, what is held in a cluster and why, and whether each composed
    resource was adopted. Releases what a restore has left on hold, and hands a live
    cluster over to another one.
  caveats: |
    The cluster needs Velero with velero-plugin-for-crossplane. Begin with:
      kubectl crossplane-restore validate
  platforms:
{{- range .Platforms}}
  - selector: {matchLabels: {os: {{.OS}}, arch: {{.Architecture}}}}
    uri: https://` + module + `/releases/download/{{$.Version}}/{{.Archive}}
    sha256: "{{.SHA256}}"
    bin: {{.Bin}}
    files:
    - {from: {{.Folder}}/{{.Bin}}, to: .}
    - {from: {{.Folder}}/LICENSE, to: .}
    - {from: {{.Folder}}/THIRD_PARTY_LICENSES.txt, to: .}
{{- end}}
`))

// krew writes the manifest for krew.
func (r Release) krew(platforms []v1.Platform) error {
	type platform struct {
		v1.Platform

		Archive, Bin, Folder, SHA256 string
	}
	var all []platform
	for _, p := range platforms {
		bin, packed := programOf(p)
		content, err := os.ReadFile(filepath.Join(r.Out, r.folder(p)+packed))
		if err != nil {
			return fmt.Errorf("cannot read an archive for the manifest for krew: %w", err)
		}
		all = append(all, platform{Platform: p, Archive: r.folder(p) + packed, Bin: bin, Folder: r.folder(p), SHA256: fmt.Sprintf("%x", sha256.Sum256(content))})
	}
	var b bytes.Buffer
	if err := krewPlugin.Execute(&b, map[string]any{"Version": r.Version, "Platforms": all}); err != nil {
		return fmt.Errorf("cannot make the manifest for krew: %w", err)
	}

	return os.WriteFile(r.file("_krew.yaml"), b.Bytes(), 0o644)
}

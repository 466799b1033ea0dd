package release

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

const (
	module = "github.com/crossplane-contrib/velero-plugin-for-crossplane"
	// standard is the name of Go's own packages as a component.
	standard = "std"
)

// A bill is the build information in a program: Go's version and the modules.
type bill struct {
	*debug.BuildInfo
}

func madeOf(program string) (bill, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return bill{}, fmt.Errorf("cannot read what %s is made of: %w", program, err)
	}
	if info.Main.Path != module {
		return bill{}, fmt.Errorf("cannot list the modules of %s: it is built from module %q", program, info.Main.Path)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return bill{}, fmt.Errorf("cannot list the modules of %s: go.mod replaces %s, which a user of the module would not get", program, m.Path)
		}
	}

	return bill{BuildInfo: info}, nil
}

// bill writes the modules of a program, as CycloneDX.
func (r Release) bill(program string, made bill, suffix string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	bom, err := r.bomOf(content, made)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("cannot write what %s is made of: %w", program, err)
	}

	return os.WriteFile(r.file(suffix+".cdx.json"), b.Bytes(), 0o644)
}

func (r Release) bomOf(program []byte, made bill) (*cyclonedx.BOM, error) {
	sum := sha256.Sum256(program)
	self := component(module, r.Version, hex.EncodeToString(sum[:]))
	self.Type, self.Name = cyclonedx.ComponentTypeApplication, Name
	self.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	components := []cyclonedx.Component{component(standard, strings.TrimPrefix(made.GoVersion, "go"), "")}
	for _, m := range made.Deps {
		hash, err := hashOf(m)
		if err != nil {
			return nil, err
		}
		components = append(components, component(m.Path, m.Version, hash))
	}
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	refs := []string{}
	for i := range components {
		refs = append(refs, components[i].BOMRef)
	}
	bom := cyclonedx.NewBOM()
	// The serial number derives from the program's hash, so that another build gets the same.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum[:]).URN()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.Time.UTC().Format(time.RFC3339), Component: &self}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}

	return bom, nil
}

// component describes a Go module. A vulnerability scanner finds it by its package URL.
func component(path, version, hash string) cyclonedx.Component {
	url := "pkg:golang/" + path + "@" + version
	c := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	if hash != "" {
		c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hash}}
	}

	return c
}

// hashOf returns the hash of a module's files from go.sum, which has it in base64.
func hashOf(m *debug.Module) (string, error) {
	sum, ok := strings.CutPrefix(m.Sum, "h1:")
	b, err := base64.StdEncoding.DecodeString(sum)
	if !ok || err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("cannot name what module %s %s is: its hash is %q", m.Path, m.Version, m.Sum)
	}

	return hex.EncodeToString(b), nil
}

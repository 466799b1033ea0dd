package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// module is the path of the program's module.
const module = "github.com/crossplane-contrib/velero-plugin-for-crossplane"

// madeOf returns the build information in a program: Go's version and the modules.
func madeOf(program []byte) (*debug.BuildInfo, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return nil, fmt.Errorf("cannot read what the program is made of: %w", err)
	}
	if info.Main.Path != module {
		return nil, fmt.Errorf("cannot list the modules of the program: it is built from module %q", info.Main.Path)
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			return nil, fmt.Errorf("cannot list the modules of the program: go.mod replaces %s, which a user of the module would not get", m.Path)
		}
	}

	return info, nil
}

// bill writes the modules of a program, as CycloneDX.
func (r Release) bill(program []byte, made *debug.BuildInfo, suffix string) error {
	sum := sha256.Sum256(program)
	self := component(module, r.Version, hex.EncodeToString(sum[:]))
	self.Type, self.Name = cyclonedx.ComponentTypeApplication, Name
	self.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	components := []cyclonedx.Component{component("std", strings.TrimPrefix(made.GoVersion, "go"), "")} // Go's own packages.
	for _, m := range made.Deps {
		hash, err := hashOf(m)
		if err != nil {
			return err
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
	var b bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return fmt.Errorf("cannot write what the program is made of: %w", err)
	}

	return os.WriteFile(r.file(suffix+".cdx.json"), b.Bytes(), 0o644)
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

// licenseFile matches the files of a module that its license requires a distributor to include.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([-.].*)?$`)

// licenses returns the licenses of all modules in a program, and of Go. It fails if one has none.
func licenses(ctx context.Context, root string, made *debug.BuildInfo) ([]byte, error) {
	goroot, err := goOutput(ctx, root, made.GoVersion, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	fmt.Fprintf(&all, "%s contains the following. Their licenses follow.\n", Name)
	names, list := []string{"Go " + made.GoVersion}, []string{"list", "-m", "-f", "{{.Dir}}"}
	for _, m := range made.Deps {
		names, list = append(names, m.Path+" "+m.Version), append(list, m.Path)
	}
	dirs, err := goOutput(ctx, root, made.GoVersion, list...)
	if err != nil {
		return nil, err
	}
	for i, dir := range append([]string{goroot}, strings.Split(dirs, "\n")...) {
		if err := writeLicenses(&all, names[i], dir); err != nil {
			return nil, fmt.Errorf("cannot copy the license of %s: %w", names[i], err)
		}
	}

	return all.Bytes(), nil
}

func writeLicenses(w io.Writer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(w, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(text))
	}
	if !found {
		return fmt.Errorf("there is none in %s", dir)
	}

	return nil
}

// goOutput runs the go command of a version and returns its output.
func goOutput(ctx context.Context, dir, version string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOTOOLCHAIN="+version, "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask go %s: %w", strings.Join(args, " "), err)
	}

	return strings.TrimSpace(string(out)), nil
}

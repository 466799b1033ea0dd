package build

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Versions of the stack's programs.
const (
	Kubernetes = "v1.35.4"
	// The oldest and the newest version of the matrix that the module proxy serves.
	kubernetesV130 = "v1.30.14"
	kubernetesV137 = "v1.37.2"

	CrossplaneV2 = "v2.3.4"
	CrossplaneV1 = "v1.20.13"

	// CrossplaneV20 and CrossplaneV24 are the minors beside CrossplaneV2. They collect garbage in
	// other ways: in the background, and never resources that they don't control.
	CrossplaneV20 = "v2.0.4"
	CrossplaneV24 = "v2.4.2"
	// The minors between them.
	crossplaneV21 = "v2.1.3"
	crossplaneV22 = "v2.2.1"
)

// A Recipe is how one program is built from a Go module.
type Recipe struct {
	Name    string
	Module  string
	Version string
	// As is the path in the module's own go.mod, if it is published under another one.
	As string `json:",omitempty"`
	// Package is relative to the module's root; "" is the root itself.
	Package string
	// Replaces are "old => new version" lines for the wrapper module. A module's own replaces do
	// not count when it is a dependency.
	Replaces []string
	// Staging also replaces every module that the module's own go.mod replaces by a folder
	// ./staging/..., by its published version (k8s.io/X v0.N.P for kubernetes v1.N.P).
	Staging bool
	// Stubs maps modules that the program does not need here to the files that replace them.
	Stubs map[string]map[string]string `json:",omitempty"`
	// Ldflags are the -X settings.
	Ldflags []string
	// Env is added to the go command's environment.
	Env []string
	// Assets is a folder of the module that is kept beside the program.
	Assets string
	// OnDemand programs are built only when they are named.
	OnDemand bool `json:"-"`
}

// Two clusters can't share a metrics address, and Velero, provider-helm and Crossplane's RBAC manager
// have no flag for it.
const noMetrics = "sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0"

func recipes() []Recipe {
	list := []Recipe{
		{Name: "gofakes3", Module: "github.com/johannesboyne/gofakes3", Version: "v1.2.0", Package: "cmd/gofakes3"},
		{Name: "etcd", Module: "go.etcd.io/etcd/server/v3", Version: "v3.7.3"},
		kubernetes("kube-apiserver", "", Kubernetes),
		kubernetes("kube-controller-manager", "", Kubernetes),
		crossplane("crossplane-v2", CrossplaneV2, CrossplaneV2),
		{
			Name: "crossplane-v1", Module: "github.com/crossplane/crossplane", Version: CrossplaneV1, Package: "cmd/crossplane", Assets: "cluster/crds",
			Ldflags: []string{"github.com/crossplane/crossplane/internal/version.version=" + CrossplaneV1, noMetrics},
		},
		{Name: "function-patch-and-transform", Module: "github.com/crossplane-contrib/function-patch-and-transform", Version: "v0.5.0"},
		{
			Name: "function-auto-ready", Module: "github.com/crossplane-contrib/function-auto-ready", Version: "v0.6.0",
			As: "github.com/crossplane/function-auto-ready",
		},
		{Name: "velero-plugin-for-aws", Module: "github.com/vmware-tanzu/velero-plugin-for-aws", Version: "v1.14.3", Package: "velero-plugin-for-aws"},
	}

	v17 := velero("velero-v1.17", "v1.17.2", "v0.0.0-20250722052735-3ea24d208777")
	v16 := velero("velero-v1.16", "v1.16.2", "v0.0.0-20250227051353-20bfabbfc7a0")
	list = append(list,
		velero("velero", "v1.18.3", "v0.0.0-20251230033609-d946b1e75197", "k8s.io/cli-runtime => k8s.io/cli-runtime v0.33.10"))

	return append(list, onDemand(
		v17, v16, olderCrossplane("crossplane-v2.0", CrossplaneV20),
		olderCrossplane("crossplane-v2.1", crossplaneV21), olderCrossplane("crossplane-v2.2", crossplaneV22),
		crossplane("crossplane-v2.4", CrossplaneV24, "v2.4.0", "github.com/crossplane/crossplane-runtime/v2 => github.com/crossplane/crossplane-runtime/v2 v2.4.0"),
		kubernetes("kubectl", "", Kubernetes),
		kustomizeController(),
		kubernetes("kube-apiserver", "-v1.30", kubernetesV130), kubernetes("kube-controller-manager", "-v1.30", kubernetesV130),
		kubernetes("kube-apiserver", "-v1.37", kubernetesV137), kubernetes("kube-controller-manager", "-v1.37", kubernetesV137),
		Recipe{
			// The last version that Go 1.26 builds: v1.4.0 requires Go 1.27.
			Name: "provider-kubernetes", Module: "github.com/crossplane-contrib/provider-kubernetes", Version: "v1.3.1", Package: "cmd/provider",
			Assets: "package/crds", Stubs: map[string]map[string]string{"github.com/nebius/gosdk": gosdk},
		},
		Recipe{
			Name: "provider-helm", Module: "github.com/crossplane-contrib/provider-helm", Version: "v1.0.6", Package: "cmd/provider", Assets: "package/crds",
			Ldflags: []string{noMetrics},
		},
	)...)
}

// onDemand marks recipes as built only when they are named.
func onDemand(list ...Recipe) []Recipe {
	for i := range list {
		list[i].OnDemand = true
	}

	return list
}

// kubernetes is the recipe of a program of Kubernetes. The suffix in its name distinguishes its
// version.
func kubernetes(program, suffix, version string) Recipe {
	return Recipe{
		Name: program + suffix, Module: "k8s.io/kubernetes", Version: version, Package: "cmd/" + program, Staging: true,
		Ldflags: []string{"k8s.io/component-base/version.gitVersion=" + version},
	}
}

// Version returns the version of a program that is built from a published module; "" if there is no
// such program.
func Version(name string) string {
	for _, r := range recipes() {
		if r.Name == name {
			return r.Version
		}
	}

	return ""
}

// crossplane is the recipe of a Crossplane whose APIs are a module of their own, which it replaces
// by a folder. The module proxy does not serve every patch version of that module, nor of
// crossplane-runtime.
func crossplane(name, version, apis string, replaces ...string) Recipe {
	return Recipe{
		Name: name, Module: "github.com/crossplane/crossplane/v2", Version: version, Package: "cmd/crossplane", Assets: "cluster/crds",
		Replaces: append([]string{"github.com/crossplane/crossplane/apis/v2 => github.com/crossplane/crossplane/apis/v2 " + apis}, replaces...),
		Ldflags:  []string{"github.com/crossplane/crossplane-runtime/v2/pkg/version.version=" + version, noMetrics},
	}
}

// olderCrossplane is the recipe of a Crossplane that had its version in a package of its own and
// whose APIs were no module yet.
func olderCrossplane(name, version string) Recipe {
	return Recipe{
		Name: name, Module: "github.com/crossplane/crossplane/v2", Version: version, Package: "cmd/crossplane", Assets: "cluster/crds",
		Ldflags: []string{"github.com/crossplane/crossplane/v2/internal/version.version=" + version, noMetrics},
	}
}

func velero(name, version, kopia string, replaces ...string) Recipe {
	return Recipe{
		Name: name, Module: "github.com/vmware-tanzu/velero", Version: version, Package: "cmd/velero",
		Replaces: append([]string{"github.com/kopia/kopia => github.com/project-velero/kopia " + kopia}, replaces...),
		Ldflags:  []string{"github.com/vmware-tanzu/velero/pkg/buildinfo.Version=" + version, noMetrics},
		// The checksum database does not know every version of Velero's fork of kopia.
		Env: []string{"GONOSUMDB=github.com/project-velero/*"},
	}
}

// kustomizeController is the recipe of Flux's controller that applies and prunes. It is the last
// version that Go 1.26 builds. Its APIs are a module of their own, which it replaces by a folder.
func kustomizeController() Recipe {
	return Recipe{
		Name: "kustomize-controller", Module: "github.com/fluxcd/kustomize-controller", Version: "v1.9.6", Assets: "config/crd/bases",
		Replaces: []string{
			"github.com/opencontainers/go-digest => github.com/opencontainers/go-digest v1.0.1-0.20220411205349-bde1400a84be",
			"sigs.k8s.io/kustomize/api => sigs.k8s.io/kustomize/api v0.21.1",
			"sigs.k8s.io/kustomize/kyaml => sigs.k8s.io/kustomize/kyaml v0.21.1",
			"gopkg.in/yaml.v3 => gopkg.in/yaml.v3 v3.0.1",
		},
	}
}

// A local program is built from a module of this repository.
type local struct {
	Name string
	// Dir is the module's folder, relative to the repository's root.
	Dir     string
	Package string
	// Assets is a folder of the repository.
	Assets string
}

func locals() []local {
	return []local{
		{Name: "plugin", Dir: ".", Package: "."},
		{Name: "applier", Dir: "test/applier", Package: "."},
		{Name: "cloud", Dir: "test/cloud", Package: "./cmd/cloud"},
		{Name: "function-gate", Dir: "test/gate", Package: "."},
		{Name: "provider-cloud", Dir: "test/cloud", Package: "./cmd/provider", Assets: "test/cloud/crds"},
		{Name: "skew", Dir: "test", Package: "./stack/cmd/skew"},
		{Name: "provider-upjet", Dir: "test/upjet", Package: "./cmd/provider", Assets: "test/upjet/crds"},
	}
}

// Names lists every program that can be built, in the order in which they are built.
func Names() []string {
	return names(func(Recipe) bool { return true })
}

func names(which func(Recipe) bool) []string {
	var names []string
	for _, r := range recipes() {
		if which(r) {
			names = append(names, r.Name)
		}
	}
	for _, l := range locals() {
		names = append(names, l.Name)
	}

	return names
}

// namesOf returns the names of programs.
func namesOf(list []Recipe) []string {
	var names []string
	for _, r := range list {
		names = append(names, r.Name)
	}

	return names
}

func (r Recipe) target() string {
	if r.Package == "" {
		return r.path()
	}

	return r.path() + "/" + r.Package
}

// path returns the import path of the module's packages.
func (r Recipe) path() string { return cmp.Or(r.As, r.Module) }

// key names the directory in the cache. It changes when the recipe does.
func (r Recipe) key() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("cannot encode the recipe of %s: %v", r.Name, err)) // Strings, slices and maps of them, and a bool always encode.
	}
	sum := sha256.Sum256(b)

	return r.Version + "-" + hex.EncodeToString(sum[:4])
}

// stagingReplaces turns the folder replaces of Kubernetes' go.mod into replaces by published
// versions.
func stagingReplaces(replaced []string, version string) []string {
	published := "v0" + strings.TrimPrefix(version, "v1")
	var lines []string
	for _, path := range replaced {
		lines = append(lines, fmt.Sprintf("%s => %s %s", path, path, published))
	}
	slices.Sort(lines)

	return lines
}

//go:build matrix

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/fields"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestMatrixManifestsV2 loses and restores the worlds of Crossplane's own end-to-end tests, which are in
// its module, with MRs of the cloud in place of provider-nop's.
func TestMatrixManifestsV2(t *testing.T) {
	testManifests(t, stack.V2, "v2", string(stack.V2), "github.com/crossplane/crossplane/v2")
}

// TestMatrixManifestsV1 does so with those of Crossplane v1.20.
func TestMatrixManifestsV1(t *testing.T) {
	testManifests(t, stack.V1, "v1.20", string(stack.V1), "github.com/crossplane/crossplane")
}

func testManifests(t *testing.T, version stack.Version, dir, program, module string) {
	t.Helper()
	t.Parallel()
	root, err := fields.Module(t.Context(), program, module)
	must(t, err)
	root = filepath.Join(root, "test", "e2e", "manifests")
	to := t.TempDir()
	taken := 0
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "setup" {
			return err
		}
		from := filepath.Dir(path)
		switch err := takeManifests(from, to, fmt.Sprintf("theirs%02d", taken), dir); {
		case errors.Is(err, errNotTaken):
			t.Logf("%s: %v", strings.TrimPrefix(from, root), err)
		case err != nil:
			return err
		default:
			t.Logf("%s is case theirs%02d", strings.TrimPrefix(from, root), taken)
			taken++
		}

		return nil
	}))
	if taken < 6 {
		t.Fatalf("only %d folders of %s can be restored here", taken, root)
	}
	loaded, err := cases.Load(to, dir)
	must(t, err)
	s := newStageOf(t, stack.Options{Crossplane: version, Plugin: true, KubernetesProvider: true, UpjetProvider: true, Gate: true})
	s.testLoaded(t, loaded, "")
}

var errNotTaken = errors.New("cannot be restored here")

// neverReady are folders whose XRs Crossplane refuses to compose, or has no Function for.
var neverReady = []string{"invalid-composed", "namespaced-xr-no-cluster-scoped-resource", "referenceable-version-change"}

// takeManifests makes a case of a folder: a platform of what is in setup, and the claims and XRs.
func takeManifests(from, to, name, version string) error {
	if slices.Contains(neverReady, filepath.Base(from)) {
		return fmt.Errorf("%w: its XRs are never Ready", errNotTaken)
	}
	platform, err := manifestsOf(filepath.Join(from, "setup"))
	if err != nil {
		return err
	}
	instances, err := manifestsOf(from)
	if err != nil {
		return err
	}
	m := &borrowed{name: name, renamed: map[string]string{}, group: map[string]string{}, kinds: map[string]bool{}}
	if platform, err = m.platform(firstStates(platform)); err != nil {
		return err
	}
	instances = slices.DeleteFunc(instances, func(u *unstructured.Unstructured) bool {
		return !m.kinds[u.GetKind()+"."+u.GroupVersionKind().Version] || m.renamed[u.GetName()] != ""
	})
	if len(instances) == 0 {
		return fmt.Errorf("%w: it has no claim and no XR", errNotTaken)
	}
	instances = firstStates(instances)
	m.rename(instances)

	dir := filepath.Join(to, name)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("cannot make a case of %s: %w", from, err)
	}
	about := map[string]any{
		"reason": "The world of Crossplane's test " + filepath.Base(from) + " is as before.", "versions": []string{version}, "count": 1, "ownNames": m.clusterScoped,
	}
	files := map[string]any{"case.yaml": about}
	for file, objects := range map[string][]*unstructured.Unstructured{"platform.yaml": platform, "objects.yaml": instances} {
		var all []string
		for _, u := range objects {
			if m.unclaimed && file == "objects.yaml" {
				u.SetLabels(map[string]string{"scene": name})
			}
			b, err := yaml.Marshal(m.own(u.Object, ""))
			if err != nil {
				return fmt.Errorf("cannot encode %s: %w", u.GetName(), err)
			}
			all = append(all, string(b))
		}
		files[file] = strings.Join(all, "---\n")
	}
	if text, _ := files["platform.yaml"].(string); strings.Contains(text, "namespace: "+name+"\n") {
		about["alone"] = "Its Composition names a namespace."
	}
	if version == "v2" && m.clusterScoped { // A Secret that an XR's UID names keeps its name.
		about["expect"] = map[string]any{"oldUIDs": true}
	}
	if m.unclaimed {
		var names []string
		for _, u := range instances {
			names = append(names, m.renamed[u.GetName()])
		}
		selector := fmt.Sprintf("scene=%s or crossplane.io/composite in (%s)", name, strings.Join(names, ","))
		about["backup"] = []string{"--include-cluster-resources=true", "--or-selector", selector}
	}
	text, _ := files["objects.yaml"].(string)
	for _, u := range instances { // Bystanders have the names of the case, or others.
		text = strings.ReplaceAll(text, m.renamed[u.GetName()], "${scene}"+strings.TrimPrefix(m.renamed[u.GetName()], name))
	}
	files["objects.yaml"] = text
	for file, content := range files {
		text, ok := content.(string)
		if !ok {
			b, err := yaml.Marshal(content)
			if err != nil {
				return fmt.Errorf("cannot encode %s: %w", file, err)
			}
			text = string(b)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			return fmt.Errorf("cannot write a case of %s: %w", from, err)
		}
	}

	return nil
}

// firstStates returns objects without the later states of each, which are other files of its folder.
func firstStates(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	seen := map[string]bool{}

	return slices.DeleteFunc(objects, func(u *unstructured.Unstructured) bool {
		was := seen[u.GetKind()+u.GetName()]
		seen[u.GetKind()+u.GetName()] = true

		return was
	})
}

// manifestsOf returns the objects in the files of a folder, in the order of their names.
func manifestsOf(dir string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", dir, err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a manifest: %w", err)
		}
		objects, err := stack.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("cannot parse %s: %w", file, err)
		}
		all = append(all, objects...)
	}

	return all, nil
}

// borrowed manifests are a folder's, which get names and a group of their own.
type borrowed struct {
	name           string
	renamed, group map[string]string
	// kinds of XRs and claims, as Kind.version.
	kinds map[string]bool
	// clusterScoped is whether there are cluster-scoped XRs, and unclaimed whether no claim can lead to them.
	clusterScoped, unclaimed bool
}

// platform returns what can be applied, or why the folder can't be taken.
func (m *borrowed) platform(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, u := range objects {
		switch spec, _ := u.Object["spec"].(map[string]any); u.GetKind() {
		case "Provider", "Function":
			image, _ := spec["package"].(string)
			image, _, _ = strings.Cut(filepath.Base(image), ":")
			function := map[string]string{"function-dummy": stack.Gate, "function-auto-ready": stack.AutoReady, "function-patch-and-transform": stack.Function, "provider-nop": "-"}[image]
			if function == "" {
				return nil, fmt.Errorf("%w: there is no %s", errNotTaken, image)
			}
			m.renamed[u.GetName()] = function

			continue
		case "CompositeResourceDefinition":
			group, _ := spec["group"].(string)
			m.group[group] = m.name + ".example.org"
			scope, _ := spec["scope"].(string)
			m.unclaimed = m.unclaimed || scope == "Cluster"
			m.clusterScoped = m.clusterScoped || scope != "Namespaced" && (scope != "" || u.GroupVersionKind().Version == "v1")
			u.SetName(strings.TrimSuffix(u.GetName(), group) + m.group[group]) // A Composition can have the name of an XRD.
			for _, names := range []string{"names", "claimNames"} {
				kind, _, _ := unstructured.NestedString(spec, names, "kind")
				versions, _, _ := unstructured.NestedSlice(spec, "versions")
				for _, v := range versions {
					version, _ := v.(map[string]any)
					m.kinds[fmt.Sprint(kind, ".", version["name"])] = true
				}
			}
		case "Composition":
			if spec["environment"] != nil {
				return nil, fmt.Errorf("%w: environments of Compositions are off by default", errNotTaken)
			}
			m.rename([]*unstructured.Unstructured{u})
		case "Secret", "ConfigMap", "EnvironmentConfig":
			m.rename([]*unstructured.Unstructured{u})
		default:
			return nil, fmt.Errorf("%w: it has a %s", errNotTaken, u.GetKind())
		}
		all = append(all, u)
	}
	if len(m.kinds) == 0 {
		return nil, fmt.Errorf("%w: it has no XRD", errNotTaken)
	}

	return all, nil
}

// rename gives objects the name of the case.
func (m *borrowed) rename(objects []*unstructured.Unstructured) {
	for _, u := range objects {
		m.renamed[u.GetName()] = m.name + "-" + strings.ReplaceAll(u.GetName(), ".", "-")
	}
}

// own returns a value with the case's names, group and namespace, and with MRs of the cloud.
func (m *borrowed) own(value any, key string) any {
	switch v := value.(type) {
	case map[string]any:
		nop, _ := v["apiVersion"].(string)
		out := map[string]any{}
		for key, below := range v {
			out[key] = m.own(below, key)
		}
		if !strings.HasPrefix(nop, "nop.crossplane.io/") {
			return out
		}
		out["apiVersion"], out["kind"] = "cloud.example.org/v1alpha1", "Bucket"
		if spec, ok := out["spec"].(map[string]any); ok {
			spec["forProvider"] = map[string]any{}
			delete(spec, "writeConnectionSecretToRef")
		}

		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.own(v[i], key)
		}

		return out
	case string:
		if key == "namespace" && v == "default" {
			return m.name
		}
		if to, ok := m.renamed[v]; ok {
			return to
		}
		for group, to := range m.group {
			switch {
			case strings.HasSuffix(v, "."+to): // An XRD has it already.
				return v
			case v == group:
				return to
			case strings.HasPrefix(v, group+"/"):
				return to + strings.TrimPrefix(v, group)
			case (key == "name" || key == "group") && strings.HasSuffix(v, "."+group):
				return strings.TrimSuffix(v, group) + to
			}
		}

		return v
	default:
		return v
	}
}

package fields

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cases"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A world has the manifests of a folder.
type world struct {
	name, dir string
	version   stack.Version
	objects   []*unstructured.Unstructured
}

// Mark notes in the tables which manifests set a field. Those of cases come first.
func (all *Inventory) Mark(root string) error {
	read, err := worlds(root)
	if err != nil {
		return err
	}

	return all.mark(read)
}

func (all *Inventory) mark(read []world) (err error) {
	roles := map[string]string{}
	for _, w := range read {
		for _, u := range w.objects {
			each(u.Object, func(m map[string]any) { w.define(roles, m) })
		}
	}
	for _, w := range read {
		find := func(m map[string]any) *Table {
			group, _, _ := strings.Cut(fmt.Sprint(m["apiVersion"]), "/")
			kind := fmt.Sprintf("%v.%s", m["kind"], group)
			if parts := strings.SplitN(fmt.Sprint(m["kind"]), ".", 3); len(parts) == 3 {
				kind = parts[0] + "." + parts[2] // In a step of a case.
			}
			if title, ok := roles[string(w.version)+" "+kind]; ok {
				return all.table(title)
			}

			return all.of(kind)
		}
		for _, u := range w.objects {
			each(u.Object, func(m map[string]any) {
				mark(m, w.name, find)
				for key, title := range map[string]string{"backup": "Backup", "args": "Backup", "restore": "Restore"} {
					if key == "args" && m["name"] == nil {
						title = "Restore" // Only a backup has a name there.
					}
					if args, ok := m[key].([]any); ok && err == nil {
						err = all.flags(title, args, w.name)
					}
				}
			})
		}
	}

	return err
}

// each calls a function for a value's maps.
func each(value any, do func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		do(v)
		for _, below := range v {
			each(below, do)
		}
	case []any:
		for _, below := range v {
			each(below, do)
		}
	}
}

// define notes which tables the kinds of an XRD belong to.
func (w *world) define(roles map[string]string, m map[string]any) {
	spec, ok := m["spec"].(map[string]any)
	if !ok || m["kind"] != "CompositeResourceDefinition" {
		return
	}
	role := xr
	if scope, _ := spec["scope"].(string); scope == "LegacyCluster" || !strings.HasSuffix(fmt.Sprint(m["apiVersion"]), "/v2") {
		role = legacy
	}
	for key, role := range map[string]string{"names": role, "claimNames": claim} {
		if names, ok := spec[key].(map[string]any); ok {
			roles[fmt.Sprintf("%s %v.%v", w.version, names["kind"], spec["group"])] = role
		}
	}
}

// mark notes what an object sets, what a template's patches set in its base, or a case's step in others.
func mark(m map[string]any, who string, find func(map[string]any) *Table) {
	t := find(m)
	for key, value := range m {
		switch base, _ := m["base"].(map[string]any); {
		case m["kind"] == "Schedule" && key == "spec":
			spec, _ := value.(map[string]any)
			find(map[string]any{"apiVersion": "velero.io/v1", "kind": "Backup"}).set(key, spec["template"], who)
		case key == "patches" && base != nil && find(base) != nil:
			for _, patch := range items(value) {
				from, _ := patch["fromFieldPath"].(string)
				to, ok := patch["toFieldPath"].(string)
				if !ok {
					to = from
				}
				if of, _ := patch["type"].(string); !strings.Contains(of, "To") {
					find(base).set(regexp.MustCompile(`\[\d+\]`).ReplaceAllString(to, "[]"), nil, who)
				}
			}
		case t == nil:
		case key == "merge":
			t.set("", value, who)
		case key == "json":
			for _, op := range items(value) {
				path := regexp.MustCompile(`/(\d+|-)(/|$)`).ReplaceAllString(fmt.Sprint(op["path"]), "[]$2")
				t.set(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."), op["value"], who)
			}
		case !isCommon(key):
			t.set(key, value, who)
		}
	}
}

// items returns the maps in a list.
func items(list any) (all []map[string]any) {
	values, _ := list.([]any)
	for _, value := range values {
		if m, ok := value.(map[string]any); ok {
			all = append(all, m)
		}
	}

	return all
}

// set notes who sets a field, what it belongs to, and what it has.
func (t *Table) set(path string, value any, who string) {
	for i, r := range path + "." {
		if r == '.' && !slices.Contains(t.Set[path[:i]], who) {
			t.Set[path[:i]] = append(t.Set[path[:i]], who)
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			t.set(strings.TrimPrefix(path+"."+name, "."), below, who)
		}
	case []any:
		t.set(path+"[]", nil, who)
		for _, below := range v {
			t.set(path+"[]", below, who)
		}
	}
}

// flags notes the fields that flags of velero backup create or velero restore create set.
func (all *Inventory) flags(title string, args []any, who string) error {
	t := all.table(title)
	for i, arg := range args {
		flag, value, ok := strings.Cut(fmt.Sprint(arg), "=")
		if !ok && i+1 < len(args) {
			value = fmt.Sprint(args[i+1])
		}
		path, known := all.Flags[flag]
		switch {
		case !strings.HasPrefix(flag, "--"):
		case !known:
			return fmt.Errorf("cannot tell which field of a %s the flag %s in %s sets", title, flag, who)
		case !strings.Contains(flag, "selector"):
			t.set(path, nil, who)
		default:
			for part := range strings.SplitSeq(value, " or ") {
				if strings.ContainsAny(part, "(!") {
					t.set(path, map[string]any{"matchExpressions": []any{map[string]any{"key": "", "operator": "", "values": []any{""}}}}, who)
				} else {
					t.set(path+".matchLabels", nil, who)
				}
			}
		}
	}

	return nil
}

// worlds reads the manifests of the cases, the examples, and the other tests.
func worlds(root string) ([]world, error) {
	var all []world
	for _, version := range []string{"v2", "v1.20"} {
		of, err := cases.Load(filepath.Join(root, "test", "cases"), version)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(of)) {
			all = append(all, world{name: name, dir: of[name].Dir, version: versionOf(version)})
		}
	}
	for _, pattern := range []string{"example/*", "test/e2e/testdata/*/*"} {
		dirs, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(dirs) == 0 {
			return nil, fmt.Errorf("cannot find manifests in %s: %w", pattern, err)
		}
		for _, dir := range dirs {
			name := strings.TrimPrefix(strings.TrimPrefix(dir, root+"/"), "test/e2e/")
			all = append(all, world{name: name, dir: dir, version: versionOf(name)})
		}
	}
	for i := range all {
		if err := filepath.WalkDir(all[i].dir, all[i].add); err != nil {
			return nil, fmt.Errorf("cannot read the manifests in %s: %w", all[i].dir, err)
		}
	}

	return all, nil
}

func versionOf(name string) stack.Version {
	if strings.Contains(name, "v1.20") {
		return stack.V1
	}

	return stack.V2
}

// add adds what a file has, as a scene reads it.
func (w *world) add(path string, _ fs.DirEntry, err error) error {
	file := filepath.Base(path)
	switch {
	case err != nil:
		return err
	case strings.HasSuffix(file, "-v1.yaml") && !w.version.IsV1():
		return nil
	case strings.HasSuffix(file, ".yaml"):
		scene := drill.Scene{Name: filepath.Base(w.dir), Dir: filepath.Dir(path), Crossplane: w.version}
		objects, err := scene.Read(file)
		w.objects = append(w.objects, objects...)

		return err
	}

	return nil
}

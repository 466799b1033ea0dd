package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// planted is a value that occurs nowhere by chance, and that has another form in JSON.
const planted = "pl4nted-Zx9\"<q>&\\7-s3cret"

// plantedSecrets are Secrets beside those of the cloud's databases: one that claims to be composed,
// and one whose value is also encoded twice.
//
//nolint:gosec // They are no real credentials.
const plantedSecrets = `
apiVersion: v1
kind: Secret
metadata:
  namespace: %[1]s
  name: planted-composed
  labels: {crossplane.io/composite: %[2]s}
  annotations: {crossplane.io/composition-resource-name: planted}
data: {password: %[3]s}
---
apiVersion: v1
kind: Secret
metadata: {namespace: %[1]s, name: planted-credentials}
data: {password: %[3]s, nested: %[4]s}
`

// plant creates Secrets in a tenant's namespace whose values are the planted one.
func (s *suite) plant(t *testing.T, n *tenant) {
	t.Helper()
	once := base64.StdEncoding.EncodeToString([]byte(planted))
	must(t, s.target.Apply(t.Context(), fmt.Appendf(nil, plantedSecrets, n.Namespace, n.Name(0), once, base64.StdEncoding.EncodeToString([]byte(once)))))
}

// testSecrets searches for the values of Secrets in all that Velero and the plugin have written
// since the suite began, and in the output of the commands.
func (s *suite) testSecrets(t *testing.T, n *tenant) {
	values := []string{planted}
	resources, err := s.cloud.List(t.Context())
	must(t, err)
	for _, r := range resources {
		if r.Connection != nil {
			values = append(values, r.Connection.Password)
		}
	}
	if len(values) < 3 {
		t.Fatalf("the cloud has only %d passwords", len(values)-1)
	}
	places := s.files(t)
	keep := func(kind schema.GroupVersionKind, namespace string) {
		objects, err := list(t.Context(), s.target, kind, namespace, "")
		must(t, err)
		b, err := json.Marshal(unstructured.UnstructuredList{Items: objects})
		must(t, err)
		places[kind.Kind+"s in "+namespace] = b
	}
	for _, kind := range []string{"Backup", "Restore"} {
		keep(schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: kind}, "velero")
	}
	for _, namespace := range []string{"default", "velero", n.Namespace} {
		keep(schema.GroupVersionKind{Version: "v1", Kind: "Event"}, namespace)
	}
	objects, err := n.Objects(t.Context(), s.target)
	must(t, err)
	for _, u := range objects {
		places["the metadata of "+u.GetKind()+" "+u.GetName()] = fmt.Appendf(nil, "%v", u.Object["metadata"])
	}
	s.addCommands(t, places, n)
	for _, leak := range leakedValues(values, places) {
		t.Error(leak)
	}
}

// addCommands adds the output of each command to places, in each format, also when it fails.
func (s *suite) addCommands(t *testing.T, places map[string][]byte, n *tenant) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.tar.gz")
	_, err := s.target.Velero(t.Context(), "backup", "download", n.Namespace, "-o", file)
	must(t, err)
	b, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file+".cut", b[:len(b)*2/3], 0o600))
	lines := [][]string{{"inspect", file + ".cut"}, {"wait", "-n", n.Namespace, "--timeout", "0s"}, {"release", "-n", n.Namespace, "nobody"}, {"release", "--dry-run", "-o", "yaml"}}
	for _, format := range []string{"wide", "json", "html", "openmetrics"} {
		lines = append(lines, []string{"inspect", file, "--against", "-o", format}, []string{"validate", "-o", format})
	}
	for _, args := range lines {
		r := command(t, s.target, args...)
		if r.stdout == "" && r.stderr == "" {
			t.Errorf("%v has written nothing", args)
		}
		places["the command "+strings.Join(args, " ")] = []byte(r.stdout + r.stderr)
	}
}

// TestLeaks expects a planted value to be found in each form.
func TestLeaks(t *testing.T) {
	object, err := json.Marshal(map[string]any{"data": map[string][]byte{"password": []byte(planted)}, "stringData": map[string]string{"password": planted}})
	must(t, err)
	texts := map[string]string{
		"plain": "password: " + planted + ";", "base64": base64.StdEncoding.EncodeToString([]byte(planted)), "JSON": string(object),
		"JSON in JSON": strconv.Quote(string(object)), "logged": fmt.Sprintf("msg=%q", planted), "logged by Go": fmt.Sprintf("%+v", map[string]string{"password": planted}),
	}
	for name, text := range texts {
		if len(leakedValues([]string{"other", planted}, map[string][]byte{name: []byte(text)})) != 1 {
			t.Errorf("%s is not found in %s", planted, text)
		}
	}
	if found := leakedValues([]string{planted}, map[string][]byte{"none": []byte("password: " + strings.ToUpper(planted) + planted[1:])}); len(found) > 0 {
		t.Errorf("a value that does not occur is found: %v", found)
	}
}

// forms returns the forms that a value can have in a text.
func forms(v string) []string {
	inHTML, _ := json.Marshal(v) // Encoding a string can't fail.
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // As above.
	quoted := func(s string) string { return strings.Trim(strings.TrimSpace(s), `"`) }
	all := []string{
		v, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(v)), "="), strings.TrimRight(base64.URLEncoding.EncodeToString([]byte(v)), "="),
		quoted(string(inHTML)), quoted(plain.String()), quoted(strconv.Quote(v)),
	}
	// This is JSON in a JSON string, such as a patch in a log.
	again, _ := json.Marshal(quoted(plain.String())) // As above.
	all = append(all, quoted(string(again)))
	slices.Sort(all)

	return slices.Compact(all)
}

// leakedValues returns the places that have one of the values.
func leakedValues(values []string, places map[string][]byte) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(places)) {
		for i, v := range values {
			if slices.ContainsFunc(forms(v), func(form string) bool { return bytes.Contains(places[name], []byte(form)) }) {
				found = append(found, fmt.Sprintf("%s has the value %d of a Secret", name, i))
			}
		}
	}

	return found
}

// files returns the logs of Velero's process, which include the plugin's, and Velero's stored files
// without the backups themselves.
func (s *suite) files(t *testing.T) map[string][]byte {
	t.Helper()
	places := map[string][]byte{}
	must(t, filepath.WalkDir(s.host.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		stored := strings.Contains(path, "/buckets/")
		if !stored && d.Name() != stack.Velero+".log" || strings.HasSuffix(path, "/"+filepath.Base(filepath.Dir(path))+".tar.gz") {
			return nil
		}
		b, err := os.ReadFile(path) //nolint:gosec // The directory is the test's own.
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, "gz") {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				return err
			}
			if b, err = io.ReadAll(z); err != nil {
				return err
			}
		}
		name, err := filepath.Rel(s.host.Dir(), path)
		places[name] = b

		return err
	}))
	for _, suffix := range []string{"velero.log", "-logs.gz", "-results.gz", "-resource-list.json.gz"} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(places)), func(name string) bool { return strings.HasSuffix(name, suffix) }) {
			t.Errorf("there is no file like %s", suffix)
		}
	}

	return places
}

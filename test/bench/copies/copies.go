// Package copies makes a large backup from a small one: it copies one tree many times, so that no
// cluster has to compose the trees.
package copies

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Root is the name of the XR of a Template's tree. The names of the copies have the same length,
// and so have all names derived from them.
const Root = "tree-000000"

const externalName = "crossplane.io/external-name"

// Name returns the name of the i-th copy of Root.
func Name(i int) string { return fmt.Sprintf("tree-%06d", i) }

// An External is a cloud resource of a Template's tree.
type External struct {
	Kind, Name string
}

// Renamed returns the name of the i-th copy's cloud resource, if the name is derived from the
// tree's; otherwise the cloud chooses it.
func (e External) Renamed(i int) (string, bool) {
	return strings.Replace(e.Name, Root, Name(i), 1), strings.HasPrefix(e.Name, Root)
}

// A Template is a backup of one tree.
type Template struct {
	// shared is in the backup once, and tree as often as there are copies.
	shared, tree []file
	// uids are the UIDs of the objects in the tree.
	uids []string
	// kind of the XR, with its group.
	kind      string
	externals []External
}

type file struct {
	name    string
	content []byte
}

// Read reads the tar file of a backup with the tree of Root. It leaves out Events: Velero does not
// restore them, and their number differs from run to run.
func Read(r io.Reader) (*Template, error) {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("cannot unzip the backup: %w", err)
	}
	t := &Template{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the backup: %w", err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s in the backup: %w", header.Name, err)
		}
		if err := t.add(file{name: header.Name, content: content}); err != nil {
			return nil, err
		}
	}
	if t.kind == "" {
		return nil, fmt.Errorf("cannot find the tree of %s in the backup", Root)
	}

	return t, nil
}

func (t *Template) add(f file) error {
	name := path.Base(f.name)
	switch {
	case strings.HasPrefix(f.name, "resources/events"):
		return nil
	case !strings.HasPrefix(name, Root):
		t.shared = append(t.shared, f)

		return nil
	}
	t.tree = append(t.tree, f)
	if strings.Contains(f.name, "-preferredversion/") { // It is a second file of the same object.
		return nil
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(f.content, &u.Object); err != nil {
		return fmt.Errorf("cannot parse %s in the backup: %w", f.name, err)
	}
	t.uids = append(t.uids, string(u.GetUID()))
	if u.GetName() == Root {
		t.kind = u.GroupVersionKind().GroupKind().String()
	}
	if external := u.GetAnnotations()[externalName]; external != "" {
		t.externals = append(t.externals, External{Kind: u.GetKind(), Name: external})
	}

	return nil
}

// Externals returns the cloud resources of the tree.
func (t *Template) Externals() []External { return t.externals }

// Size returns the number of objects in a tree.
func (t *Template) Size() int { return len(t.uids) }

// Shared returns the number of objects that do not depend on the number of trees.
func (t *Template) Shared() int {
	n := 0
	for _, f := range t.shared {
		if strings.HasSuffix(f.name, ".json") && !strings.Contains(f.name, "-preferredversion/") {
			n++
		}
	}

	return n
}

// Write writes a backup with n copies of the tree. The i-th copy has Name(i) in place of Root and
// other UIDs. Each external name that is not derived from Root is the one that the function
// returns.
func (t *Template) Write(w io.Writer, n int, external func(copied int, of External) string) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, f := range t.shared {
		if err := write(archive, f); err != nil {
			return err
		}
	}
	for i := range n {
		replacer := t.replacer(i, external)
		for _, f := range t.tree {
			err := write(archive, file{name: strings.Replace(f.name, Root, Name(i), 1), content: []byte(replacer.Replace(string(f.content)))})
			if err != nil {
				return err
			}
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		return fmt.Errorf("cannot write the end of the copies: %w", err)
	}

	return nil
}

// replacer returns the replacements for the i-th copy of the tree.
func (t *Template) replacer(i int, external func(int, External) string) *strings.Replacer {
	pairs := []string{Root, Name(i), t.manager(Root), t.manager(Name(i))}
	for _, uid := range t.uids {
		pairs = append(pairs, uid, otherUID(uid, i))
	}
	for _, e := range t.externals {
		if _, renamed := e.Renamed(i); !renamed {
			pairs = append(pairs, e.Name, external(i, e))
		}
	}

	return strings.NewReplacer(pairs...)
}

// manager returns the suffix of the field manager for the resources that Crossplane composes for an
// XR (ComposedFieldOwnerName in its composition_functions.go).
func (t *Template) manager(name string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(name+t.kind)))
}

// otherUID returns a UID for the i-th copy of an object.
func otherUID(uid string, i int) string {
	return uuid.NewHash(sha256.New(), uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d", uid, i), 8).String()
}

func write(w *tar.Writer, f file) error {
	if err := w.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.content)), Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
		return fmt.Errorf("cannot write the header of %s: %w", f.name, err)
	}
	if _, err := io.Copy(w, bytes.NewReader(f.content)); err != nil {
		return fmt.Errorf("cannot write %s: %w", f.name, err)
	}

	return nil
}

package archive

import (
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Names of directories and files in a backup (velero pkg/apis/velero/v1/constants.go).
const (
	fileFormat    = "metadata/version"
	dirResources  = "resources"
	dirNamespaces = "namespaces"
	dirCluster    = "cluster"
	preferred     = "-preferredversion"
	extension     = ".json"
)

// A place is what a path of a backup says of its file.
type place struct {
	xp.Item

	// version is the directory of a version, if it is in one: Velero writes each item there and, if
	// it is the preferred version, above it too.
	version string
}

// clean returns a path as it would be written, below the top of the archive. It fails if that is
// elsewhere: such paths are written by who wants to overwrite something on the machine that
// extracts them.
func clean(name string) (string, error) {
	if strings.ContainsAny(name, "\\\x00") || path.IsAbs(name) || !isLocal(name) {
		return "", fmt.Errorf("cannot accept the entry %q: it leads out of the archive, which nothing that Velero writes does; find out who has written it", name)
	}

	return path.Clean(name), nil
}

func isLocal(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return false
		}
	}

	return name != ""
}

// parse returns what a path says; ok is false if it is not the path of an item.
func parse(name string) (p place, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) < 4 || parts[0] != dirResources {
		return p, false
	}
	p.GroupResource = schema.ParseGroupResource(parts[1])
	rest := parts[2:]
	if rest[0] != dirNamespaces && rest[0] != dirCluster {
		p.version, rest = rest[0], rest[1:]
	}
	file := rest[len(rest)-1]
	p.Name = strings.TrimSuffix(file, extension)
	switch {
	case p.Name == "" || p.Name == file || p.Resource == "":
		return place{}, false
	case len(rest) == 2 && rest[0] == dirCluster:
		return p, true
	case len(rest) == 3 && rest[0] == dirNamespaces:
		p.Namespace = rest[1]

		return p, true
	default:
		return place{}, false
	}
}

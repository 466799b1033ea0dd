package archive

import (
	"path"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// These are names in a backup (velero pkg/apis/velero/v1/constants.go).
const (
	fileFormat    = "metadata/version"
	dirResources  = "resources"
	dirNamespaces = "namespaces"
	dirCluster    = "cluster"
	preferred     = "-preferredversion"
	extension     = ".json"
)

// longestFormat is how many bytes of the file fileFormat are read.
const longestFormat = 64

// A place is what a path states about its file.
type place struct {
	xp.Item

	// version is the version's directory; "" if there is none. Velero writes each item into such a
	// directory, and the preferred version above it too.
	version string
}

// clean returns a cleaned path. It fails if the path leads out of the archive: only an attacker who
// wants to overwrite files on extraction writes such a path.
func clean(name string) (string, error) {
	if strings.ContainsAny(name, "\\\x00") || !filepath.IsLocal(name) {
		return "", refused(name, "its path leads out of the archive, which no path of Velero does")
	}

	return path.Clean(name), nil
}

// parse parses the path of an item; ok is false for any other path.
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

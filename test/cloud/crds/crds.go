// Package crds has the CustomResourceDefinitions of the provider's kinds. They are generated from
// package apis.
package crds

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// FS returns the CustomResourceDefinitions, one a file.
func FS() fs.FS { return files }

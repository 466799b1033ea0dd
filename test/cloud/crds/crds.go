// Package crds holds the CustomResourceDefinitions of the provider's kinds. They are generated; see
// package apis.
package crds

import (
	"embed"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// FS returns the CustomResourceDefinitions, one in each file.
func FS() fs.FS { return files }

// Command externalname writes the table of the kinds whose external-name follows from
// status.atProvider.id, or checks that the table is up to date. It reads checkouts of providers, or
// their git folders, and needs no network.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cmd/start"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/externalname"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() { start.Main(run) }

func run(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	aws := flag.String("aws", "", "checkout or git folder of provider-upjet-aws, with its tags")
	azure := flag.String("azure", "", "the same of provider-upjet-azure")
	gcp := flag.String("gcp", "", "the same of provider-upjet-gcp")
	file := flag.String("file", filepath.Join(root, filepath.FromSlash(externalname.Path)), "table to write")
	check := flag.Bool("check", false, "write nothing, and fail if the table is another")
	flag.Parse()
	if *aws == "" || *azure == "" || *gcp == "" {
		return errors.New("cannot make a table of some providers only: name the checkouts of all three with --aws, --azure and --gcp")
	}
	t, err := externalname.Read(ctx,
		externalname.Provider{Name: "provider-upjet-aws", Domain: "aws.upbound.io", Repository: externalname.Repository(*aws)},
		externalname.Provider{Name: "provider-upjet-azure", Domain: "azure.upbound.io", Repository: externalname.Repository(*azure)},
		externalname.Provider{Name: "provider-upjet-gcp", Domain: "gcp.upbound.io", Repository: externalname.Repository(*gcp)},
	)
	if err != nil {
		return err
	}
	want := t.Render()
	if !*check {
		return os.WriteFile(*file, want, 0o644)
	}
	got, err := os.ReadFile(*file)
	if err != nil {
		return fmt.Errorf("cannot check the table: %w", err)
	}
	if !bytes.Equal(want, got) {
		return fmt.Errorf("%s differs from the sources; run this command without --check to write it again", *file)
	}

	return nil
}

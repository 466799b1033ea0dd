// Command image builds the plugin's image without a container engine, as an OCI layout, and prints
// its size.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cmd/start"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/image"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() { start.Main(run) }

func run(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	b := image.Build{Root: root}
	var at int64
	flag.StringVar(&b.Version, "version", "v0.0.0-dev", "version of the plugin")
	flag.StringVar(&b.Commit, "commit", "unknown", "commit that it is built from")
	flag.Int64Var(&at, "time", 0, "time of that commit, in seconds since 1970")
	flag.Parse()
	b.Created = time.Unix(at, 0)
	b.Dir, err = os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("cannot make a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(b.Dir) }()
	images, err := b.Images(ctx)
	if err != nil {
		return err
	}
	out := filepath.Join("bin", "image")
	if err := image.WriteLayout(images, filepath.Join(root, out), b.Version); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "platform\tpulled\tunpacked")
	for _, each := range images {
		s, err := image.SizeOf(each)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%.1f MiB\t%.1f MiB\n", s.Platform, mebibytes(s.Pulled), mebibytes(s.Unpacked))
	}
	fmt.Fprintf(w, "%s is an OCI layout\n", out)

	return w.Flush()
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

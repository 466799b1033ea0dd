// Command release makes the files of a release. Its flags have the version, commit and time, so
// that it makes the same files from a copy without git.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cmd/start"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/release"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() { start.Main(run) }

func run(ctx context.Context) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	r := release.Release{Say: func(file string) { fmt.Println(file) }}
	var at int64
	flag.StringVar(&r.Version, "version", "v0.0.0-dev", "version of the release")
	flag.StringVar(&r.Commit, "commit", "unknown", "commit that it is made of")
	flag.Int64Var(&at, "time", 0, "time of that commit, in seconds since 1970")
	flag.StringVar(&r.Root, "root", root, "checkout, or a copy of one, that it is made of")
	flag.StringVar(&r.Out, "out", "", "folder to write it to; what is in it is removed (default: bin/release of the checkout)")
	flag.Func("platforms", "platforms to make programs for, as linux/amd64,darwin/arm64 (default: all)", func(list string) error {
		for name := range strings.SplitSeq(list, ",") {
			p, err := v1.ParsePlatform(name)
			if err != nil || !slices.ContainsFunc(release.Platforms(), p.Equals) {
				return fmt.Errorf("cannot release for %q: there are %v", name, release.Platforms())
			}
			r.Platforms = append(r.Platforms, *p)
		}

		return nil
	})
	flag.Parse()
	if r.Out == "" {
		r.Out = filepath.Join(r.Root, "bin", "release")
	}
	r.Time = time.Unix(at, 0)

	return r.Make(ctx)
}

// Command bench measures on the real stack what the plugin costs, and compares that with its
// targets. It keeps its measurements, so that it continues where it was stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cmd/start"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == bench.DecodeCommand {
		start.Main(func(context.Context) error { return decode(os.Args[2]) })

		return
	}
	full := bench.Full()
	var s bench.Sizes
	flag.IntVar(&s.XRs, "xrs", full.XRs, "How many composite resources to restore.")
	flag.IntVar(&s.MRs, "mrs", full.MRs, "How many managed resources each of them composes.")
	flag.IntVar(&s.Pairs, "pairs", full.Pairs, "How often to measure what is compared.")
	flag.IntVar(&s.Large, "large", full.Large, "How many composite resources there are at the larger size.")
	flag.IntVar(&s.Held, "held", full.Held, "How many held composite resources to poll.")
	flag.IntVar(&s.Objects, "objects", full.Objects, "How many objects there are in the backup to inspect.")
	only := flag.String("only", "", "The stages to measure, separated by commas; all if empty: "+strings.Join(bench.Names(), ", ")+".")
	keep := flag.Bool("keep", false, "Write the figures into docs/dev/performance.md for any sizes.")
	upjet := flag.String("upjet", "", "Measure with managed resources that upjet reconciles, restored with this value of observe-first, such as upjet or false. "+
		"It is not written into the documentation.")
	flag.Parse()

	start.Main(func(ctx context.Context) error {
		return run(ctx, s, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' }), *upjet, *keep)
	})
}

// decode only decodes a backup. Its cost is compared with that of inspect.
func decode(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open the backup: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	n, err := meter.Decode(f)
	fmt.Println(n, "objects")

	return err
}

// run measures, prints the figures and, if the sizes have targets, writes the figures into the
// documentation. There are no targets for upjet's managed resources.
func run(ctx context.Context, s bench.Sizes, only []string, upjet string, keep bool) (err error) {
	if err := s.Check(); err != nil {
		return err
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	of, err := ledger.SourceOf(root)
	if err != nil {
		return err
	}
	set, err := build.Ensure(ctx, os.Stderr, append(stack.Programs(lab.Options(upjet != "")), "kubectl")...)
	if err != nil {
		return err
	}
	kept, err := ledger.Open(filepath.Join(root, "bin", "bench", strings.TrimSuffix(fmt.Sprintf("%dx%d-%s", s.XRs, s.MRs, upjet), "-")))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	r := &bench.Runner{
		Sizes: s, Ledger: kept, Of: of, Plugin: set["plugin"].Path, Self: self, Out: os.Stderr,
		Open: func(ctx context.Context) (*lab.Lab, error) { return lab.Start(ctx, set, s.MRs, upjet, os.Stderr) },
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	results, err := r.Run(ctx, only)
	if err != nil {
		return err
	}
	figures := results.Figures(s)
	commit, err := ledger.CommitOf(ctx, root)
	if err != nil {
		return err
	}
	origin, now := bench.OriginAt(time.Now(), commit), &bench.Record{Sizes: s}
	now.Update(figures, origin)
	fmt.Println(now.Section(figures))
	if upjet == "" && (keep || s == bench.Full()) {
		return write(root, s, results, figures, origin)
	}

	return nil
}

// write writes the measurements into the documentation.
func write(root string, s bench.Sizes, results *bench.Results, figures []bench.Figure, origin bench.Origin) error {
	record := filepath.Join(root, "docs", "dev", "performance.json")
	r, err := bench.ReadRecord(record, s)
	if err != nil {
		return err
	}
	r.Update(figures, origin)
	path := filepath.Join(root, "docs", "dev", "performance.md")
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the documentation: %w", err)
	}
	if document, err = marked.Replace(document, bench.Figures, r.Section(figures)); err != nil {
		return err
	}
	if table := results.Requests(); table != "" {
		if document, err = marked.Replace(document, bench.Requests, table); err != nil {
			return err
		}
	}
	err = errors.Join(os.WriteFile(path, document, 0o644), r.Write(record))
	if err != nil {
		return fmt.Errorf("cannot write the documentation: %w", err)
	}

	return nil
}

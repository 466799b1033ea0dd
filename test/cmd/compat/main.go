// Command compat loses and restores a cluster with each combination of versions of Velero,
// Crossplane and Kubernetes, on the real stack. It keeps its results, so that it continues where it
// was stopped.
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
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cmd/start"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/compat"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() {
	only := flag.String(
		"only", "",
		"Minor versions that a cell must have to be run, separated by commas, such as v1.16,v2.0, and pairs, such as v1.20-v2.3 or v1.20-v2.4-alone; all if empty.",
	)
	missing := flag.Bool("missing", false, "Run only what has no result of the same versions, not what has one with an older plugin.")
	flag.Parse()
	start.Main(func(ctx context.Context) error {
		return run(ctx, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' }), *missing)
	})
}

// run runs the cells and the pairs and writes their tables. It fails if one of the results is not
// as it should be.
func run(ctx context.Context, only []string, missing bool) error {
	root, err := build.Root()
	if err != nil {
		return err
	}
	source, err := ledger.SourceOf(root)
	if err != nil {
		return err
	}
	commit, err := ledger.CommitOf(ctx, root)
	if err != nil {
		return err
	}
	kept, err := ledger.Open(filepath.Join(root, "test", "compat", "results"))
	if err != nil {
		return err
	}
	var minors, steps []string
	for _, o := range only {
		if strings.Contains(o, "-") {
			steps = append(steps, o)
		} else {
			minors = append(minors, o)
		}
	}
	path := filepath.Join(root, "docs", "compatibility.md")
	r := compat.Runner{Ledger: kept, Source: source, Commit: commit, Out: os.Stderr, Play: compat.Play}
	var failed []error
	if len(minors) > 0 || len(only) == 0 {
		cells, err := compat.Only(minors)
		if err != nil {
			return err
		}
		r.All = compat.Cells()
		failed = append(failed, play(ctx, path, r, cells, missing, "make compat", compat.Section))
	}
	if len(steps) > 0 || len(only) == 0 {
		pairs, err := compat.OnlyPairs(steps)
		if err != nil {
			return err
		}
		r.All = append(compat.Pairs(), compat.Controls()...)
		failed = append(failed, play(ctx, path, r, pairs, missing, "make compat, pairs", compat.PairSection))
	}

	return errors.Join(failed...)
}

// A section makes a table of the documentation.
type section func(results map[compat.Case]compat.Result, machine string, now time.Time) string

// play runs the wanted cases, or those of them that are missing, and writes the table at the mark.
func play(ctx context.Context, path string, r compat.Runner, wanted []compat.Case, missing bool, mark string, of section) error {
	if missing {
		var err error
		if wanted, err = r.Missing(wanted); err != nil {
			return err
		}
	}
	results, err := r.Run(ctx, wanted)
	if err != nil {
		return err
	}
	table := of(results, bench.Machine(), time.Now())
	fmt.Print(table)
	if err := write(path, mark, table); err != nil {
		return err
	}
	var broken []string
	for _, c := range wanted {
		if results[c].Failed != "" {
			broken = append(broken, c.String())
		}
	}
	if len(broken) > 0 {
		return errors.New("not as they should be: " + strings.Join(broken, ", "))
	}

	return nil
}

func write(path, mark, section string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the documentation: %w", err)
	}
	if document, err = marked.Replace(document, mark, section); err != nil {
		return err
	}
	if err := os.WriteFile(path, document, 0o644); err != nil {
		return fmt.Errorf("cannot write the documentation: %w", err)
	}

	return nil
}

// Command compat loses and restores a cluster with each combination of versions of Velero, Crossplane and Kubernetes, on the real stack. What it has found
// it keeps, so that it goes on where it was stopped.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/compat"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() {
	only := flag.String("only", "", "Minor versions that a cell must have to be run, separated by commas, such as v1.16,v2.0; all cells if empty.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' }))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the cells and writes the table. It fails if one of them is not as it should be.
func run(ctx context.Context, only []string) error {
	wanted, err := compat.Only(only)
	if err != nil {
		return err
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	source, err := ledger.SourceOf(root)
	if err != nil {
		return err
	}
	kept, err := ledger.Open(filepath.Join(root, "bin", "compat"))
	if err != nil {
		return err
	}
	r := compat.Runner{
		Ledger: kept, Source: source, Out: os.Stderr,
		Play: func(ctx context.Context, c compat.Cell) (*drill.Recovery, error) {
			return compat.Play(ctx, c, os.Stderr)
		},
	}
	results, err := r.Run(ctx, wanted)
	if err != nil {
		return err
	}
	section := compat.Section(results, bench.Machine(), time.Now())
	fmt.Print(section)
	if err := write(filepath.Join(root, "docs", "compatibility.md"), section); err != nil {
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

func write(path, section string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the documentation: %w", err)
	}
	if document, err = marked.Replace(document, "make compat", section); err != nil {
		return err
	}
	if err := os.WriteFile(path, document, 0o644); err != nil {
		return fmt.Errorf("cannot write the documentation: %w", err)
	}

	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// run measures, prints the figures and, if there are targets for the sizes and all was measured, writes them into the documentation.
func run(ctx context.Context, s bench.Sizes, only []string, keep bool) (err error) {
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
	set, err := build.Ensure(ctx, os.Stderr, append(stack.Programs(lab.Options()), "kubectl")...)
	if err != nil {
		return err
	}
	kept, err := ledger.Open(filepath.Join(root, "bin", "bench", fmt.Sprintf("%dx%d", s.XRs, s.MRs)))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	r := &bench.Runner{
		Sizes: s, Ledger: kept, Of: of, Plugin: set["plugin"].Path, Self: self, Out: os.Stderr,
		Open: func(ctx context.Context) (*lab.Lab, error) { return lab.Start(ctx, set, s.MRs, os.Stderr) },
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	results, err := r.Run(ctx, only)
	if err != nil {
		return err
	}
	figures := results.Figures(s)
	if err := bench.Print(os.Stdout, figures); err != nil {
		return err
	}
	if keep || s == bench.Full() && bench.Complete(figures) {
		return write(root, s, results, figures)
	}

	return nil
}

// write writes the figures into the documentation.
func write(root string, s bench.Sizes, results *bench.Results, figures []bench.Figure) error {
	picture, err := bench.Plot(figures)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "performance.md")
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the documentation: %w", err)
	}
	document, err = bench.Replace(document, bench.Section(s, results, figures, bench.Machine(), time.Now()))
	if err != nil {
		return err
	}
	err = errors.Join(os.WriteFile(path, document, 0o644), os.WriteFile(filepath.Join(root, "docs", "performance.svg"), picture, 0o644))
	if err != nil {
		return fmt.Errorf("cannot write the documentation: %w", err)
	}

	return nil
}

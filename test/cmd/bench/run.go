package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/lab"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/ledger"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/marked"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

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
	if err := bench.Print(os.Stdout, figures); err != nil {
		return err
	}
	if upjet == "" && (keep || s == bench.Full()) {
		return write(ctx, root, s, results, figures)
	}

	return nil
}

// write writes the measurements into the documentation.
func write(ctx context.Context, root string, s bench.Sizes, results *bench.Results, figures []bench.Figure) error {
	record := filepath.Join(root, "docs", "dev", "performance.json")
	r, err := bench.ReadRecord(record, s)
	if err != nil {
		return err
	}
	commit, err := ledger.CommitOf(ctx, root)
	if err != nil {
		return err
	}
	r.Update(figures, bench.OriginAt(time.Now(), commit))
	picture, err := r.Plot(figures)
	if err != nil {
		return err
	}
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
	err = errors.Join(os.WriteFile(path, document, 0o644), os.WriteFile(filepath.Join(root, "docs", "dev", "performance.png"), picture, 0o644), r.Write(record))
	if err != nil {
		return fmt.Errorf("cannot write the documentation: %w", err)
	}

	return nil
}

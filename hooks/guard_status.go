package hooks

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
)

func newGuardStatus(o *options) *cobra.Command {
	s := &guardStatus{options: o}
	c := &cobra.Command{
		Use:   "status",
		Short: "Print whether the guard is up, and what it does not guard",
		Long: `Prints whether the guard is up, since when, who put it up, what it guards, whom it admits, and which kinds of the XRDs in this cluster it does not
guard, such as those of a newer XRD.

It exits with 0 if the guard is up and guards all kinds, or all namespaced kinds with -n. It exits with 3 if it is not up, does not guard a kind, is not
enforced, or was changed.`,
		Example: `  # Is it up?
  ` + Name + ` guard status

  # For a program
  ` + Name + ` guard status -o json`,
		Args:    cobra.NoArgs,
		PreRunE: o.rejectNamespace,
		RunE:    func(c *cobra.Command, _ []string) error { return o.inCluster(c, s.run) },
	}
	_ = s.out.addTo(c, dataFormats()...) // It fails only if the flag is there already.

	return c
}

type guardStatus struct {
	*options

	out output
}

func (s *guardStatus) run(ctx context.Context, cluster *live.Cluster) error {
	r, err := reportOf(ctx, cluster)
	if err != nil {
		return err
	}
	if r.Up {
		// The probe needs the right to create Events, which a read-only user may lack.
		r.Does, _ = cluster.Probe(ctx)
	}
	if err := s.printData("the guard", r, s.out.format); err != nil {
		return err
	}
	if !r.isEffective() {
		return &exit{code: ExitProblems}
	}

	return nil
}

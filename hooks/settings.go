package hooks

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
)

// effective is the output of settings. Fields may be added, never changed or removed.
type effective struct {
	// Of is the Backup or Restore that the settings apply to; "" for all.
	Of       string              `json:"of,omitempty"`
	Settings []setting.Effective `json:"settings"`
	Faults   []setting.Fault     `json:"faults"`
}

func newSettings(o *options) *cobra.Command {
	s := &settings{options: o}
	c := &cobra.Command{
		Use:   "settings",
		Short: "Print the settings in effect, and where each comes from",
		Long: `Settings reads the ConfigMap of settings in Velero's namespace and, with --restore or --backup, the annotations of that Restore or Backup, which have
priority. It prints each setting with its value and its source, and each fault with the next step. It changes nothing.

It exits with 3 if there is a fault: a restore then holds everything, and a backup ignores the setting. docs/settings.md explains each setting.`,
		Example: `  # The settings of all backups and restores
  ` + Name + ` settings

  # The settings of one Restore
  ` + Name + ` settings --restore nightly-20261120

  # For a program
  ` + Name + ` settings --backup nightly-20261120 -o json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.inCluster(c, s.run) },
	}
	c.Flags().StringVar(&s.restore, "restore", "", "the settings of this Restore")
	c.Flags().StringVar(&s.backup, "backup", "", "the settings of this Backup")
	c.MarkFlagsMutuallyExclusive("restore", "backup")
	s.out.addTo(c, printer.Table, printer.JSON, printer.YAML)

	return c
}

// settings holds the flags of the command settings.
type settings struct {
	*options

	out             output
	restore, backup string
}

func (s *settings) run(ctx context.Context, cluster *cluster.Cluster) error {
	of, err := s.of(ctx, cluster)
	if err != nil {
		return err
	}
	configs, err := cluster.SettingsIn(ctx, s.velero)
	if err != nil {
		return err
	}
	all, faults := setting.Effect(configs, of)
	e := effective{Settings: all, Faults: append([]setting.Fault{}, faults...)}
	if of != nil {
		e.Of = of.String()
	}
	b := e.table()
	if s.out.format != printer.Table {
		b, err = printer.Encode(e, s.out.format)
	}
	if err == nil {
		_, err = rawWriter(s.Out).Write(b)
	}
	if err != nil {
		return fmt.Errorf("cannot print the settings: %w", err)
	}

	return exitFor(len(e.Faults))
}

// of returns the Backup or Restore that the flags name; nil if they name none.
func (s *settings) of(ctx context.Context, cluster *cluster.Cluster) (*setting.Place, error) {
	kind, name := setting.KindRestore, s.restore
	if s.backup != "" {
		kind, name = setting.KindBackup, s.backup
	}
	if name == "" {
		return nil, nil //nolint:nilnil // The ConfigMap applies to all.
	}
	p, err := cluster.SettingsOf(ctx, kind, s.velero, strings.TrimPrefix(name, s.velero+"/"))

	return &p, err
}

func (e effective) table() []byte {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SETTING\tVALUE\tFROM\tFOR")
	for _, s := range e.Settings {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.Name, cmp.Or(reason.Clean(s.Value), "-"), reason.Clean(s.Source), strings.Join(s.For, ", "))
	}
	_ = t.Flush() // A buffer never fails.
	if len(e.Faults) > 0 {
		fmt.Fprintf(&b, "\n%s:\n", printer.Counted(len(e.Faults), "fault"))
	}
	for _, f := range e.Faults {
		where := strings.TrimSuffix(f.Place+", "+f.Name, ", ")
		fmt.Fprintf(&b, "  %s: %s\n    next: %s\n", reason.Clean(where), reason.Message{Code: f.Code, Text: f.Reason}, reason.Clean(f.Next))
	}

	return b.Bytes()
}

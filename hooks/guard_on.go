package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/guard"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// defaultCrossplane is Crossplane's usual namespace.
const defaultCrossplane = "crossplane-system"

const guardOnLong = `Puts the guard up, and returns when the API server enforces it. From then on only Velero and Crossplane can create claims and XRs.
Other users are refused, with a message that explains why, who put the guard up and how it ends. Changes and deletions of existing objects are not affected.

It guards the kinds of the XRDs in this cluster and in --backup, and those of --kind. A new cluster has no XRDs: they come with the restore, and Git can be
faster. So give the backup, as "velero backup download" writes it, or the kinds. With -n it guards namespaced kinds in these namespaces only, and
cluster-scoped kinds only if --kind names them.

It recognizes users by name: the ServiceAccounts of Velero and Crossplane, from their Deployments or by their usual names, and --allow-user. All others are
refused, also the group system:masters; they can take the guard down.

If the guard is already up, it adds kinds and users to it. With --paused other users can create claims and XRs, but paused; this needs a
MutatingAdmissionPolicy, and "guard off" removes the pause.`

const guardOnExample = `  # Before a restore: all kinds of this cluster and of the backup
  velero backup download nightly -o nightly.tar.gz
  ` + Name + ` guard on --backup nightly.tar.gz

  # In two namespaces
  ` + Name + ` guard on -n team-a -n team-b

  # In a new cluster, without the backup
  ` + Name + ` guard on --kind environments.platform.example.org --kind '*.other.example.org'

  # What would be applied?
  ` + Name + ` guard on --dry-run`

// A guardOn holds the flags of guard on.
type guardOn struct {
	*options

	namespaces, kinds, users []string
	backup, crossplane       string
	paused, dryRun           bool
}

func newGuardOn(o *options) *cobra.Command {
	g := &guardOn{options: o}
	c := &cobra.Command{
		Use:     "on",
		Short:   "Put the guard up",
		Long:    guardOnLong,
		Example: guardOnExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			asked := guard.Guard{Kinds: g.kinds, Namespaces: g.namespaces, Users: g.users}
			if err := asked.Validate(); err != nil {
				return err
			}

			return o.inCluster(c, func(ctx context.Context, cluster *live.Cluster) error { return g.run(ctx, cluster, proberOf(cluster)) })
		},
	}
	c.Flags().StringSliceVarP(&g.namespaces, "namespace", "n", nil, "only in this namespace; repeat it for several")
	c.Flags().StringVar(&g.backup, "backup", "", `also guard the kinds of the XRDs in this backup: a file from "velero backup download", or - for stdin`)
	c.Flags().StringSliceVar(&g.kinds, "kind", nil,
		"also guard this kind of claims or XRs, as PLURAL.GROUP, or *.GROUP for all of a group; repeat it for several")
	c.Flags().StringArrayVar(&g.users, "allow-user", nil, "let this user create claims and XRs; repeat it for several")
	c.Flags().StringVar(&g.crossplane, "crossplane-namespace", defaultCrossplane, "namespace of Crossplane")
	c.Flags().BoolVar(&g.paused, "paused", false, "let other users create claims and XRs, but paused")
	c.Flags().BoolVar(&g.dryRun, "dry-run", false, "print what would be applied as YAML, and change nothing")
	_ = c.MarkFlagFilename("backup", "tar.gz", "tgz") // It fails only without the flag.

	return c
}

func (g *guardOn) run(ctx context.Context, cluster *live.Cluster, p prober) error {
	s, err := cluster.Guard(ctx)
	if err != nil {
		return err
	}
	asked := guard.Guard{Namespaces: g.namespaces, Paused: g.paused, Since: time.Now().UTC().Format(time.RFC3339), CreatedBy: cluster.User(ctx)}
	if asked.Kinds, err = g.kindsIn(ctx, cluster); err != nil {
		return err
	}
	accounts, guessed := cluster.Accounts(ctx, g.velero, g.crossplane)
	asked.Users = slices.Concat(accounts, g.users)
	for _, program := range guessed {
		fmt.Fprintln(g.Err, reason.AccountUnknown.Messagef("The Deployment of %[1]s can't be read, so the guard admits the usual ServiceAccounts of %[1]s. "+
			"If it has another, give --allow-user.", program))
	}
	asked = s.Merge(asked)
	if len(asked.Kinds) == 0 {
		return reason.NothingToGuard.Errorf("cannot find a kind to guard: neither this cluster nor the backup has an XRD. Give a backup with --backup, " +
			"or the kinds of claims and XRs with --kind")
	}
	objects, err := cluster.GuardObjects(asked)
	if err != nil {
		return reason.GuardUnsupported.Errorf("%w", err)
	}
	if g.dryRun {
		return g.printObjects(objects)
	}
	if err := cluster.PutGuard(ctx, s, objects); err != nil {
		return err
	}
	does, err := g.awaitEnforced(ctx, p)
	if err != nil {
		return err
	}
	r, err := reportOf(ctx, cluster)
	if err != nil {
		return err
	}
	r.Does = does

	return g.printData("the guard", r, printer.Table)
}

// awaitEnforced waits until the API server enforces the guard.
func (g *guardOn) awaitEnforced(ctx context.Context, p prober) (live.Probe, error) {
	wanted := live.Refused
	if g.paused {
		wanted = live.Paused
	}
	now, err := p.await(ctx, wanted)
	switch {
	case ctx.Err() != nil:
		return now, ctx.Err()
	case err != nil:
		fmt.Fprintf(g.Err, "%s. The API server should enforce it in a few seconds.\n", err)

		return "", nil
	case now == live.Refused && g.paused:
		return now, reason.GuardNotEnforced.Errorf("cannot admit claims and XRs paused: the API server does not enforce its MutatingAdmissionPolicy. "+
			"The guard is up and refuses them: leave it so, or take it down: %s guard off", Name)
	case now != wanted:
		return now, reason.GuardNotEnforced.Errorf("cannot rely on the guard: it exists, and the API server has not enforced it for %s; check: %s guard status",
			p.timeout, Name)
	default:
		return now, nil
	}
}

// kindsIn returns the kinds to guard, as PLURAL.GROUP.
func (g *guardOn) kindsIn(ctx context.Context, cluster *live.Cluster) ([]string, error) {
	xrds, err := cluster.Definitions(ctx)
	if err != nil {
		return nil, err
	}
	more, err := g.definitionsInBackup(ctx)
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupResource
	for _, xrd := range append(xrds, more...) {
		for _, kind := range guard.KindsOf(xrd) {
			if kind.Namespaced || len(g.namespaces) == 0 {
				kinds = append(kinds, kind.GroupResource)
			}
		}
	}
	others, err := cluster.NeitherClaimsNorXRs(kinds)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		fmt.Fprintln(g.Err, reason.NotGuardable.Messagef("%s is not guarded: an XRD defines it, and this cluster serves another kind under that name.", other))
	}
	kinds = slices.DeleteFunc(kinds, func(kind schema.GroupResource) bool { return slices.Contains(others, kind) })
	var named []schema.GroupResource
	for _, kind := range g.kinds {
		named = append(named, schema.ParseGroupResource(kind))
	}
	if others, err = cluster.NeitherClaimsNorXRs(named); err != nil {
		return nil, err
	}
	if len(others) > 0 {
		return nil, reason.NotGuardable.Errorf("cannot guard %q: this cluster serves other kinds than claims and XRs under that name; name kinds of claims and XRs",
			others[0])
	}
	var names []string
	for _, kind := range append(kinds, named...) {
		names = append(names, kind.String())
	}

	return names, nil
}

func (g *guardOn) definitionsInBackup(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if g.backup == "" {
		return nil, nil
	}
	backup, err := g.read(ctx, g.backup)
	if err != nil {
		return nil, err
	}
	var xrds []*unstructured.Unstructured
	for _, item := range backup.Items {
		if item.GroupResource == xp.ResourceXRD {
			xrds = append(xrds, item.Object())
		}
	}
	if len(xrds) == 0 {
		return nil, reason.NothingToGuard.Errorf("cannot find an XRD in the backup %s; give the kinds of claims and XRs with --kind", source(g.backup))
	}

	return xrds, nil
}

func (g *guardOn) printObjects(objects []*unstructured.Unstructured) error {
	documents := make([]string, 0, len(objects))
	for _, u := range objects {
		b, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("cannot print the guard as %s: %w", printer.YAML, err)
		}
		documents = append(documents, string(b))
	}
	if _, err := fmt.Fprint(rawWriter(g.Out), strings.Join(documents, "---\n")); err != nil {
		return fmt.Errorf("cannot print the guard as %s: %w", printer.YAML, err)
	}

	return nil
}

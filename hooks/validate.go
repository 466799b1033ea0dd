package hooks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/vmware-tanzu/velero/pkg/label"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// recheckAfter is the time between the two observations of validateStable.
const recheckAfter = time.Second

const validateLong = `Validate reads the trees of claims, XRs and their composed resources, and prints their problems: held objects and what they wait for,
resources that no XR lists or controls, two that manage one external resource, resources without a known identity, objects that nothing reconciles, and
leftovers. It changes nothing, and works without Velero and without a restore.

Names are those of claims and XRs: NAMESPACE/NAME, or NAME if they are cluster-scoped or the flag -n gives the namespace; or KIND/NAME or KIND.GROUP/NAME,
of any namespace or that of -n.

It exits with 3 if it found a problem, or a warning with --strict; a name or a namespace that does not exist is a problem. It exits with 1 if it can't read
the cluster; a kind that you may not read is a warning. docs/validate.md lists the rights that it needs.`

const validateExample = `  # Everything in the cluster
  ` + Name + ` validate

  # The objects of a Restore
  ` + Name + ` validate --restore nightly-20261120

  # One claim with its tree, for a program
  ` + Name + ` validate team-a/orders -o json

  # One XR, by its kind, and only problems
  ` + Name + ` validate xorder/orders-x7k2p --problems-only

  # The objects of the newest Restore, if that was today
  ` + Name + ` validate --newest-restore 24h

  # One namespace, with rights in that namespace only
  ` + Name + ` validate -n team-a --strict`

// A validation holds the arguments of validate.
type validation struct {
	*options

	out     output
	strict  bool
	restore string
	// newest is the maximal age of the newest Restore; 0 if --newest-restore is not given.
	newest time.Duration
	names  []string
	// pause is the time between the two observations.
	pause   time.Duration
	cluster *cluster.Cluster
}

func newValidate(o *options) *cobra.Command {
	v := &validation{options: o, pause: recheckAfter}
	c := &cobra.Command{
		Use:     "validate [NAMESPACE/NAME|KIND/NAME...]",
		Short:   "Print the problems of the claims, XRs and managed resources of a cluster",
		Long:    validateLong,
		Example: validateExample,
		RunE: func(c *cobra.Command, args []string) (err error) {
			if v.newest < 0 {
				return fmt.Errorf("cannot look for a Restore of the last %s", v.newest)
			}
			if v.names, err = v.parseNames(args); err != nil {
				return err
			}

			return o.inCluster(c, v.run)
		},
	}
	c.Flags().StringVar(&v.restore, "restore", "", "only trees with an object of this Restore")
	c.Flags().DurationVar(&v.newest, "newest-restore", 0,
		"like --restore, with the newest Restore; it is a problem if that began longer ago, or if there is none")
	c.MarkFlagsMutuallyExclusive("restore", "newest-restore")
	c.Flags().BoolVar(&v.strict, "strict", false, "also fail for warnings")
	v.out.addTreesTo(c)
	v.out.addTo(c)

	return c
}

func (v *validation) run(ctx context.Context, cluster *cluster.Cluster) error {
	v.cluster = cluster
	r, err := v.validateStable(ctx)
	if err == nil {
		err = v.print(r, v.out)
	}
	if err != nil {
		return err
	}

	return exitFor(r.Failing(v.strict))
}

// parseNames reads names of claims and XRs: NAMESPACE/NAME, or NAME if they are cluster-scoped.
func (o *options) parseNames(args []string) ([]string, error) {
	names := make([]string, 0, len(args))
	for _, name := range args {
		if strings.Count(name, "/") > 1 || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || name == "" {
			return nil, fmt.Errorf("cannot read %q as NAMESPACE/NAME", name)
		}
		if o.namespace != "" && !strings.Contains(name, "/") {
			name = o.namespace + "/" + name
		}
		names = append(names, name)
	}

	return names, nil
}

// howToName says how a claim or an XR is named.
const howToName = "Names are NAMESPACE/NAME, or NAME with -n"

// noNamespace returns a problem if the namespace of -n does not exist, and a warning if that can't
// be read.
func (o *options) noNamespace(ctx context.Context, cluster *cluster.Cluster) []report.Problem {
	if o.namespace == "" {
		return nil
	}
	r := xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: o.namespace}
	p := report.Problem{
		Code: reason.NotFound, Severity: report.Error, Object: r, Reason: "there is no such namespace", Next: "check -n and --context",
	}
	exists, err := cluster.ExistsNow(ctx, r)
	if exists {
		return nil
	}
	if err != nil {
		p.Severity, p.Reason = report.Warning, "nothing of Crossplane is in it, and it can't be read: "+err.Error()
	}

	return []report.Problem{p}
}

// validateStable validates the cluster. If a problem can be transient it validates again, and keeps
// such problems only if both runs found them: lists of several kinds are not from one moment, and
// Crossplane writes a composed resource's reference into the XR before it creates the resource.
func (v *validation) validateStable(ctx context.Context) (*report.Report, error) {
	first, err := v.validate(ctx)
	if err != nil || !slices.ContainsFunc(first.Problems, isTransient) {
		return first, err
	}
	if err := sleep(ctx, v.pause); err != nil {
		return nil, err
	}
	second, err := v.validate(ctx)
	if err != nil {
		return nil, err
	}
	type found struct {
		code   reason.Code
		object xp.Ref
	}
	before := map[found]bool{}
	for _, p := range first.Problems {
		before[found{p.Code, p.Object}] = true
	}
	second.Assemble(second.Trees, slices.DeleteFunc(second.Problems, func(p report.Problem) bool {
		return isTransient(p) && !before[found{p.Code, p.Object}]
	}))

	return second, nil
}

// isTransient reports whether a problem can come from reading related objects at different times.
func isTransient(p report.Problem) bool {
	return slices.Contains([]reason.Code{
		reason.Dangling, reason.Orphaned, reason.DeadController, reason.Uncontrolled, reason.ControlledByAnother, reason.OneSided, reason.UsageLeftBehind,
		reason.Duplicated,
	}, p.Code)
}

// validate validates the cluster once. Later calls start over.
func (v *validation) validate(ctx context.Context) (*report.Report, error) {
	s, err := adopter.ReadSurvey(ctx, v.cluster, adopter.Scope{Namespace: v.namespace, Velero: v.velero})
	if err != nil {
		return nil, err
	}
	restore, late := v.restore, []report.Problem(nil)
	if v.newest > 0 {
		if s.Unread != nil {
			return nil, fmt.Errorf("cannot determine the newest Restore: %w", s.Unread)
		}
		restore, late = newestRestore(s.Restores, v.velero, s.State.Now, v.newest)
	}
	if restore != "" && s.Unread != nil {
		s.AddUnread(cluster.KindRestore.GroupKind(), s.Unread.Error())
	}
	late = append(late, v.platform(ctx, s)...)
	problems := diagnosis.Validate(s.Objects, s.State)
	choice := diagnosis.Selection{Namespace: v.namespace, Names: v.names}
	if restore != "" {
		// Velero shortens longer names to valid label values.
		choice.Restore, choice.Label = v.velero+"/"+restore, label.GetValidName(restore)
		_, there := s.Restores[choice.Restore]
		choice.Gone = !there && s.Unread == nil
	}
	trees, problems := s.Select(choice, s.Trees(), problems)
	s.State.Explain(trees)
	r := &report.Report{Kind: report.KindValidation, Source: v.cluster.Name(), Time: s.State.Now.UTC().Truncate(time.Second)}
	r.Restores, r.LastAdoption = restoresOf(s, trees, choice.Restore), lastAdoption(s.Restores, v.velero)
	if len(trees) == 0 {
		late = append(late, v.noNamespace(ctx, v.cluster)...)
	}
	r.Assemble(trees, slices.Concat(problems, late, v.guards(ctx)))

	return r, nil
}

// platform returns the problems of Crossplane and its packages, which belong to no tree. It skips
// checks that need rights the user lacks: versions and the plugin need Deployments, rights need
// bindings and packages.
func (v *validation) platform(ctx context.Context, s *adopter.Survey) []report.Problem {
	var problems []report.Problem
	i, err := v.cluster.Installation(ctx)
	if err == nil {
		s.State.Installation = &i
		problems = diagnosis.Defects(diagnosis.Cluster, i, s.LacksComposed(s.State))
	}
	if rights, err := v.cluster.Rights(ctx, i.Namespace); err == nil {
		problems = append(problems, rights.Misplaced(diagnosis.Cluster)...)
	}

	return append(problems, v.pluginMissing(ctx, v.cluster)...)
}

// pluginMissing returns a warning if Velero's server does not run this plugin. It returns none if
// Velero's Deployment can't be read.
func (o *options) pluginMissing(ctx context.Context, cluster *cluster.Cluster) []report.Problem {
	server, ok, err := cluster.WithoutPlugin(ctx, o.velero)
	if err != nil || !ok {
		return nil
	}

	return []report.Problem{diagnosis.PluginMissing(server)}
}

// guards returns a warning for each policy that still keeps others from creating claims and XRs;
// none if policies can't be read.
func (v *validation) guards(ctx context.Context) []report.Problem {
	var problems []report.Problem
	_ = v.cluster.Each(ctx, diagnosis.KindGuard, "", metav1.ListOptions{LabelSelector: diagnosis.LabelGuard}, func(u *unstructured.Unstructured) {
		problems = append(problems, diagnosis.GuardUp(u))
	})

	return problems
}

// restoresOf returns the Restores that hold an object in the trees, and the one that was asked for.
func restoresOf(s *adopter.Survey, trees []*report.Node, asked string) []report.Restore {
	names := sets.New[string]()
	for n := range report.All(trees...) {
		if n.Hold != nil {
			names.Insert(n.Hold.Restore)
		}
	}
	if s.Unread != nil && asked != "" {
		s.State.Restores[asked] = diagnosis.PhaseUnread
	}

	return restoresNamed(s, names.Insert(asked))
}

// restoresNamed returns the Restores of the names, sorted. "" is none.
func restoresNamed(s *adopter.Survey, names sets.Set[string]) []report.Restore {
	restores := []report.Restore{}
	for _, name := range sets.List(names.Delete("")) {
		r, ok := s.Restores[name]
		if !ok {
			r = report.Restore{Name: name, Phase: cmp.Or(s.State.Restores[name], "Gone")}
		}
		restores = append(restores, r)
	}

	return restores
}

// lastAdoption returns the Restore with operations in a namespace that ended last; nil if there is
// none.
func lastAdoption(restores map[string]report.Restore, namespace string) *report.Restore {
	return latestRestore(restores, namespace, func(r report.Restore) *time.Time {
		if r.Operations == 0 || r.Started == nil {
			return nil
		}

		return r.Completed
	})
}

// latestRestore returns the Restore in a namespace with the latest time, and of several the first by name.
// Restores without a time do not count.
func latestRestore(restores map[string]report.Restore, namespace string, at func(report.Restore) *time.Time) *report.Restore {
	var last *report.Restore
	for _, name := range slices.Sorted(maps.Keys(restores)) {
		r := restores[name]
		if t := at(r); t != nil && strings.HasPrefix(name, namespace+"/") && (last == nil || t.After(*at(*last))) {
			last = &r
		}
	}

	return last
}

// newestRestore returns the name of the Restore in a namespace that began last. late has a problem
// if it began longer ago than within, or if there is none.
func newestRestore(restores map[string]report.Restore, namespace string, now time.Time, within time.Duration) (name string, late []report.Problem) {
	called, why := "*", "no Restore has begun"
	if newest := latestRestore(restores, namespace, func(r report.Restore) *time.Time { return r.Started }); newest != nil {
		name = strings.TrimPrefix(newest.Name, namespace+"/")
		age := now.Sub(*newest.Started)
		if age <= within {
			return name, nil
		}
		called, why = name, fmt.Sprintf("it is the newest one and began %s ago, which is longer than %s", age.Round(time.Second), within)
	}

	return name, []report.Problem{{
		Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{APIVersion: "velero.io/v1", Kind: "Restore", Namespace: namespace, Name: called},
		Reason: why, Next: "check whether restores still run: velero restore get",
	}}
}

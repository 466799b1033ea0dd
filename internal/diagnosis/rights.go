package diagnosis

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Rights are the roles that users give to packages, besides those that Crossplane gives them.
type Rights struct {
	Grants []xp.Grant
	// Revisions are of providers and functions. Configs are the DeploymentRuntimeConfigs.
	Revisions, Configs []*unstructured.Unstructured
	// Namespace is the one of Crossplane, in which packages run; "" if unknown.
	Namespace string
}

// Add adds an object, if its kind matters.
func (r *Rights) Add(u *unstructured.Unstructured) {
	g, isGrant := xp.GrantOf(u)
	switch {
	case isGrant:
		r.Grants = append(r.Grants, g)
	case xp.IsPackageRevision(u):
		r.Revisions = append(r.Revisions, u)
	case u.GroupVersionKind().GroupKind() == xp.KindRuntimeConfig.GroupKind():
		r.Configs = append(r.Configs, u)
	}
}

// NamesRevisions reports whether a role is given to the ServiceAccount of a package revision.
func (r *Rights) NamesRevisions() bool {
	return slices.ContainsFunc(r.Grants, func(g xp.Grant) bool {
		return slices.ContainsFunc(g.Accounts, func(account xp.Ref) bool {
			_, ok := xp.SplitRevisionName(account.Name)

			return ok
		})
	})
}

// Misplaced finds roles given to the ServiceAccount of one package revision. In a backup it warns
// about active revisions: another cluster can have others. In a cluster it is a problem if the
// package runs as another ServiceAccount now that lacks the role.
func (r *Rights) Misplaced(of Subject) []report.Problem {
	var problems []report.Problem
	for _, g := range r.Grants {
		for _, account := range g.Accounts {
			active := r.activeLike(account)
			if len(active) == 0 {
				continue
			}
			runs := make([]xp.Ref, 0, len(active))
			for _, revision := range active {
				runs = append(runs, xp.AccountRef(account.Namespace, xp.RunsAs(revision, r.Configs)))
			}
			p := report.Problem{Code: reason.RightsMisplaced, Severity: report.Warning, Object: g.Binding}
			p.Reason = "it grants the " + g.Role + " to " + account.String() + ", which is named after one revision of the package " +
				xp.Label(active[0], xp.LabelPackage)
			switch isRunning := slices.Contains(runs, account); {
			case of == Backup && isRunning:
				p.Next = "from Crossplane v2.4 on the revision can have another name in another cluster, where it does not have that role; " + nameHint
			case of == Cluster && !isRunning && !r.areGiven(g, runs):
				p.Severity = report.Error
				p.Reason += "; the package now runs as " + runs[0].String() + ", which does not have that role"
				add := xp.NewCommand("kubectl")
				if g.Binding.Namespace != "" {
					add = add.With("-n", g.Binding.Namespace)
				}
				add = add.Word("set", "subject", g.Binding.Kind).On(g.Binding.Name).With("--serviceaccount", runs[0].Namespace+":"+runs[0].Name)
				p.Next = nameHint + ". If it needs the role now, run: " + add.String()
			default:
				continue
			}
			problems = append(problems, p)
		}
	}

	return problems
}

// nameHint is how to give a package the same ServiceAccount in each cluster.
const nameHint = "for a ServiceAccount of the same name everywhere, name it in a DeploymentRuntimeConfig (spec.serviceAccountTemplate.metadata.name), " +
	"name that in the package's runtimeConfigRef, and grant the role to it"

// activeLike returns the active revisions of the package that a ServiceAccount is named after.
func (r *Rights) activeLike(account xp.Ref) []*unstructured.Unstructured {
	pkg, ok := xp.SplitRevisionName(account.Name)
	if !ok || r.Namespace != "" && account.Namespace != r.Namespace {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(r.Revisions), func(revision *unstructured.Unstructured) bool {
		of, ok := xp.SplitRevisionName(revision.GetName())

		return !ok || of != pkg || !xp.IsActive(revision)
	})
}

// checkRights finds misplaced roles in a backup.
func (d *diagnosis) checkRights() {
	r := &Rights{Namespace: d.RanOn().Namespace}
	for _, gvk := range []schema.GroupVersionKind{
		xp.KindRoleBinding, xp.KindClusterRoleBinding, xp.KindProviderRevision, xp.KindFunctionRevision, xp.KindRuntimeConfig,
	} {
		for _, o := range d.ofKind(gvk.GroupKind()) {
			r.Add(o.full())
		}
	}
	d.found = append(d.found, r.Misplaced(Backup)...)
}

// areGiven reports whether one of the ServiceAccounts has the same role in the same place.
func (r *Rights) areGiven(g xp.Grant, accounts []xp.Ref) bool {
	return slices.ContainsFunc(r.Grants, func(o xp.Grant) bool { return o.IsSameAs(g) && slices.ContainsFunc(accounts, o.GivesTo) })
}

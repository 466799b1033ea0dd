package hooks

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// source returns the display name of a backup file.
func source(file string) string {
	if file == "-" {
		return "stdin"
	}

	return filepath.Base(file)
}

// objectsOf returns the objects in a backup. Files that cannot be read are recorded as malformed.
func objectsOf(b *archive.Backup) *diagnosis.Objects {
	o := diagnosis.NewObjects()
	for n := range b.Items {
		o.AddFrom(&b.Items[n])
	}
	kinds := kindsOf(b, o)
	for _, f := range b.Flaws {
		r := xp.Ref{Kind: "File", Name: f.Path}
		if f.Item.Name != "" {
			gvk, ok := kinds[f.Item.GroupResource]
			if !ok {
				gvk = schema.GroupVersionKind{Group: f.Item.Group, Version: b.Versions[f.Item.GroupResource], Kind: f.Item.GroupResource.String()}
			}
			r = xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: f.Item.Namespace, Name: f.Item.Name}
		}
		severity, next := report.Error, "a restore can't restore it; back up again, or download the backup again if you lost the source cluster"
		if f.Ignored {
			severity, next = report.Warning, "Velero ignores it; if you did not add it, find out who did"
		}
		o.AddMalformed(r, severity, "the file "+f.Path+" can't be used: "+f.Why, next)
	}

	return o
}

// kindsOf returns the kinds of the resources in a backup, as far as they are known. A resource
// without a readable item can lack a kind.
func kindsOf(b *archive.Backup, o *diagnosis.Objects) map[schema.GroupResource]schema.GroupVersionKind {
	kinds := map[schema.GroupResource]schema.GroupVersionKind{}
	for _, gvk := range o.Composed() {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds[plural.GroupResource()] = gvk
	}
	for _, i := range b.Items {
		kinds[i.GroupResource] = i.Ref().GroupVersionKind()
	}

	return kinds
}

// knownFormat is the major version of the backup layout that this plugin reads (velero
// pkg/backup/backup.go, BackupFormatVersion).
const knownFormat = 1

// formatOf returns a warning if the backup's format is not the known one.
func formatOf(b *archive.Backup, file string) []report.Problem {
	major, _, _ := strings.Cut(b.Format, ".")
	if n, err := strconv.Atoi(major); err == nil && n == knownFormat {
		return nil
	}

	return []report.Problem{{
		Code: reason.FormatUnknown, Severity: report.Warning, Object: xp.Ref{Kind: "Backup", Name: source(file)},
		Reason: fmt.Sprintf("its format is %q, and this program knows %d", b.Format, knownFormat),
		Next:   "this report can be wrong; use a newer version of this program, and compare with: velero backup describe",
	}}
}

// maxNames limits how many names a suggestion lists.
const maxNames = 5

// emptyProblems returns a problem for a backup without trees, or without trees in the namespace if
// one is given: the name can be wrong, or the file the wrong one. A backup of the platform alone
// has no trees and no problem. trees are those of all namespaces.
func emptyProblems(b *archive.Backup, file, namespace string, trees []*report.Node) []report.Problem {
	if namespace != "" && len(trees) > 0 {
		in := sets.New[string]()
		for _, n := range trees {
			in.Insert(n.Namespace)
		}
		next := "check the name"
		if names := sets.List(in.Delete("")); len(names) > 0 {
			next += "; the backup has some in namespaces such as " + strings.Join(names[:min(len(names), maxNames)], ", ")
		}

		return []report.Problem{{
			Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{APIVersion: "v1", Kind: "Namespace", Name: namespace},
			Reason: "the backup has no claim, XR or managed resource in it", Next: next,
		}}
	}
	if slices.ContainsFunc(b.Items, func(i archive.Item) bool { return xp.IsCrossplaneGroup(i.Group) }) {
		return nil
	}

	return []report.Problem{{
		Code: reason.NotFound, Severity: report.Error, Object: xp.Ref{Kind: "Backup", Name: source(file)},
		Reason: "it has no claim, XR, managed resource or XRD",
		Next:   "check the file, and which namespaces and resources the backup includes: velero backup describe",
	}}
}

// inNamespace returns the trees with an object in the namespace. It keeps the problems of objects
// in these trees or in the namespace.
func inNamespace(trees []*report.Node, problems []report.Problem, namespace string) ([]*report.Node, []report.Problem) {
	mine := sets.New[xp.ID]()
	trees = slices.DeleteFunc(trees, func(root *report.Node) bool {
		all := slices.Collect(report.All(root))
		if !slices.ContainsFunc(all, func(n *report.Node) bool { return n.Namespace == namespace }) {
			return true
		}
		for _, n := range all {
			mine.Insert(n.ID())
		}

		return false
	})
	problems = slices.DeleteFunc(problems, func(p report.Problem) bool { return p.Object.Namespace != namespace && !mine.Has(p.Object.ID()) })

	return trees, problems
}

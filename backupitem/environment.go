package backupitem

import (
	"context"
	"slices"

	"github.com/sirupsen/logrus"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// environments adds the EnvironmentConfigs in the pipeline of an XR's CompositionRevision, which
// the platform's authors write. If an optional one is missing, a function can leave out composed
// resources, and Crossplane then deletes these.
func (res *Resolver) environments(ctx context.Context, f *found, revision *unstructured.Unstructured) {
	reads := xp.PipelineInputsOf(revision)
	if len(reads.Others) > 0 {
		f.reads = append(f.reads, reading{of: revision, what: reads})
	}
	for _, name := range reads.Environments {
		ref := xp.Ref{APIVersion: xp.KindEnvironment.GroupVersion().String(), Kind: xp.KindEnvironment.Kind, Name: name}
		u, err := res.listed(ctx, f, ref, metav1.ListOptions{}) // There are few, and thousands of XRs can name a missing one.
		item := xp.Item{GroupResource: xp.ResourceEnvironment, Name: name}
		switch {
		case err != nil:
			f.addUnreadable(ref, err)
		case u != nil:
			f.share(revision, u, item)
		case res.isFirst(item):
			f.skip(revision, ref, reason.EnvironmentMissing.Messagef("it does not exist"))
		}
	}
}

// A reading has the other inputs of a CompositionRevision's functions, which the backup may not
// have.
type reading struct {
	of   *unstructured.Unstructured
	what *xp.PipelineInputs
}

func (r reading) warn(log logrus.FieldLogger) {
	warn(log, logrus.Fields{"object": xp.String(r.of), "reference": "what its functions read", "cause": r.what.String()}, reason.PipelineReads.Messagef(
		"%s: the backup can lack what its functions read: %s. If so, create that in the cluster before a restore: a function that finds less can leave out "+
			"composed resources, and Crossplane deletes these", xp.String(r.of), r.what))
}

// unwarned returns the readings to warn of: each revision once, and none if the backup has
// everything.
func (res *Resolver) unwarned(readings []reading, backup *velerov1.Backup) []reading {
	if ptr.Deref(backup.Spec.IncludeClusterResources, false) && len(backup.Spec.IncludedNamespaces) == 0 && len(backup.Spec.ExcludedNamespaces) == 0 {
		return nil
	}

	return slices.DeleteFunc(readings, func(r reading) bool {
		return !res.isFirst(xp.Item{GroupResource: schema.GroupResource{Resource: "readings"}, Name: r.of.GetName()})
	})
}

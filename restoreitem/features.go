package restoreitem

import (
	"slices"
	"sync"

	"github.com/sirupsen/logrus"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// FeatureRelink is the Velero feature that restores owner references (velero PR #10556, in no
// release yet).
const FeatureRelink = "OwnerRefRelink"

// A VeleroFeatures knows what to leave to the Velero server. The actions of one process share one;
// nil leaves nothing.
type VeleroFeatures struct {
	features []string
	logged   sync.Once
}

// NewVeleroFeatures returns a VeleroFeatures for a server with the features.
func NewVeleroFeatures(features []string) *VeleroFeatures {
	return &VeleroFeatures{features: features}
}

// writesOwners reports whether Velero writes owner references, and logs that once. Two writers
// would undo each other's changes.
func (f *VeleroFeatures) writesOwners(log logrus.FieldLogger) bool {
	if f == nil || !slices.Contains(f.features, FeatureRelink) {
		return false
	}
	f.logged.Do(func() {
		m := reason.OwnersLeftToVelero.Messagef("The feature %s is on, so Velero writes the owner references, of the kinds in its ConfigMap. Crossplane takes "+
			"control of what an XR lists; see docs/compatibility.md", FeatureRelink)
		withCode(log, m).Info(m)
	})

	return true
}

package restoreitem

import (
	"slices"
	"sync"

	"github.com/sirupsen/logrus"
)

// FeatureRelink is the Velero feature that restores owner references (velero PR #10556, in no
// release yet).
const FeatureRelink = "OwnerRefRelink"

// A VeleroFeatures knows what to leave to the Velero server. The actions of one process share one;
// nil leaves nothing.
type VeleroFeatures struct {
	features func() []string
	logged   sync.Once
}

// NewVeleroFeatures returns a VeleroFeatures for a server with the features.
func NewVeleroFeatures(features func() []string) *VeleroFeatures {
	return &VeleroFeatures{features: features}
}

// writesOwners reports whether Velero writes owner references, and logs that once. Two writers
// would undo each other's changes.
func (f *VeleroFeatures) writesOwners(log logrus.FieldLogger) bool {
	if f == nil || !slices.Contains(f.features(), FeatureRelink) {
		return false
	}
	f.logged.Do(func() {
		log.Info("Velero's own " + FeatureRelink + " is on, so owner references are left to it; holds, order and all else are as ever. " +
			"It writes those of the kinds that its ConfigMap lists in inScope. Of the others Crossplane takes control of what an XR lists, and the rest has no owner: " +
			"see docs/compatibility.md")
	})

	return true
}

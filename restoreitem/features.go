package restoreitem

import (
	"slices"
	"sync"

	"github.com/sirupsen/logrus"
)

// FeatureRelink is the feature with which Velero gives restored objects their owners back itself
// (velero PR #10556, which no release has yet).
const FeatureRelink = "OwnerRefRelink"

// A VeleroFeatures leaves to Velero what it was told to do itself. The actions of one process share
// one; nil leaves nothing.
type VeleroFeatures struct {
	features func() []string
	told     sync.Once
}

// NewVeleroFeatures returns one for a Velero that was started with the features.
func NewVeleroFeatures(features func() []string) *VeleroFeatures {
	return &VeleroFeatures{features: features}
}

// writesOwners reports whether owner references are Velero's to write, and says so the first time.
// Two who write them would each correct the other.
func (f *VeleroFeatures) writesOwners(log logrus.FieldLogger) bool {
	if f == nil || !slices.Contains(f.features(), FeatureRelink) {
		return false
	}
	f.told.Do(func() {
		log.Info("Velero's own " + FeatureRelink + " is on, so owner references are left to it; holds, order and all else are as ever. " +
			"It writes those of the kinds that its ConfigMap lists in inScope. Of the others Crossplane takes control of what an XR lists, and the rest has no owner: " +
			"see docs/compatibility.md")
	})

	return true
}

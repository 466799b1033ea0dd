// Package features names the feature flags of the generated controllers.
package features

import "github.com/crossplane/crossplane-runtime/v2/pkg/feature"

// EnableBetaManagementPolicies makes MRs follow their managementPolicies.
const EnableBetaManagementPolicies = feature.EnableBetaManagementPolicies

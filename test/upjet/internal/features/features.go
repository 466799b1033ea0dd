// Package features names what of the generated controllers can be turned off.
package features

import "github.com/crossplane/crossplane-runtime/v2/pkg/feature"

// EnableBetaManagementPolicies has MRs do what their managementPolicies say.
const EnableBetaManagementPolicies = feature.EnableBetaManagementPolicies

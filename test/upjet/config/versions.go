package config

import (
	"github.com/crossplane/upjet/v2/pkg/config"
	"github.com/crossplane/upjet/v2/pkg/config/conversion"
)

// A volume has two versions. What is its range in the former is its cidr, as Terraform calls it, in
// the one that its controller reconciles. It is stored in the former until a CRD says otherwise, as
// upjet's providers do until no cluster has a provider that does not know the latter.
const (
	volume = "cloud_volume"

	formerVersion, version = "v1beta1", "v1beta2"
	formerField, field     = "range", "cidr"
)

// former configures a volume as it was when it had one version.
func former(r *config.Resource) {
	if r.Name != volume {
		return
	}
	s := r.TerraformResource.Schema
	s[formerField] = s[field]
	delete(s, field)
}

// renamed configures a volume as it is.
func renamed(r *config.Resource) {
	if r.Name != volume {
		return
	}
	r.Version, r.PreviousVersions = version, []string{formerVersion}
	r.SetCRDStorageVersion(formerVersion)
	r.Conversions = []conversion.Conversion{
		conversion.NewIdentityConversionExpandPaths(conversion.AllVersions, conversion.AllVersions, conversion.DefaultPathPrefixes(), formerField, field),
	}
	for _, prefix := range conversion.DefaultPathPrefixes() {
		r.Conversions = append(r.Conversions,
			conversion.NewFieldRenameConversion(formerVersion, prefix+"."+formerField, version, prefix+"."+field),
			conversion.NewFieldRenameConversion(version, prefix+"."+field, formerVersion, prefix+"."+formerField),
		)
	}
}

package config

import (
	"github.com/crossplane/upjet/v2/pkg/config"
	"github.com/crossplane/upjet/v2/pkg/config/conversion"
)

// A volume has two versions. The field range of the former is cidr, as in Terraform, in the latter,
// which its controller reconciles. The former is the storage version until a CRD changes that.
// Upjet's providers keep it until no cluster runs a provider without the latter.
const (
	volume = "cloud_volume"

	formerVersion, version = "v1beta1", "v1beta2"
	formerField, field     = "range", "cidr"
)

// former configures a volume with its former version only.
func former(r *config.Resource) {
	if r.Name != volume {
		return
	}
	s := r.TerraformResource.Schema
	s[formerField] = s[field]
	delete(s, field)
}

// renamed configures a volume with both versions.
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

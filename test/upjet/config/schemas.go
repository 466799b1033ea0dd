package config

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	fw "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// schemas returns the part of the output of "terraform providers schema -json" that upjet reads:
// the names of the kinds of the plugin SDK, and the attributes of those of the plugin framework,
// which are all strings.
func schemas(ctx context.Context, sdk *schema.Provider, framework provider.Provider) []byte {
	all := map[string]any{}
	for name := range sdk.ResourcesMap {
		all[name] = block(map[string]any{"id": map[string]any{"type": "string", "computed": true}})
	}
	for _, fn := range framework.Resources(ctx) {
		meta, rsp := fw.MetadataResponse{}, fw.SchemaResponse{}
		fn().Metadata(ctx, fw.MetadataRequest{ProviderTypeName: "cloud"}, &meta)
		fn().Schema(ctx, fw.SchemaRequest{}, &rsp)
		attributes := map[string]any{}
		for name, a := range rsp.Schema.Attributes {
			attributes[name] = map[string]any{"type": "string", "required": a.IsRequired(), "optional": a.IsOptional(), "computed": a.IsComputed()}
		}
		all[meta.TypeName] = block(attributes)
	}
	b, err := json.Marshal(map[string]any{
		"format_version":   "1.0",
		"provider_schemas": map[string]any{"cloud": map[string]any{"resource_schemas": all}},
	})
	if err != nil {
		panic(fmt.Sprintf("cannot encode the schemas: %v", err)) // Maps of strings and booleans always encode.
	}

	return b
}

func block(attributes map[string]any) map[string]any {
	return map[string]any{"version": 0, "block": map[string]any{"attributes": attributes}}
}

package cloud

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	fw "github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// NewFramework returns the Terraform provider with the plugin framework. Its resources use the
// client.
func NewFramework(c *Client) *Framework { return &Framework{client: c} }

// A Framework is a provider.Provider.
type Framework struct {
	client *Client
}

// Metadata sets the prefix of its kinds' names.
func (f *Framework) Metadata(_ context.Context, _ provider.MetadataRequest, rsp *provider.MetadataResponse) {
	rsp.TypeName = "cloud"
}

// Schema is empty: there is nothing to configure.
func (f *Framework) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

// Configure passes on the client.
func (f *Framework) Configure(_ context.Context, _ provider.ConfigureRequest, rsp *provider.ConfigureResponse) {
	rsp.ResourceData = f.client
}

// DataSources returns none.
func (f *Framework) DataSources(context.Context) []func() datasource.DataSource { return nil }

// Resources returns the one kind.
func (f *Framework) Resources(context.Context) []func() fw.Resource {
	return []func() fw.Resource{func() fw.Resource { return &record{} }}
}

// A record is a resource whose ID the cloud chooses. Its identity, which Terraform stores beside
// its state, differs at each read: Terraform calls that an unexpected identity change.
type record struct {
	client *Client
}

type recordIdentity struct {
	Seen types.String `tfsdk:"seen"`
}

type recordModel struct {
	ID   types.String `tfsdk:"id"`
	Zone types.String `tfsdk:"zone"`
}

// Metadata sets the kind's name.
func (r *record) Metadata(_ context.Context, req fw.MetadataRequest, rsp *fw.MetadataResponse) {
	rsp.TypeName = req.ProviderTypeName + "_record"
}

// Schema returns the fields of a record.
func (r *record) Schema(_ context.Context, _ fw.SchemaRequest, rsp *fw.SchemaResponse) {
	rsp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id":   schema.StringAttribute{Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}},
		"zone": schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
	}}
}

// IdentitySchema returns the fields of its identity.
func (r *record) IdentitySchema(_ context.Context, _ fw.IdentitySchemaRequest, rsp *fw.IdentitySchemaResponse) {
	rsp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{"seen": identityschema.StringAttribute{RequiredForImport: true}}}
}

// Configure stores the client.
func (r *record) Configure(_ context.Context, req fw.ConfigureRequest, _ *fw.ConfigureResponse) {
	if c, ok := req.ProviderData.(*Client); ok {
		r.client = c
	}
}

// Create a record.
func (r *record) Create(ctx context.Context, req fw.CreateRequest, rsp *fw.CreateResponse) {
	var m recordModel
	rsp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	if rsp.Diagnostics.HasError() {
		return
	}
	got, err := r.client.create(ctx, networks, "", spec{CIDR: m.Zone.ValueString()})
	if err != nil {
		rsp.Diagnostics.AddError("cannot create the record", err.Error())

		return
	}
	r.set(ctx, &rsp.State, rsp.Identity, &rsp.Diagnostics, got)
}

// Read a record.
func (r *record) Read(ctx context.Context, req fw.ReadRequest, rsp *fw.ReadResponse) {
	var m recordModel
	rsp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if rsp.Diagnostics.HasError() {
		return
	}
	if m.ID.ValueString() == "" {
		rsp.State.RemoveResource(ctx)

		return
	}
	got, err := r.client.get(ctx, networks, m.ID.ValueString())
	if errors.Is(err, errNotFound) {
		rsp.State.RemoveResource(ctx)

		return
	}
	if err != nil {
		rsp.Diagnostics.AddError("cannot read the record", err.Error())

		return
	}
	r.set(ctx, &rsp.State, rsp.Identity, &rsp.Diagnostics, got)
}

// Update is never called: a record's only field can't be changed.
func (r *record) Update(context.Context, fw.UpdateRequest, *fw.UpdateResponse) {}

// Delete a record.
func (r *record) Delete(ctx context.Context, req fw.DeleteRequest, rsp *fw.DeleteResponse) {
	var m recordModel
	rsp.Diagnostics.Append(req.State.Get(ctx, &m)...)
	if err := r.client.remove(ctx, networks, m.ID.ValueString()); err != nil {
		rsp.Diagnostics.AddError("cannot delete the record", err.Error())
	}
}

func (r *record) set(ctx context.Context, state *tfsdk.State, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics, got resource) {
	if identity != nil {
		diags.Append(identity.Set(ctx, recordIdentity{Seen: types.StringValue(rand.Text())})...)
	}
	diags.Append(state.Set(ctx, recordModel{ID: types.StringValue(got.ID), Zone: types.StringValue(got.Spec.CIDR)})...)
}

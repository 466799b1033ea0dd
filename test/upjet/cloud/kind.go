package cloud

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// A kind of Terraform resource, which the cloud has under another name.
type kind struct {
	// cloud is what the cloud calls the kind.
	cloud  string
	schema map[string]*schema.Schema
	// spec is what to ask the cloud for.
	spec func(*schema.ResourceData) spec
	// state is what Terraform remembers of a resource, beside its ID.
	state func(resource) map[string]any
	// chosen is the cloud's ID of a resource whose creator chooses it.
	chosen func(*schema.ResourceData) string
	// id is Terraform's ID for the cloud's, and cloudID the other way; they are the same if these
	// are nil.
	id      func(*schema.ResourceData, string) string
	cloudID func(string) string
	// elsewhere says that the resource is not where Terraform remembers it to be.
	elsewhere func(*schema.ResourceData, resource) bool
}

func (k kind) resource() *schema.Resource {
	r := &schema.Resource{Schema: k.schema, CreateContext: k.create, ReadContext: k.read, DeleteContext: k.remove}
	for _, s := range k.schema {
		if !s.ForceNew && (s.Required || s.Optional) {
			r.UpdateContext = k.update
		}
	}

	return r
}

// create fails half way if what was created can't be seen.
func (k kind) create(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	c, chosen := client(meta), ""
	if k.chosen != nil {
		chosen = k.chosen(d)
	}
	r, err := c.create(ctx, k.cloud, chosen, k.spec(d))
	if err != nil {
		return diag.FromErr(err)
	}
	id := r.ID
	if k.id != nil {
		id = k.id(d, id)
	}
	d.SetId(id)
	r, err = c.available(ctx, k.cloud, r.ID)
	if err != nil {
		return diag.FromErr(err)
	}

	return k.set(d, r)
}

func (k kind) read(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	r, err := client(meta).get(ctx, k.cloud, k.of(d))
	if errors.Is(err, errNotFound) || err == nil && k.elsewhere != nil && k.elsewhere(d, r) {
		d.SetId("")

		return nil
	}
	if err != nil {
		return diag.FromErr(err)
	}

	return k.set(d, r)
}

func (k kind) update(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	r, err := client(meta).update(ctx, k.cloud, k.of(d), k.spec(d))
	if err != nil {
		return diag.FromErr(err)
	}

	return k.set(d, r)
}

func (k kind) remove(ctx context.Context, d *schema.ResourceData, meta any) diag.Diagnostics {
	return diag.FromErr(client(meta).remove(ctx, k.cloud, k.of(d)))
}

// of returns the cloud's ID of a resource.
func (k kind) of(d *schema.ResourceData) string {
	if k.cloudID == nil {
		return d.Id()
	}

	return k.cloudID(d.Id())
}

func (k kind) set(d *schema.ResourceData, r resource) diag.Diagnostics {
	for key, value := range k.state(r) {
		if err := d.Set(key, value); err != nil {
			return diag.FromErr(err)
		}
	}

	return nil
}

func client(meta any) *Client {
	return meta.(*Client) //nolint:forcetypeassert // Upjet hands on what the provider was set up with.
}

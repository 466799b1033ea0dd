package cloud

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-sdk/v2/diag"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// A kind is a kind of Terraform resource. The cloud has another name for it.
type kind struct {
	// cloud is the cloud's name of the kind.
	cloud  string
	schema map[string]*schema.Schema
	// spec returns the desired state for the cloud.
	spec func(*schema.ResourceData) spec
	// state returns Terraform's state of a resource, beside its ID.
	state func(resource) map[string]any
	// chosen returns the cloud's ID of a resource whose creator chooses it.
	chosen func(*schema.ResourceData) string
	// id returns Terraform's ID for the cloud's, and cloudID the reverse; without them both are the
	// same.
	id      func(*schema.ResourceData, string) string
	cloudID func(string) string
	// elsewhere reports whether the resource is not where Terraform's state has it.
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

// create fails after the creation if it can't read the created resource.
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
	return meta.(*Client) //nolint:forcetypeassert // Upjet passes on the meta of the provider's setup.
}

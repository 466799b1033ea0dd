package cloud

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// The cloud's names of kinds.
const (
	buckets   = "buckets"
	networks  = "networks"
	databases = "databases"
)

// New returns the Terraform provider, whose meta is a *Client.
func New() *schema.Provider {
	resources := map[string]*schema.Resource{}
	for name, k := range kinds() {
		resources[name] = k.resource()
	}

	return &schema.Provider{ResourcesMap: resources}
}

func kinds() map[string]kind {
	return map[string]kind{
		"cloud_bucket": {
			cloud: buckets,
			schema: map[string]*schema.Schema{
				"name":   {Type: schema.TypeString, Required: true, ForceNew: true},
				"region": {Type: schema.TypeString, Required: true, ForceNew: true},
				"tags":   {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			},
			chosen: func(d *schema.ResourceData) string { return text(d, "name") },
			spec:   func(d *schema.ResourceData) spec { return spec{Region: text(d, "region"), Tags: tags(d)} },
			state: func(r resource) map[string]any {
				return map[string]any{"name": r.ID, "region": r.Spec.Region, "tags": r.Spec.Tags}
			},
		},
		"cloud_network": network(),
		"cloud_gateway": network(),
		"cloud_database": {
			cloud: databases,
			schema: map[string]*schema.Schema{
				"engine":              {Type: schema.TypeString, Optional: true, Computed: true},
				"size_gb":             {Type: schema.TypeInt, Required: true},
				"password":            {Type: schema.TypeString, Optional: true, Sensitive: true},
				"endpoint":            {Type: schema.TypeString, Computed: true},
				"connection_password": {Type: schema.TypeString, Computed: true, Sensitive: true},
			},
			spec: func(d *schema.ResourceData) spec {
				s := spec{Engine: text(d, "engine"), Password: text(d, "password")}
				s.SizeGB, _ = d.Get("size_gb").(int)
				if s.Engine == "" {
					s.Engine = "postgres"
				}

				return s
			},
			state: func(r resource) map[string]any {
				state := map[string]any{"engine": r.Spec.Engine, "size_gb": r.Spec.SizeGB, "password": r.Spec.Password}
				if r.Connection != nil {
					state["endpoint"], state["connection_password"] = r.Connection.Endpoint, r.Connection.Password
				}

				return state
			},
		},
		"cloud_folder": {
			cloud: buckets,
			schema: map[string]*schema.Schema{
				"name":   {Type: schema.TypeString, Required: true, ForceNew: true},
				"region": {Type: schema.TypeString, Required: true, ForceNew: true},
			},
			chosen: func(d *schema.ResourceData) string {
				return "/regions/" + text(d, "region") + "/folders/" + text(d, "name")
			},
			spec: func(d *schema.ResourceData) spec { return spec{Region: text(d, "region")} },
			state: func(r resource) map[string]any {
				return map[string]any{"name": after(r.ID, "/"), "region": r.Spec.Region}
			},
		},
		"cloud_topic": {
			cloud: buckets,
			schema: map[string]*schema.Schema{
				"name": {Type: schema.TypeString, Required: true, ForceNew: true},
				"tags": {Type: schema.TypeMap, Optional: true, Elem: &schema.Schema{Type: schema.TypeString}},
			},
			chosen: func(d *schema.ResourceData) string { return "arn:cloud:topic:" + Account + ":" + text(d, "name") },
			spec:   func(d *schema.ResourceData) spec { return spec{Tags: tags(d)} },
			state: func(r resource) map[string]any {
				return map[string]any{"name": after(r.ID, ":"), "tags": r.Spec.Tags}
			},
		},
		"cloud_registry": network(),
		"cloud_subnet":   subnet(),
		"cloud_cluster":  cluster(),
		"cloud_volume":   cluster(),
	}
}

// Account is the AWS account in ARNs.
const Account = "123456789012"

func network() kind {
	return kind{
		cloud:  networks,
		schema: map[string]*schema.Schema{"cidr": {Type: schema.TypeString, Required: true, ForceNew: true}},
		spec:   func(d *schema.ResourceData) spec { return spec{CIDR: text(d, "cidr")} },
		state:  func(r resource) map[string]any { return map[string]any{"cidr": r.Spec.CIDR} },
	}
}

// subnet is a child: its ID contains that of its network.
func subnet() kind {
	return kind{
		cloud: networks,
		schema: map[string]*schema.Schema{
			"network_id": {Type: schema.TypeString, Required: true, ForceNew: true},
			"cidr":       {Type: schema.TypeString, Required: true, ForceNew: true},
		},
		spec: func(d *schema.ResourceData) spec { return spec{CIDR: text(d, "cidr"), Region: text(d, "network_id")} },
		state: func(r resource) map[string]any {
			return map[string]any{"cidr": r.Spec.CIDR, "network_id": r.Spec.Region}
		},
		id:      func(d *schema.ResourceData, id string) string { return text(d, "network_id") + "/" + id },
		cloudID: func(id string) string { return after(id, "/") },
	}
}

// cluster is a kind that can be found only with its zone, which its creator does not choose.
func cluster() kind {
	return kind{
		cloud: networks,
		schema: map[string]*schema.Schema{
			"cidr": {Type: schema.TypeString, Required: true, ForceNew: true},
			"zone": {Type: schema.TypeString, Computed: true},
		},
		spec:      func(d *schema.ResourceData) spec { return spec{CIDR: text(d, "cidr"), Region: "zone-1"} },
		state:     func(r resource) map[string]any { return map[string]any{"cidr": r.Spec.CIDR, "zone": r.Spec.Region} },
		elsewhere: func(d *schema.ResourceData, r resource) bool { return text(d, "zone") != r.Spec.Region },
	}
}

func text(d *schema.ResourceData, key string) string {
	return d.Get(key).(string) //nolint:forcetypeassert // The schema has this type.
}

func tags(d *schema.ResourceData) map[string]string {
	tags := map[string]string{}
	for key, value := range d.Get("tags").(map[string]any) { //nolint:forcetypeassert // The schema has this type.
		tags[key] = value.(string) //nolint:forcetypeassert // The schema has this type.
	}

	return tags
}

// after returns the text after the last separator.
func after(id, separator string) string { return id[strings.LastIndex(id, separator)+1:] }

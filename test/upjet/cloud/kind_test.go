package cloud

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
)

// A fake is a cloud with the created resources. It fails a number of reads.
type fake struct {
	mu        sync.Mutex
	resources map[string]resource
	failing   int
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()

	parts := strings.SplitN(strings.TrimPrefix(r.URL.Path, "/v1/"), "/", 2)
	switch r.Method {
	case http.MethodPost:
		var in resource
		_ = json.NewDecoder(r.Body).Decode(&in)
		if in.ID == "" {
			in.ID = "net-1"
		}
		in.State = "available"
		f.resources[in.ID] = in
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(in)
	case http.MethodGet:
		got, ok := f.resources[parts[1]]
		switch {
		case f.failing > 0:
			f.failing--
			w.WriteHeader(http.StatusInternalServerError)
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		default:
			_ = json.NewEncoder(w).Encode(got)
		}
	case http.MethodDelete:
		delete(f.resources, parts[1])
		w.WriteHeader(http.StatusNoContent)
	}
}

func TestSchemas(t *testing.T) {
	if err := New().InternalValidate(); err != nil {
		t.Errorf("New().InternalValidate(): %v", err)
	}
}

// TestCreateAndRead checks Terraform's state of a resource after its creation, and whether
// Terraform finds the resource again by it.
func TestCreateAndRead(t *testing.T) {
	cases := map[string]struct {
		reason   string
		resource string
		given    map[string]any
		failing  int
		forget   []string
		id       string
		fails    bool
		gone     bool
	}{
		"Chosen":   {reason: "The creator chooses the ID.", resource: "cloud_bucket", given: map[string]any{"name": "b", "region": "here"}, id: "b"},
		"Assigned": {reason: "The cloud chooses the ID.", resource: "cloud_network", given: map[string]any{"cidr": "10.0.0.0/16"}, id: "net-1"},
		"Child": {
			reason: "The parent's ID is part of it.", resource: "cloud_subnet", given: map[string]any{"cidr": "10.0.0.0/24", "network_id": "net-0"}, id: "net-0/net-1",
		},
		"HalfWay": {
			reason: "A created resource has its ID though it can't be read.", resource: "cloud_gateway", given: map[string]any{"cidr": "10.0.0.0/16"}, failing: 1, id: "net-1",
			fails: true,
		},
		"Cluster":         {reason: "It is where it was created.", resource: "cloud_cluster", given: map[string]any{"cidr": "10.0.0.0/16"}, id: "net-1"},
		"ForgottenZone":   {reason: "It is not found by its ID alone.", resource: "cloud_cluster", given: map[string]any{"cidr": "10.0.0.0/16"}, forget: []string{"zone"}, id: "net-1", gone: true},
		"ForgottenRegion": {reason: "A bucket is.", resource: "cloud_bucket", given: map[string]any{"name": "b", "region": "here"}, forget: []string{"region"}, id: "b"},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(&fake{resources: map[string]resource{}, failing: tc.failing})
			defer s.Close()

			c := NewClient(s.URL, nil)
			r := New().ResourcesMap[tc.resource]
			d := schema.TestResourceDataRaw(t, r.Schema, tc.given)

			diags := r.CreateContext(context.Background(), d, c)
			if diags.HasError() != tc.fails || d.Id() != tc.id {
				t.Fatalf("\n%s\nr.CreateContext(...): want ID %q and failure %t, got %q and %v", tc.reason, tc.id, tc.fails, d.Id(), diags)
			}

			for _, key := range tc.forget {
				if err := d.Set(key, ""); err != nil {
					t.Fatal(err)
				}
			}

			if diags := r.ReadContext(context.Background(), d, c); diags.HasError() {
				t.Fatalf("\n%s\nr.ReadContext(...): %v", tc.reason, diags)
			}
			if diff := cmp.Diff(tc.gone, d.Id() == ""); diff != "" {
				t.Errorf("\n%s\nr.ReadContext(...): -want gone, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

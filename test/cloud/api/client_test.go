package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

func TestClient(t *testing.T) {
	type request struct {
		Method, URI, Body string
		Caller            api.Caller
	}

	type response struct {
		status int
		body   string
	}

	type want struct {
		request  request
		out      any
		err      string
		notFound bool
		conflict bool
	}

	caller := api.Caller{Cluster: "a", ManagedBy: "b", Composite: "c", CompositionResourceName: "d"}

	cases := map[string]struct {
		reason   string
		call     func(ctx context.Context, c *api.Client) (any, error)
		response response
		want     want
	}{
		"Create": {
			reason: "A create should post the spec, and name the caller.",
			call: func(ctx context.Context, c *api.Client) (any, error) {
				return c.As(caller).Create(ctx, api.Bucket, "logs", api.Spec{Region: "here"})
			},
			response: response{status: http.StatusCreated, body: `{"kind":"Bucket","id":"logs","state":"available"}`},
			want: want{
				request: request{Method: http.MethodPost, URI: "/v1/buckets", Body: `"spec":{"region":"here"}`, Caller: caller},
				out:     api.Resource{Kind: api.Bucket, ID: "logs", State: api.Available},
			},
		},
		"CreateConflict": {
			reason: "A conflict should differ from other errors.",
			call: func(ctx context.Context, c *api.Client) (any, error) {
				return c.Create(ctx, api.Bucket, "logs", api.Spec{})
			},
			response: response{status: http.StatusConflict, body: `{"message":"there is one"}`},
			want: want{
				request:  request{Method: http.MethodPost, URI: "/v1/buckets", Body: `"id":"logs"`},
				out:      api.Resource{},
				err:      `cannot create Bucket "logs" in the cloud: there is one (HTTP status 409)`,
				conflict: true,
			},
		},
		"GetNotFound": {
			reason: "A missing resource should differ from other errors, and its ID should be escaped.",
			call: func(ctx context.Context, c *api.Client) (any, error) {
				return c.Get(ctx, api.Network, "a/b")
			},
			response: response{status: http.StatusNotFound, body: `{"message":"there is none"}`},
			want: want{
				request:  request{Method: http.MethodGet, URI: "/v1/networks/a%2Fb"},
				out:      api.Resource{},
				err:      `cannot get Network "a/b" from the cloud: there is none (HTTP status 404)`,
				notFound: true,
			},
		},
		"Update": {
			reason: "An update should put the spec.",
			call: func(ctx context.Context, c *api.Client) (any, error) {
				return c.Update(ctx, api.Database, "db-1", api.Spec{SizeGB: 2})
			},
			response: response{status: http.StatusOK, body: `{"id":"db-1"}`},
			want: want{
				request: request{Method: http.MethodPut, URI: "/v1/databases/db-1", Body: `"spec":{"sizeGB":2}`},
				out:     api.Resource{ID: "db-1"},
			},
		},
		"Delete": {
			reason:   "A delete has no body either way.",
			call:     func(ctx context.Context, c *api.Client) (any, error) { return nil, c.Delete(ctx, api.Bucket, "logs") },
			response: response{status: http.StatusNoContent},
			want:     want{request: request{Method: http.MethodDelete, URI: "/v1/buckets/logs"}},
		},
		"NotOurError": {
			reason:   "An error that is not the cloud's should still be one.",
			call:     func(ctx context.Context, c *api.Client) (any, error) { return nil, c.Delete(ctx, api.Bucket, "logs") },
			response: response{status: http.StatusBadGateway, body: "<html>"},
			want: want{
				request: request{Method: http.MethodDelete, URI: "/v1/buckets/logs"},
				err:     `cannot delete Bucket "logs" from the cloud: the cloud responded 502 Bad Gateway (HTTP status 502)`,
			},
		},
		"Journal": {
			reason: "The journal should be asked for from a sequence number on, and for some operations.",
			call: func(ctx context.Context, c *api.Client) (any, error) {
				return c.Journal(ctx, 7, api.Create, api.Delete)
			},
			response: response{status: http.StatusOK, body: `[{"seq":8,"op":"create","kind":"Bucket","id":"logs","status":201,"managedBy":"b"}]`},
			want: want{
				request: request{Method: http.MethodGet, URI: "/v1/journal?op=create%2Cdelete&since=7"},
				out: []api.Entry{{
					Seq: 8, Op: api.Create, Kind: api.Bucket, ID: "logs", Status: http.StatusCreated, Caller: api.Caller{ManagedBy: "b"},
				}},
			},
		},
		"List": {
			reason:   "Every resource should be listed.",
			call:     func(ctx context.Context, c *api.Client) (any, error) { return c.List(ctx) },
			response: response{status: http.StatusOK, body: `[{"kind":"Bucket","id":"logs"}]`},
			want: want{
				request: request{Method: http.MethodGet, URI: "/v1/resources"},
				out:     []api.Resource{{Kind: api.Bucket, ID: "logs"}},
			},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got request

			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				got = request{Method: r.Method, URI: r.RequestURI, Body: string(b), Caller: api.Caller{
					Cluster:                 r.Header.Get(api.HeaderCluster),
					ManagedBy:               r.Header.Get(api.HeaderManagedBy),
					Composite:               r.Header.Get(api.HeaderComposite),
					CompositionResourceName: r.Header.Get(api.HeaderCompositionResourceName),
				}}

				w.WriteHeader(tc.response.status)
				_, _ = io.WriteString(w, tc.response.body)
			}))
			t.Cleanup(h.Close)

			out, err := tc.call(t.Context(), api.NewClient(h.URL+"/"))

			if !strings.Contains(got.Body, tc.want.request.Body) {
				t.Errorf("\n%s\nbody: want %s in:\n%s", tc.reason, tc.want.request.Body, got.Body)
			}

			got.Body = tc.want.request.Body
			if diff := cmp.Diff(tc.want.request, got); diff != "" {
				t.Errorf("\n%s\nrequest: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff(tc.want.out, out); diff != "" {
				t.Errorf("\n%s\nresult: -want, +got:\n%s", tc.reason, diff)
			}

			msg := ""
			if err != nil {
				msg = err.Error()
			}

			if diff := cmp.Diff(tc.want.err, msg); diff != "" {
				t.Errorf("\n%s\nerror: -want, +got:\n%s", tc.reason, diff)
			}

			if diff := cmp.Diff([]bool{tc.want.notFound, tc.want.conflict}, []bool{api.IsNotFound(err), api.IsConflict(err)}); diff != "" {
				t.Errorf("\n%s\nIsNotFound(err), IsConflict(err): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

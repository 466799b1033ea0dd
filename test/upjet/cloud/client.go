// Package cloud is a Terraform provider for the small cloud in test/cloud, with the plugin SDK and,
// for one kind, the plugin framework. It has its own client: the cloud's module needs a newer
// crossplane-runtime than upjet compiles with.
package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// interval is the time between two reads of a resource that is being created.
const interval = 200 * time.Millisecond

// A spec is the desired state of a resource.
type spec struct {
	Region   string            `json:"region,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	CIDR     string            `json:"cidr,omitempty"`
	Engine   string            `json:"engine,omitempty"`
	SizeGB   int               `json:"sizeGB,omitempty"`
	Password string            `json:"password,omitempty"`
}

type connection struct {
	Endpoint string `json:"endpoint"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// A resource in the cloud.
type resource struct {
	ID         string      `json:"id"`
	State      string      `json:"state"`
	Spec       spec        `json:"spec"`
	Connection *connection `json:"connection,omitempty"`
}

// errNotFound is the cloud's answer for a missing resource.
var errNotFound = errors.New("it is not in the cloud")

// A Client of the cloud.
type Client struct {
	url     string
	headers map[string]string
}

// NewClient returns a client of the cloud at the URL, whose calls have the headers.
func NewClient(cloudURL string, headers map[string]string) *Client {
	return &Client{url: strings.TrimRight(cloudURL, "/"), headers: headers}
}

func (c *Client) create(ctx context.Context, kind, id string, s spec) (resource, error) {
	return c.do(ctx, http.MethodPost, "/v1/"+kind, &resource{ID: id, Spec: s})
}

func (c *Client) get(ctx context.Context, kind, id string) (resource, error) {
	return c.do(ctx, http.MethodGet, "/v1/"+kind+"/"+url.PathEscape(id), nil)
}

func (c *Client) update(ctx context.Context, kind, id string, s spec) (resource, error) {
	return c.do(ctx, http.MethodPut, "/v1/"+kind+"/"+url.PathEscape(id), &resource{Spec: s})
}

// remove deletes a resource, and waits until it is gone.
func (c *Client) remove(ctx context.Context, kind, id string) error {
	_, err := c.do(ctx, http.MethodDelete, "/v1/"+kind+"/"+url.PathEscape(id), nil)
	if err == nil {
		_, err = c.await(ctx, kind, id, func(resource) bool { return false })
	}
	if errors.Is(err, errNotFound) {
		return nil
	}

	return err
}

// available waits until a resource is available.
func (c *Client) available(ctx context.Context, kind, id string) (resource, error) {
	return c.await(ctx, kind, id, func(r resource) bool { return r.State == "available" })
}

// await reads a resource until done returns true or a read fails.
func (c *Client) await(ctx context.Context, kind, id string, done func(resource) bool) (resource, error) {
	t := time.NewTicker(interval)
	defer t.Stop()

	for {
		r, err := c.get(ctx, kind, id)
		if err != nil || done(r) {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, fmt.Errorf("cannot wait for %s %q: %w", kind, id, ctx.Err())
		case <-t.C:
		}
	}
}

func (c *Client) do(ctx context.Context, method, path string, in *resource) (resource, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return resource{}, fmt.Errorf("cannot encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return resource{}, fmt.Errorf("cannot make the request: %w", err)
	}
	for name, value := range c.headers {
		req.Header.Set(name, value)
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return resource{}, fmt.Errorf("cannot reach the cloud: %w", err)
	}
	defer rsp.Body.Close() //nolint:errcheck // The body was read, or there is an error to return already.

	out := resource{}
	switch {
	case rsp.StatusCode == http.StatusNotFound:
		return out, errNotFound
	case rsp.StatusCode >= http.StatusBadRequest:
		return out, fmt.Errorf("cannot %s %s: the cloud responded %s", method, path, rsp.Status)
	case rsp.StatusCode == http.StatusNoContent:
		return out, nil
	}
	if err := json.NewDecoder(rsp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("cannot decode the response: %w", err)
	}

	return out, nil
}

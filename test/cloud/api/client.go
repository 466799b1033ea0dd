package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Headers with the caller.
const (
	HeaderCluster                 = "X-Cluster"
	HeaderManagedBy               = "X-Managed-By"
	HeaderComposite               = "X-Composite"
	HeaderCompositionResourceName = "X-Composition-Resource-Name"
)

// An Error is the cloud's answer to a refused call.
type Error struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
}

// Error returns the cloud's message and HTTP status.
func (e *Error) Error() string { return fmt.Sprintf("%s (HTTP status %d)", e.Message, e.Status) }

// IsNotFound reports whether the resource does not exist.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsConflict reports whether the resource exists already.
func IsConflict(err error) bool { return hasStatus(err, http.StatusConflict) }

func hasStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

// A Client of the cloud. Use NewClient.
type Client struct {
	url    string
	caller Caller
}

// NewClient returns a client of the cloud at the URL, such as http://127.0.0.1:9090.
func NewClient(cloudURL string) *Client { return &Client{url: strings.TrimRight(cloudURL, "/")} }

// As returns a client whose calls name the caller.
func (c *Client) As(caller Caller) *Client {
	as := *c
	as.caller = caller

	return &as
}

// Create a resource. The caller chooses the ID of a Bucket, and must leave it empty for every other
// kind.
func (c *Client) Create(ctx context.Context, k Kind, id string, s Spec) (Resource, error) {
	return c.one(ctx, Create, http.MethodPost, kindPath(k), k, id, Resource{ID: id, Spec: s})
}

// Get a resource.
func (c *Client) Get(ctx context.Context, k Kind, id string) (Resource, error) {
	return c.one(ctx, Read, http.MethodGet, idPath(k, id), k, id, nil)
}

// Update a resource. The spec replaces the one it has.
func (c *Client) Update(ctx context.Context, k Kind, id string, s Spec) (Resource, error) {
	return c.one(ctx, Update, http.MethodPut, idPath(k, id), k, id, Resource{Spec: s})
}

func (c *Client) one(ctx context.Context, op Op, method, path string, k Kind, id string, in any) (Resource, error) {
	r := Resource{}
	if err := c.do(ctx, method, path, in, &r); err != nil {
		return Resource{}, fmt.Errorf("cannot %s %s %q in the cloud: %w", op, k, id, err)
	}

	return r, nil
}

// Delete a resource.
func (c *Client) Delete(ctx context.Context, k Kind, id string) error {
	if err := c.do(ctx, http.MethodDelete, idPath(k, id), nil, nil); err != nil {
		return fmt.Errorf("cannot delete %s %q from the cloud: %w", k, id, err)
	}

	return nil
}

// List every resource, by kind and ID. It leaves no entry in the journal.
func (c *Client) List(ctx context.Context) ([]Resource, error) {
	var rs []Resource
	if err := c.do(ctx, http.MethodGet, "/v1/resources", nil, &rs); err != nil {
		return nil, fmt.Errorf("cannot list the resources in the cloud: %w", err)
	}

	return rs, nil
}

// Journal returns the entries after the sequence number, oldest first: those of the operations, or
// all if none is given. It leaves no entry in the journal.
func (c *Client) Journal(ctx context.Context, since int64, ops ...Op) ([]Entry, error) {
	q := url.Values{"since": {strconv.FormatInt(since, 10)}}
	if len(ops) > 0 {
		names := make([]string, len(ops))
		for i, op := range ops {
			names[i] = string(op)
		}

		q.Set("op", strings.Join(names, ","))
	}

	var es []Entry
	if err := c.do(ctx, http.MethodGet, "/v1/journal?"+q.Encode(), nil, &es); err != nil {
		return nil, fmt.Errorf("cannot get the journal of the cloud: %w", err)
	}

	return es, nil
}

// Fail makes later calls fail.
func (c *Client) Fail(ctx context.Context, f Fault) error {
	if err := c.do(ctx, http.MethodPost, "/v1/faults", f, nil); err != nil {
		return fmt.Errorf("cannot add a fault to the cloud: %w", err)
	}

	return nil
}

// Recover removes every Fault. Stalled calls stay stalled.
func (c *Client) Recover(ctx context.Context) error { return c.RecoverBy(ctx, "") }

// RecoverBy removes the faults whose By begins with the text.
func (c *Client) RecoverBy(ctx context.Context, by string) error {
	if err := c.do(ctx, http.MethodDelete, "/v1/faults?by="+url.QueryEscape(by), nil, nil); err != nil {
		return fmt.Errorf("cannot make the cloud forget its faults: %w", err)
	}

	return nil
}

// Release answers every call that a Fault has stalled.
func (c *Client) Release(ctx context.Context) error {
	if err := c.do(ctx, http.MethodPost, "/v1/release", nil, nil); err != nil {
		return fmt.Errorf("cannot release the stalled calls of the cloud: %w", err)
	}

	return nil
}

// KindFor returns the kind of a path segment of the API, e.g. Bucket for buckets.
func KindFor(segment string) (Kind, bool) {
	for _, k := range Kinds() {
		if kindPath(k) == "/v1/"+segment {
			return k, true
		}
	}

	return "", false
}

func kindPath(k Kind) string { return "/v1/" + strings.ToLower(string(k)) + "s" }

func idPath(k Kind, id string) string { return kindPath(k) + "/" + url.PathEscape(id) }

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader

	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}

		body = bytes.NewReader(b)
	}

	req, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}

	for header, value := range map[string]string{
		HeaderCluster:                 c.caller.Cluster,
		HeaderManagedBy:               c.caller.ManagedBy,
		HeaderComposite:               c.caller.Composite,
		HeaderCompositionResourceName: c.caller.CompositionResourceName,
	} {
		if value != "" {
			req.Header.Set(header, value)
		}
	}

	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the cloud: %w", err)
	}
	defer rsp.Body.Close() //nolint:errcheck // The body was read, or there is an error to return already.

	if rsp.StatusCode >= http.StatusBadRequest {
		return responseError(rsp)
	}

	if out == nil {
		return nil
	}

	if err := json.NewDecoder(rsp.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot decode the response: %w", err)
	}

	return nil
}

// responseError returns the cloud's error, also if the body has no message.
func responseError(rsp *http.Response) error {
	e := &Error{}
	if err := json.NewDecoder(rsp.Body).Decode(e); err != nil || e.Message == "" {
		e.Message = "the cloud responded " + rsp.Status
	}

	e.Status = rsp.StatusCode

	return e
}

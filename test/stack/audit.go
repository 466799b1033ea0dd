package stack

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
- ResponseStarted
- Panic
rules:
- level: Request
  verbs: [patch]
- level: Metadata
`

// A Request is a request that the API server has answered.
type Request struct {
	// At is when the request came, and Done when it was answered.
	At, Done time.Time
	// User sent the request; a ServiceAccount has the prefix system:serviceaccount:. UserAgent is
	// the program.
	User      string
	UserAgent string
	// Verb is a verb of Kubernetes, such as "list" or "deletecollection". For a URL that is no
	// resource it is the HTTP method in lower case.
	Verb string
	// Group, Resource, Subresource, Namespace and Name are those of the object; each is "" if it
	// has none.
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// URI is the whole request URI, with the query.
	URI string
	// Code is the HTTP status of the answer.
	Code int
	// Body is the body of a patch as JSON; else "".
	Body string
}

// An auditEvent is what this package reads of an Event of audit.k8s.io/v1.
type auditEvent struct {
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
	UserAgent                string    `json:"userAgent"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
	Verb          string          `json:"verb"`
	RequestURI    string          `json:"requestURI"`
	RequestObject json.RawMessage `json:"requestObject"`
	ObjectRef     struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// Requests returns the requests that the API server has answered until now, in the order of the
// answers. A watch is answered when it ends.
func (c *Cluster) Requests(ctx context.Context) ([]Request, error) {
	all, _, err := c.RequestsSince(ctx, 0)

	return all, err
}

// RequestsSince returns the requests after a place in the log, and the place to go on from. Place 0
// is the beginning.
func (c *Cluster) RequestsSince(ctx context.Context, place int64) (requests []Request, next int64, err error) {
	// The API server logs a request just after it has answered it. Once a later request is in the
	// log, all earlier ones are.
	last := "/version?last=" + rand.Text()
	client, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, 0, fmt.Errorf("cannot make a client of the API server: %w", err)
	}
	if err := answers(client, c.config.Host+last)(ctx, nil); err != nil {
		return nil, 0, fmt.Errorf("cannot mark the end of the requests of cluster %s: %w", c.options.Name, err)
	}
	err = c.Wait(ctx, readyTimeout, "the requests of cluster "+c.options.Name, func(context.Context) error {
		f, err := os.Open(c.auditFile())
		if err != nil {
			return fmt.Errorf("cannot open the audit log: %w", err)
		}
		defer f.Close() //nolint:errcheck // It was only read.
		if _, err := f.Seek(place, io.SeekStart); err != nil {
			return fmt.Errorf("cannot go on in the audit log: %w", err)
		}
		var read int64
		requests, read, err = requestsBefore(f, last)
		next = place + read

		return err
	})

	return requests, next, err
}

// requestsBefore reads an audit log up to the request for a URI, and returns how many bytes that
// was. It fails if the request is not in the log.
func requestsBefore(log io.Reader, uri string) (all []Request, read int64, err error) {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		read += int64(len(line))
		if errors.Is(err, io.EOF) { // The API server is still writing this line.
			return nil, 0, fmt.Errorf("cannot find the request for %s in the audit log", uri)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("cannot read the audit log: %w", err)
		}
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, 0, fmt.Errorf("cannot parse the audit log: %w", err)
		}
		if e.RequestURI == uri {
			return all, read, nil
		}
		all = append(all, Request{
			At: e.RequestReceivedTimestamp, Done: e.StageTimestamp, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb, Group: e.ObjectRef.APIGroup,
			Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
			URI: e.RequestURI, Code: e.ResponseStatus.Code, Body: string(e.RequestObject),
		})
	}
}

// auditArgs returns the flags that make the API server log each request.
func (c *Cluster) auditArgs() ([]string, error) {
	policy := filepath.Join(c.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o644); err != nil {
		return nil, fmt.Errorf("cannot write the audit policy of cluster %s: %w", c.options.Name, err)
	}

	return []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditFile(),
		"--audit-log-mode=blocking",   // In batches, the last requests are lost if the server is killed.
		"--audit-log-maxsize=1000000", // MB. The default is 100, and older requests then go into another file.
	}, nil
}

func (c *Cluster) auditFile() string { return filepath.Join(c.dir, "audit.log") }

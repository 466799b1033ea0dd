package stack

import (
	"net/http"
	"strings"
)

// discoveryResource is the resource of discovery calls.
const discoveryResource = "discovery"

// A Call is a call of a client of the API server.
type Call struct {
	// Program is the client's User-Agent up to its version.
	Program string
	// Verb is a verb of Kubernetes, such as "list". For a URL that is no resource it is the HTTP
	// method in lower case.
	Verb string
	// Resource is the resource with its group and subresource, if it has them, such as
	// "xrs.example.org/status"; discoveryResource for discovery.
	Resource string

	// path distinguishes it from other calls with the same verb.
	path string
}

// callOf reads a request to an API server.
func callOf(r *http.Request) Call {
	c := Call{Program: r.UserAgent(), Verb: strings.ToLower(r.Method), Resource: discoveryResource, path: r.URL.Path}
	if i := strings.IndexAny(c.Program, "/ "); i >= 0 {
		c.Program = c.Program[:i]
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		return c
	}
	ofNamespace := len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
	if parts[0] == "namespaces" && len(parts) > 2 && !ofNamespace {
		parts = parts[2:]
	}
	c.Resource = parts[0]
	if group != "" {
		c.Resource += "." + group
	}
	if len(parts) > 2 {
		c.Resource += "/" + parts[2]
	}
	c.Verb = verbOf(r, len(parts) > 1)

	return c
}

func verbOf(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodDelete:
		return "delete"
	case http.MethodGet:
		if watch := r.URL.Query().Get("watch"); watch == "1" || watch == "true" {
			return "watch"
		}
		if !named {
			return "list"
		}
	}

	return strings.ToLower(r.Method)
}

func (c Call) isWatch() bool { return c.Verb == "watch" }

func (c Call) isWrite() bool {
	return c.Verb == "create" || c.Verb == "update" || c.Verb == "patch" || c.Verb == "delete"
}

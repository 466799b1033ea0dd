// Package meter measures what happens on the real stack from outside: what was asked of the API
// server and by whom, how long a phase lasted, and what the processes of the plugin took.
package meter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Client is who asks the API server.
type Client string

// Clients that are told apart.
const (
	Plugin     Client = "plugin"
	Velero     Client = "velero"
	Crossplane Client = "crossplane"
	Other      Client = "other"
)

// ClientOf tells who has made a request, by the name that the program gives itself.
func ClientOf(r stack.Request) Client {
	switch {
	case strings.HasPrefix(r.UserAgent, "velero-plugin-for-crossplane"):
		return Plugin
	case strings.HasPrefix(r.UserAgent, "velero-server/"):
		return Velero
	case strings.HasPrefix(r.UserAgent, "crossplane"):
		return Crossplane
	default:
		return Other
	}
}

// Between returns the requests of a client that came in a time.
func Between(requests []stack.Request, client Client, from, to time.Time) []stack.Request {
	var some []stack.Request
	for _, r := range requests {
		if ClientOf(r) == client && !r.At.Before(from) && !r.At.After(to) {
			some = append(some, r)
		}
	}

	return some
}

// Kinds counts requests by what they did to what, such as "create buckets", "patch buckets/status"
// or "patch buckets: 409".
func Kinds(requests []stack.Request) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		counts[what(r)]++
	}

	return counts
}

func what(r stack.Request) string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	if resource == "" { // Discovery, for example.
		resource = "(no resource)"
	}

	if r.Code >= http.StatusBadRequest { // A conflict, for example.
		return fmt.Sprintf("%s %s: %d", r.Verb, resource, r.Code)
	}

	return r.Verb + " " + resource
}

// Lists returns how often the kind was listed that was listed most often. Pages of one list are
// one.
func Lists(requests []stack.Request) int {
	counts := map[string]int{}
	most := 0
	for _, r := range requests {
		if r.Verb == "list" && !strings.Contains(r.URI, "continue=") {
			key := r.Group + "/" + r.Resource
			counts[key]++
			most = max(most, counts[key])
		}
	}

	return most
}

// IsItem reports whether Velero's request is about an object that it restores or backs up, and not
// about its own work or what there is to restore.
func IsItem(r stack.Request) bool {
	return ClientOf(r) == Velero && r.Name != "" && r.Group != "velero.io" && r.Group != "coordination.k8s.io" && (r.Verb == "get" || isWrite(r))
}

// isWrite reports whether a request is to change something.
func isWrite(r stack.Request) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// hasWritten reports whether a request has changed something, and was not refused.
func hasWritten(r stack.Request) bool { return isWrite(r) && r.Code < http.StatusBadRequest }

// LastItem returns when Velero's last request about an item was answered in a time; zero if there
// is none.
func LastItem(requests []stack.Request, from, to time.Time) time.Time {
	var last time.Time
	for _, r := range requests {
		if IsItem(r) && !r.At.Before(from) && !r.At.After(to) && r.Done.After(last) {
			last = r.Done
		}
	}

	return last
}

// LastRelease returns when the plugin's last request was answered that took a hold off; zero if
// there is none. The bodies of patches must have been logged.
func LastRelease(requests []stack.Request) time.Time {
	var last time.Time
	for _, r := range requests {
		if ClientOf(r) == Plugin && hasWritten(r) && isRelease(r.Body) && r.Done.After(last) {
			last = r.Done
		}
	}

	return last
}

// isRelease reports whether what was sent takes a hold off: a patch that removes its mark, or a
// configuration without it, which is to be applied.
func isRelease(body string) bool {
	const mark = `"velero.crossplane.x-k8s.io/hold":`

	return strings.Contains(body, mark+"null") || strings.HasPrefix(body, `{"apiVersion":`) && !strings.Contains(body, mark)
}

// An Object is one of the API server's.
type Object struct{ Resource, Namespace, Name string }

// FirstWrites returns when a client has first changed each object of the resources since a time.
func FirstWrites(requests []stack.Request, client Client, since time.Time, resources ...string) map[Object]time.Time {
	first := map[Object]time.Time{}
	for _, r := range requests {
		if ClientOf(r) != client || !hasWritten(r) || r.At.Before(since) || !slices.Contains(resources, r.Resource) {
			continue
		}
		o := Object{Resource: r.Resource, Namespace: r.Namespace, Name: r.Name}
		if at, ok := first[o]; !ok || r.Done.Before(at) {
			first[o] = r.Done
		}
	}

	return first
}

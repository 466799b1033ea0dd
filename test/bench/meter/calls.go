// Package meter measures the real stack from outside: the requests to the API server by client, the
// duration of phases, and the resources of the plugin's processes.
package meter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A Client is a client of the API server.
type Client string

// The clients that ClientOf distinguishes.
const (
	Plugin     Client = "plugin"
	Velero     Client = "velero"
	Crossplane Client = "crossplane"
	Other      Client = "other"
)

// ClientOf returns the client of a request, by its User-Agent.
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

// Between returns the requests of a client between two times.
func Between(requests []stack.Request, client Client, from, to time.Time) []stack.Request {
	var some []stack.Request
	for _, r := range requests {
		if ClientOf(r) == client && !r.At.Before(from) && !r.At.After(to) {
			some = append(some, r)
		}
	}

	return some
}

// Kinds counts requests by verb and resource, such as "create buckets", "patch buckets/status" or
// "patch buckets: 409".
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

// Lists returns how often the most listed kind was listed. The pages of one list count once. A
// ManagedResourceDefinition belongs to one kind of MR, so the lists that name one count for each.
func Lists(requests []stack.Request) int {
	counts := map[string]int{}
	most := 0
	for _, r := range requests {
		if r.Verb == "list" && !strings.Contains(r.URI, "continue=") {
			key := r.Group + "/" + r.Resource
			if r.Resource == "managedresourcedefinitions" {
				key += "/" + r.Name
			}
			counts[key]++
			most = max(most, counts[key])
		}
	}

	return most
}

// IsItem reports whether Velero's request is about an object that it restores or backs up, rather
// than about its own objects or a backup's contents.
func IsItem(r stack.Request) bool {
	return ClientOf(r) == Velero && r.Name != "" && r.Group != "velero.io" && r.Group != "coordination.k8s.io" && (r.Verb == "get" || isWrite(r))
}

// isWrite reports whether a request is a write.
func isWrite(r stack.Request) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb)
}

// hasWritten reports whether a request is a write that was not refused.
func hasWritten(r stack.Request) bool { return isWrite(r) && r.Code < http.StatusBadRequest }

// LastItem returns when Velero's last request about an item between two times was answered; zero if
// there is none.
func LastItem(requests []stack.Request, from, to time.Time) time.Time {
	var last time.Time
	for _, r := range requests {
		if IsItem(r) && !r.At.Before(from) && !r.At.After(to) && r.Done.After(last) {
			last = r.Done
		}
	}

	return last
}

// LastRelease returns when the plugin's last request that released a hold was answered; zero if
// there is none. The log must have the bodies of patches.
func LastRelease(requests []stack.Request) time.Time {
	var last time.Time
	for _, r := range requests {
		if ClientOf(r) == Plugin && hasWritten(r) && isRelease(r.Body) && r.Done.After(last) {
			last = r.Done
		}
	}

	return last
}

// isRelease reports whether a body releases a hold: a patch that removes its mark, or an apply
// configuration without the mark.
func isRelease(body string) bool {
	const mark = `"velero.crossplane.x-k8s.io/hold":`

	return strings.Contains(body, mark+"null") || strings.HasPrefix(body, `{"apiVersion":`) && !strings.Contains(body, mark)
}

// An Object is an object of the API server.
type Object struct{ Resource, Namespace, Name string }

// FirstWrites returns the times at which a client first changed each object of the resources since
// a time.
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

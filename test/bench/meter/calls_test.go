package meter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const (
	plugin     = "velero-plugin-for-crossplane"
	server     = "velero-server/v1.18.3 (linux/amd64)"
	crossplane = "crossplane/v2.3.4 (linux/amd64)"
)

// at returns a time, in seconds.
func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// asked returns a request that came at a time and was answered a tenth of a second later.
func asked(agent string, seconds float64, verb, group, resource, name string) stack.Request {
	return stack.Request{UserAgent: agent, At: at(seconds), Done: at(seconds + 0.1), Verb: verb, Group: group, Resource: resource, Name: name, URI: "/" + resource}
}

func TestLastItem(t *testing.T) {
	cases := map[string]struct {
		reason   string
		requests []stack.Request
		want     time.Time
	}{
		"Patched": {
			reason: "An item is restored when its last request was answered.",
			requests: []stack.Request{
				asked(server, 1, "create", "c.org", "buckets", ""), asked(server, 2, "create", "c.org", "buckets", "b"), asked(server, 3, "patch", "c.org", "buckets", "b"),
			},
			want: at(3.1),
		},
		"Own": {
			reason:   "Velero's writes to the Restore are no items, and go on after the last item.",
			requests: []stack.Request{asked(server, 3, "patch", "c.org", "buckets", "b"), asked(server, 4, "patch", "velero.io", "restores", "r")},
			want:     at(3.1),
		},
		"Outside":  {reason: "Requests after the phase do not belong to it.", requests: []stack.Request{asked(server, 11, "patch", "c.org", "buckets", "b")}},
		"Informer": {reason: "Lists and watches are how Velero gets ready.", requests: []stack.Request{asked(server, 3, "list", "c.org", "buckets", "")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LastItem(tc.requests, at(0), at(10))); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLists(t *testing.T) {
	list := func(group, uri string) stack.Request {
		return stack.Request{UserAgent: plugin, Verb: "list", Group: group, Resource: "buckets", URI: uri}
	}
	requests := []stack.Request{asked(plugin, 1, "get", "c.org", "buckets", "b"), list("c.org", "/"), list("d.org", "/"), list("c.org", "/?continue=a")}
	if got := Lists(requests); got != 1 {
		t.Errorf("A list in pages is one list, and kinds of two groups can have the same name: %d", got)
	}
	if got := Lists(append(requests, list("c.org", "/"))); got != 2 {
		t.Errorf("The kind that is listed most counts: %d", got)
	}
	named := func(resource, name string) stack.Request { return asked(plugin, 1, "list", "d.org", resource, name) }
	if got := Lists([]stack.Request{named("managedresourcedefinitions", "a"), named("managedresourcedefinitions", "b")}); got != 1 {
		t.Errorf("Each kind of MR has a definition of its own: %d", got)
	}
	if got := Lists([]stack.Request{named("buckets", "a"), named("buckets", "b"), named("buckets", "c")}); got != 3 {
		t.Errorf("A read of each object is no list of a kind: %d", got)
	}
}

func TestBetween(t *testing.T) {
	requests := []stack.Request{
		asked(plugin, 1, "get", "x.org", "shops", "a"), asked(plugin, 2, "get", "x.org", "shops", "b"), asked(server, 2, "get", "x.org", "shops", "b"),
		{UserAgent: plugin, At: at(3), Verb: "patch", Resource: "shops", Subresource: "status"},
		{UserAgent: plugin, At: at(3), Verb: "get", Code: 200},
		{UserAgent: plugin, At: at(3), Verb: "patch", Resource: "shops", Code: 409},
		asked(plugin, 9, "get", "x.org", "shops", "c"),
	}
	want := map[string]int{"get shops": 1, "patch shops/status": 1, "patch shops: 409": 1, "get (no resource)": 1}
	if diff := cmp.Diff(want, Kinds(Between(requests, Plugin, at(2), at(8)))); diff != "" {
		t.Errorf("Only what the client has asked for in that time counts.\n-want, +got:\n%s", diff)
	}
}

func TestFirstWrites(t *testing.T) {
	requests := []stack.Request{
		asked(crossplane, 1, "patch", "c.org", "buckets", "a"), // Before the restart.
		asked(crossplane, 5, "patch", "c.org", "buckets", "a"), asked(crossplane, 6, "patch", "c.org", "buckets", "a"), asked(crossplane, 7, "patch", "c.org", "networks", "n"),
		asked(crossplane, 5, "get", "c.org", "buckets", "b"), asked(plugin, 5, "patch", "c.org", "buckets", "c"), asked(crossplane, 5, "patch", "x.org", "shops", "s"),
		{UserAgent: crossplane, At: at(8), Done: at(8), Verb: "patch", Resource: "networks", Name: "refused", Code: 409},
	}
	want := map[Object]time.Time{{Resource: "buckets", Name: "a"}: at(5.1), {Resource: "networks", Name: "n"}: at(7.1)}
	if diff := cmp.Diff(want, FirstWrites(requests, Crossplane, at(4), "buckets", "networks")); diff != "" {
		t.Errorf("One round of Crossplane's is over when it has changed each object once since then.\n-want, +got:\n%s", diff)
	}
}

func TestLastRelease(t *testing.T) {
	const off, on = `{"metadata":{"annotations":{"crossplane.io/paused":null,"velero.crossplane.x-k8s.io/hold":null}}}`, `{"metadata":{"annotations":{"velero.crossplane.x-k8s.io/hold":"{}"}}}`
	const applied, kept = `{"apiVersion":"example.org/v1","kind":"Shop","metadata":{"name":"a"}}`, `{"apiVersion":"example.org/v1","kind":"Shop","metadata":{"annotations":{"velero.crossplane.x-k8s.io/hold":"{}"}}}`
	patch := func(client string, sent float64, body string, code int) stack.Request {
		return stack.Request{UserAgent: client, At: at(sent), Done: at(sent + 0.1), Verb: "patch", Resource: "shops", Body: body, Code: code}
	}
	requests := []stack.Request{
		patch(plugin, 1, off, 200), patch(plugin, 5, off, 200), patch(plugin, 3, off, 200), patch(plugin, 6, off, 409), patch(plugin, 7, on, 200), patch(crossplane, 8, off, 200),
		patch(plugin, 9, kept, 200),
	}
	if diff := cmp.Diff(at(5.1), LastRelease(requests)); diff != "" {
		t.Errorf("An XR is released when the patch is answered that takes the hold off, and not when Crossplane is asked for something later.\n-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(at(10.1), LastRelease(append(requests, patch(plugin, 10, applied, 200)))); diff != "" {
		t.Errorf("A hold that was applied is off when it is not applied any more.\n-want, +got:\n%s", diff)
	}
	if got := LastRelease(requests[4:]); !got.IsZero() {
		t.Errorf("Nothing is released at %v", got)
	}
}

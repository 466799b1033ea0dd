package stack

import (
	"strings"
	"testing"
)

func TestDeletionsIn(t *testing.T) {
	request := func(agent, verb, body string) string {
		return `{"userAgent":"` + agent + `","verb":"` + verb + `","requestURI":"/x","requestObject":` + body + "}\n"
	}
	const merge = `{"metadata":{"finalizers":null}}`
	cases := map[string]struct {
		reason, log string
		fails       bool
	}{
		"None":         {reason: "Nothing was asked."},
		"Others":       {reason: "Velero and Crossplane delete.", log: request("velero-server/v1", "delete", "null") + request("crossplane", "patch", merge)},
		"Reads":        {reason: "The plugin reads and patches.", log: request(pluginAgent, "list", "null") + request(pluginAgent, "patch", `{"metadata":{}}`)},
		"Delete":       {reason: "The plugin deletes nothing.", log: request(pluginAgent, "delete", "null"), fails: true},
		"Collection":   {reason: "Nor does it delete many.", log: request(pluginAgent, "deletecollection", "null"), fails: true},
		"MergePatch":   {reason: "It takes nobody's finalizer off.", log: request(pluginAgent, "patch", merge), fails: true},
		"JSONPatch":    {reason: "Whatever the kind of patch is.", log: request(pluginAgent, "patch", `[{"op":"remove","path":"/metadata/finalizers/0"}]`), fails: true},
		"Adds":         {reason: "An XR that it takes over gets Crossplane's finalizer back.", log: request(pluginAgent, "patch", `{"metadata":{"finalizers":["a"]}}`)},
		"Unfinished":   {reason: "The server was killed.", log: request(pluginAgent, "list", "null") + `{"userAgent":"` + pluginAgent},
		"NotAuditJSON": {reason: "What can't be read proves nothing.", log: pluginAgent + "\n", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := deletionsIn(strings.NewReader(tc.log)); (err != nil) != tc.fails {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}

package argocd

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/yaml"
)

// A health is what Argo CD shows.
type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// script returns the health script of a group with a wildcard.
func script(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../example/gitops/argocd/health.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := corev1.ConfigMap{}
	if err := yaml.UnmarshalStrict(b, &config); err != nil {
		t.Fatal(err)
	}
	customizations := map[string]struct {
		Health string `json:"health.lua"`
	}{}
	if err := yaml.UnmarshalStrict([]byte(config.Data["resource.customizations"]), &customizations); err != nil {
		t.Fatal(err)
	}

	return customizations["*.example.org/*"].Health
}

// judge runs the script on an object in YAML, with the libraries that Argo CD gives it (argo-cd
// util/lua/lua.go).
func judge(t *testing.T, object string) health {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	obj, err := luajson.Decode(state, b)
	if err != nil {
		t.Fatal(err)
	}
	state.SetGlobal("obj", obj)
	if err := state.DoString(script(t)); err != nil {
		t.Fatal(err)
	}
	result, err := luajson.Encode(state.Get(-1))
	if err != nil {
		t.Fatal(err)
	}
	h := health{}
	if err := json.Unmarshal(result, &h); err != nil {
		t.Fatalf("%s: %v", result, err)
	}

	return h
}

func TestHealth(t *testing.T) {
	cases := map[string]struct {
		reason, object string
		want           health
	}{
		"Held": {
			reason: "A held object must say what it waits for, with quotes as they are.",
			object: `{"kind":"Order","metadata":{"annotations":{"crossplane.io/paused":"true","velero.crossplane.x-k8s.io/hold":` +
				`"{\"restore\":\"velero/a\",\"since\":\"2026-01-02T03:04:05Z\",\"reason\":\"[AwaitingProvider] Bucket a: the \\\"cloud\\\" is away\",\"refs\":[]}"}},` +
				`"status":{"conditions":[{"type":"Synced","status":"False","reason":"ReconcilePaused"}]}}`,
			want: health{"Suspended", `[AwaitingProvider] Bucket a: the "cloud" is away`},
		},
		"Freed": {
			reason: "An object that has its own settings back is not held any more.",
			object: `{"kind":"Order","metadata":{"annotations":{"velero.crossplane.x-k8s.io/hold":"{\"reason\":\"x\",\"freed\":true}"}},` +
				`"status":{"conditions":[{"type":"Ready","status":"True","reason":"Available"}]}}`,
			want: health{"Healthy", "Available"},
		},
		"Unreadable": {
			reason: "A mark that can't be read still holds.",
			object: `{"kind":"Order","metadata":{"annotations":{"velero.crossplane.x-k8s.io/hold":"?"}}}`,
			want:   health{"Suspended", "it is on hold"},
		},
		"Paused":         {reason: "A user has paused it.", object: `{"kind":"Order","metadata":{"annotations":{"crossplane.io/paused":"true"}}}`, want: health{"Suspended", "it is paused"}},
		"New":            {reason: "It was created a moment ago.", object: `{"kind":"Order","metadata":{}}`, want: health{"Progressing", "its controller has not reported its state yet"}},
		"ProviderConfig": {reason: "It never has conditions.", object: `{"kind":"ClusterProviderConfig","metadata":{}}`, want: health{"Healthy", "it has no conditions"}},
		"Ready": {
			reason: "It is as it should be.",
			object: `{"kind":"Order","metadata":{},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Available"},{"type":"Synced","status":"True"}]}}`,
			want:   health{"Healthy", "Available"},
		},
		"Creating": {
			reason: "It is not ready yet.",
			object: `{"kind":"Order","metadata":{},"status":{"conditions":[{"type":"Synced","status":"True"},{"type":"Ready","status":"False","reason":"Creating"}]}}`,
			want:   health{"Progressing", "Creating"},
		},
		"NotSynced": {
			reason: "Its provider reports an error.",
			object: `{"kind":"Order","metadata":{},"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Synced","status":"False","message":"denied"}]}}`,
			want:   health{"Degraded", "denied"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, judge(t, tc.object)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestRunFunction(t *testing.T) {
	ready := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}
	endpoint := map[string]any{"status": map[string]any{"atProvider": map[string]any{"endpoint": "here"}}}

	overlaid := map[string]any{"desired": map[string]any{"resources": map[string]any{"c": map[string]any{"resource": map[string]any{"kind": "ConfigMap"}}}}}

	cases := map[string]struct {
		reason   string
		response map[string]any
		gate     map[string]any
		composed map[string]map[string]any
		extra    map[string]*v1beta1.Resources
		required []byte
		want     []string
	}{
		"Response": {
			reason:   "What a response desires must be desired, too.",
			response: overlaid,
			gate:     map[string]any{"resource": "b", "after": "a"},
			composed: map[string]map[string]any{"a": ready},
			want:     []string{"a", "b", "c"},
		},
		"NotReady": {
			reason:   "A resource after one that is not Ready must wait, whether it exists or not.",
			gate:     map[string]any{"resource": "b", "after": "a"},
			composed: map[string]map[string]any{"a": {}, "b": {}},
			want:     []string{"a"},
		},
		"Ready": {
			reason:   "A resource after one that is Ready must be desired.",
			gate:     map[string]any{"resource": "b", "after": "a"},
			composed: map[string]map[string]any{"a": ready},
			want:     []string{"a", "b"},
		},
		"Field": {
			reason:   "A resource whose field exists must be desired.",
			gate:     map[string]any{"resource": "b", "after": "a", "field": "status.atProvider.endpoint"},
			composed: map[string]map[string]any{"a": endpoint},
			want:     []string{"a", "b"},
		},
		"NoEnvironment": {
			reason: "A resource that needs an EnvironmentConfig must wait for it.",
			gate:   map[string]any{"resource": "b", "environment": "shared"},
			extra:  map[string]*v1beta1.Resources{"shared": {}},
			want:   []string{"a"},
		},
		"Environment": {
			reason: "A resource whose EnvironmentConfig exists must be desired.",
			gate:   map[string]any{"resource": "b", "environment": "shared"},
			extra:  map[string]*v1beta1.Resources{"shared": {Items: []*v1beta1.Resource{{}}}},
			want:   []string{"a", "b"},
		},
		"NotGiven": {
			reason:   "A required resource that Crossplane has not sent must be missing.",
			gate:     map[string]any{"resource": "b", "requirement": "shape"},
			required: append(entry(9, "other", "x"), entry(9, "shape", "")...),
			want:     []string{"a"},
		},
		"Given": {
			reason:   "A required resource that Crossplane has sent must be found.",
			gate:     map[string]any{"resource": "b", "requirement": "shape"},
			required: append(entry(9, "other", ""), entry(8, "shape", "x")...),
			want:     []string{"a", "b"},
		},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			input := map[string]any{"gates": []any{tc.gate}}
			if tc.response != nil {
				input["response"] = tc.response
			}
			in := &v1beta1.RunFunctionRequest{
				Input:          object(t, input),
				Observed:       &v1beta1.State{Resources: map[string]*v1beta1.Resource{}},
				ExtraResources: tc.extra,

				Desired: &v1beta1.State{Resources: map[string]*v1beta1.Resource{"a": {}, "b": {}}},
			}
			in.ProtoReflect().SetUnknown(tc.required)
			for name, o := range tc.composed {
				in.Observed.Resources[name] = &v1beta1.Resource{Resource: object(t, o)}
			}
			out, err := (&gate{}).RunFunction(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(out.GetDesired().GetResources())); !slices.Equal(tc.want, got) {
				t.Errorf("%s Want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func object(t *testing.T, o map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(o)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// entry returns an entry of a map that function-sdk-go does not have.
func entry(field protowire.Number, key, content string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), content)

	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), b)
}

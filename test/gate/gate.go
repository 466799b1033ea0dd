package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A gate takes resources out of the desired ones that functions before it in the pipeline want,
// until others are seen to be in a state:
//
//	apiVersion: gate.fn.example.org/v1
//	kind: Gates
//	gates:
//	- resource: network
//	  after: database                    # the name of a composed resource; none stands for the XR
//	  field: status.atProvider.endpoint  # none stands for the condition Ready
//	- resource: bucket
//	  environment: shared                # the name of an EnvironmentConfig that must be there
//	- resource: bucket
//	  requirement: shape                 # the name of what the step requires, which Crossplane must have given
//	environmentConfigs:                  # those that are asked for, as in the input of function-environment-configs
//	- type: Reference
//	  ref: {name: shared}
//
// With an input of the kind Response it overlays what that desires, as Crossplane's function-dummy does.
//
// Templates that ask for what was observed do the same, and so did function-sequencer before it
// left alone what exists already.
type gate struct {
	v1beta1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction removes the resources of closed gates.
func (g *gate) RunFunction(_ context.Context, in *v1beta1.RunFunctionRequest) (*v1beta1.RunFunctionResponse, error) {
	out := &v1beta1.RunFunctionResponse{
		Meta:    &v1beta1.ResponseMeta{Tag: in.GetMeta().GetTag(), Ttl: durationpb.New(0)},
		Desired: in.GetDesired(),
		Context: in.GetContext(),
	}
	if err := overlay(in.GetInput(), out); err != nil {
		return nil, err
	}
	if wanted := environments(in.GetInput()); len(wanted) > 0 {
		out.Requirements = &v1beta1.Requirements{ExtraResources: wanted}
	}
	for _, v := range in.GetInput().GetFields()["gates"].GetListValue().GetValues() {
		fields := v.GetStructValue().GetFields()
		resource, after, field := fields["resource"].GetStringValue(), fields["after"].GetStringValue(), fields["field"].GetStringValue()
		if name := fields["environment"].GetStringValue(); name != "" {
			if len(in.GetExtraResources()[name].GetItems()) == 0 {
				shut(out, resource, "the EnvironmentConfig "+name)
			}

			continue
		}
		if name := fields["requirement"].GetStringValue(); name != "" {
			if !given(in, name) {
				shut(out, resource, "what it requires as "+name)
			}

			continue
		}
		observed := in.GetObserved().GetComposite().GetResource()
		if after != "" {
			observed = in.GetObserved().GetResources()[after].GetResource()
		}
		if !has(observed, field) {
			shut(out, resource, fmt.Sprintf("%q of %q", field, after))
		}
	}

	return out, nil
}

// overlay adds the response that an input has, if it has one.
func overlay(input *structpb.Struct, out *v1beta1.RunFunctionResponse) error {
	wanted, ok := input.GetFields()["response"]
	if !ok {
		return nil
	}
	b, err := protojson.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("cannot encode the response in the input: %w", err)
	}
	response := &v1beta1.RunFunctionResponse{}
	if err := protojson.Unmarshal(b, response); err != nil {
		return fmt.Errorf("cannot parse the response in the input: %w", err)
	}
	proto.Merge(out, response)

	return nil
}

// shut removes a resource from the desired ones, with a message that has the reason.
func shut(out *v1beta1.RunFunctionResponse, resource, until string) {
	delete(out.GetDesired().GetResources(), resource)
	out.Results = append(out.Results, &v1beta1.Result{
		Severity: v1beta1.Severity_SEVERITY_NORMAL, Message: resource + " waits for " + until,
	})
}

// environments selects the EnvironmentConfigs of an input by their names. A missing one is no
// error.
func environments(input *structpb.Struct) map[string]*v1beta1.ResourceSelector {
	wanted := map[string]*v1beta1.ResourceSelector{}
	for _, v := range input.GetFields()["environmentConfigs"].GetListValue().GetValues() {
		if name := v.GetStructValue().GetFields()["ref"].GetStructValue().GetFields()["name"].GetStringValue(); name != "" {
			wanted[name] = &v1beta1.ResourceSelector{
				ApiVersion: "apiextensions.crossplane.io/v1beta1", Kind: "EnvironmentConfig", Match: &v1beta1.ResourceSelector_MatchName{MatchName: name},
			}
		}
	}

	return wanted
}

// Field numbers of a request that function-sdk-go v0.2.0 does not have yet: maps by the names of
// requirements.
const (
	requiredResources protowire.Number = 8
	requiredSchemas   protowire.Number = 9
)

// given reports whether Crossplane has sent the resources that the step requires under a name.
func given(in *v1beta1.RunFunctionRequest, name string) bool {
	for b := []byte(in.ProtoReflect().GetUnknown()); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		value := b[n:]
		size := protowire.ConsumeFieldValue(number, kind, value)
		if size < 0 {
			return false
		}
		if b = value[size:]; kind != protowire.BytesType || number != requiredResources && number != requiredSchemas {
			continue
		}
		entry, _ := protowire.ConsumeBytes(value)
		// An entry begins with its key, and has nothing after it if there are no required
		// resources.
		_, _, n = protowire.ConsumeTag(entry)
		key, size := protowire.ConsumeString(entry[max(n, 0):])
		if size > 0 && key == name {
			_, _, tag := protowire.ConsumeTag(entry[n+size:])
			content, _ := protowire.ConsumeBytes(entry[n+size+max(tag, 0):])

			return len(content) > 0
		}
	}

	return false
}

// has reports whether an object has the field, or is Ready if field is "".
func has(object *structpb.Struct, field string) bool {
	if field != "" {
		v := structpb.NewStructValue(object)
		for name := range strings.SplitSeq(field, ".") {
			v = v.GetStructValue().GetFields()[name]
		}

		return v != nil
	}
	for _, v := range object.GetFields()["status"].GetStructValue().GetFields()["conditions"].GetListValue().GetValues() {
		condition := v.GetStructValue().GetFields()
		if condition["type"].GetStringValue() == "Ready" {
			return condition["status"].GetStringValue() == "True"
		}
	}

	return false
}

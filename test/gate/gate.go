package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/function-sdk-go/proto/v1beta1"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// A gate takes resources out of the desired ones that functions before it in the pipeline want, until others are seen to be in a state:
//
//	apiVersion: gate.fn.example.org/v1
//	kind: Gates
//	gates:
//	- resource: network
//	  after: database                    # the name of a composed resource; none stands for the XR
//	  field: status.atProvider.endpoint  # none stands for the condition Ready
//
// Templates that ask for what was observed do the same, and so did function-sequencer before it left alone what exists already.
type gate struct {
	v1beta1.UnimplementedFunctionRunnerServiceServer
}

// RunFunction closes the gates whose time has not come.
func (g *gate) RunFunction(_ context.Context, in *v1beta1.RunFunctionRequest) (*v1beta1.RunFunctionResponse, error) {
	out := &v1beta1.RunFunctionResponse{
		Meta:    &v1beta1.ResponseMeta{Tag: in.GetMeta().GetTag(), Ttl: durationpb.New(0)},
		Desired: in.GetDesired(),
		Context: in.GetContext(),
	}
	for _, v := range in.GetInput().GetFields()["gates"].GetListValue().GetValues() {
		fields := v.GetStructValue().GetFields()
		resource, after, field := fields["resource"].GetStringValue(), fields["after"].GetStringValue(), fields["field"].GetStringValue()
		observed := in.GetObserved().GetComposite().GetResource()
		if after != "" {
			observed = in.GetObserved().GetResources()[after].GetResource()
		}
		if !has(observed, field) {
			delete(out.GetDesired().GetResources(), resource)
			out.Results = append(out.Results, &v1beta1.Result{
				Severity: v1beta1.Severity_SEVERITY_NORMAL,
				Message:  fmt.Sprintf("%s waits for %q of %q", resource, field, after),
			})
		}
	}

	return out, nil
}

// has tells whether an object has the field, or is Ready if there is no field to look for.
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

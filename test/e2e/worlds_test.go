package e2e

import (
	"maps"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// TestWorldsV2 loses and restores worlds that users have reported, on Crossplane v2.
func TestWorldsV2(t *testing.T) {
	testShapes(t, stack.V2, "v2", worlds(44, worldsOfDefinitions(), worldsOfPauses(stack.V2), worldsOfPolicies(3), worldsOfUIDs(stack.V2), worldsOfOwners(), worldsOfChannels(stack.V2)))
}

// TestWorldsV1 does so on Crossplane v1.20, where trees begin with claims.
func TestWorldsV1(t *testing.T) {
	testShapes(t, stack.V1, "v1.20", worlds(48, worldsOfPauses(stack.V1), worldsOfPolicies(7), worldsOfUIDs(stack.V1), worldsOfChannels(stack.V1)))
}

// worlds returns the control, which has size objects, with the shapes of all parts.
func worlds(size int, parts ...map[string]*shape) map[string]*shape {
	all := map[string]*shape{
		bare: {
			reason: "Velero alone loses a nested tree.",
			Scene:  drill.Scene{Dir: "nested", Count: 4, Size: size}, unplugged: true,
		},
	}
	for _, part := range parts {
		maps.Copy(all, part)
	}

	return all
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
)

// wantHeedless wants an Event about each database that its provider does not heed the pause. The provider takes less than a second for it.
func wantHeedless(t *testing.T, s *suite, n *shape, _ drill.Picture, changes []api.Entry) {
	t.Helper()
	if len(changes) > 0 {
		t.Errorf("%s\nIn the cloud: %v", n.reason, changes)
	}
	s.eventually(t, "an Event about each database of "+n.Name, func(ctx context.Context) error {
		events, err := list(ctx, s.target, schema.GroupVersionKind{Version: "v1", Kind: "Event"}, n.Name, "")
		if err != nil {
			return err
		}
		told := map[string]bool{}
		for _, e := range events {
			message, _, _ := unstructured.NestedString(e.Object, "message")
			of, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
			if e.Object["type"] == "Warning" && strings.Contains(message, "does not heed") {
				told[of] = true
			}
		}
		if len(told) != n.Count {
			return fmt.Errorf("there are Events about %v", told)
		}

		return nil
	})
}

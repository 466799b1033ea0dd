//go:build matrix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// widgets is a kind that is stored in one version. The rest of the CRD depends on the case.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.org
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  conversion: %[1]s
  versions:
  - {name: v1, served: true, storage: %[2]t, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: %[3]t, storage: %[3]t, schema: {openAPIV3Schema: {type: object}}}
`

const (
	unconverted = `{strategy: None}`
	// convertedByNobody is a webhook that takes no connection.
	convertedByNobody = `{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://127.0.0.1:1/"}}}`
)

// TestMatrixVeleroWaits is the smallest reproduction of docs/dev/upstream.md: without any plugin for
// Crossplane a Restore waits as long as a kind can't be listed.
func TestMatrixVeleroWaits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := stack.Options{Name: "only", Crossplane: stack.None, VeleroArgs: oftener}
	c, err := stack.NewCluster(ctx, newStageOf(t, o).host, o)
	must(t, err)

	define := func(conversion string, first bool) {
		t.Helper()
		u := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(fmt.Appendf(nil, widgets, conversion, first, !first), &u.Object))
		must(t, c.ApplyObjects(ctx, u))
	}
	unreadable := func(ctx context.Context) error {
		_, err := get(ctx, c, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, "demo", "live")
		if err == nil {
			return errors.New("it can be read")
		}

		return nil
	}
	widget := func(version, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/" + version, "kind": "Widget", "metadata": map[string]any{"namespace": "demo", "name": name},
		}}
	}
	define(unconverted, true)
	must(t, c.RestartVelero(ctx)) // It discovers new kinds every five minutes.
	must(t, c.ApplyObjects(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "demo"}}}))
	must(t, c.ApplyObjects(ctx, widget("v1", "backed-up")))
	must(t, drill.Platform{Namespace: "demo"}.Backup(ctx, c, "demo"))
	remove(t, c, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, "demo", "backed-up")

	define(unconverted, false)
	must(t, c.ApplyObjects(ctx, widget("v2", "live")))
	define(convertedByNobody, false)
	must(t, c.Wait(ctx, patience, "widgets to be unreadable", unreadable))
	must(t, drill.Platform{}.StartRestore(ctx, c, "waits", "demo"))
	err = c.Wait(ctx, time.Minute, "the restore to go on", func(ctx context.Context) error { _, err := ended(ctx, c, "waits"); return err })
	if err == nil {
		t.Error("Velero does not wait any more for a kind that can't be listed, unlike docs/dev/upstream.md and docs/limits.md")
	}
	t.Logf("After a minute: %v", err)
	define(unconverted, false)
	r, err := drill.AwaitRestore(ctx, c, "waits")
	must(t, err)
	t.Logf("When it can be listed: %s", drill.Phase(r))

	remove(t, c, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, "demo", "backed-up")
	define(convertedByNobody, false)
	must(t, c.Wait(ctx, patience, "widgets to be unreadable", unreadable))
	must(t, c.AddArgs(stack.Velero, "--disable-informer-cache=true"))
	must(t, c.RestartVelero(ctx))
	must(t, drill.Platform{}.StartRestore(ctx, c, "goes-on", "demo"))
	r, err = drill.AwaitRestore(ctx, c, "goes-on")
	must(t, err)
	if phase := drill.Phase(r); phase != "PartiallyFailed" {
		t.Errorf("with --disable-informer-cache it is %s", phase)
	}
	define(unconverted, false)
}

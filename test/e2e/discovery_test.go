package e2e

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

const lateXRDV2 = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: latecomers.late.example.org
spec:
  scope: Namespaced
  group: late.example.org
  names:
    kind: Latecomer
    plural: latecomers
` + lateVersions

const lateXRDV1 = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata:
  name: xlatecomers.late.example.org
spec:
  group: late.example.org
  names:
    kind: XLatecomer
    plural: xlatecomers
  claimNames:
    kind: Latecomer
    plural: latecomers
` + lateVersions

const lateVersions = `
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
`

const latecomer = `
apiVersion: v1
kind: Namespace
metadata:
  name: late
---
apiVersion: late.example.org/v1
kind: Latecomer
metadata:
  namespace: late
  name: late
spec: {}
`

// testDiscovery backs up instances of an XRD that is younger than Velero's discovery, so that they
// are not in the backup.
func (s *suite) testDiscovery(t *testing.T) {
	ctx := t.Context()
	const name = "Latecomer.late.example.org"
	xrd := lateXRDV2
	if s.version == stack.V1 {
		xrd = lateXRDV1
	}
	must(t, s.target.Apply(ctx, []byte(xrd)))
	must(t, s.target.Apply(ctx, []byte(latecomer)))
	s.eventually(t, "Crossplane to have seen the instance", func(ctx context.Context) error {
		u, err := get(ctx, s.target, schema.GroupVersionKind{Group: "late.example.org", Version: "v1", Kind: "Latecomer"}, "late", "late")
		if err == nil && len(u.GetFinalizers()) == 0 {
			err = errors.New("it has no finalizer")
		}

		return err
	})

	blind := backupWith(t, s.target, "blind", "--include-namespaces", "late")
	if _, ok := contents(t, s.target, "blind")["resources/latecomers.late.example.org/namespaces/late/late.json"]; ok {
		t.Fatal("Velero knew the kind, so this tests nothing")
	}
	logs, err := s.target.Velero(ctx, "backup", "logs", "blind")
	must(t, err)
	if warnings(blind) == 0 {
		t.Error("the Backup counts no warning, though its instances are missing")
	}
	wantMessage(t, "the log's problems of the backup", problems(logs), name, "[KindTooNew]")

	must(t, s.target.RestartVelero(ctx))
	backupWith(t, s.target, "sighted", "--include-namespaces", "late")
	if _, ok := contents(t, s.target, "sighted")["resources/latecomers.late.example.org/namespaces/late/late.json"]; !ok {
		t.Error("the instance is not in the backup of a Velero that knows its kind")
	}
	logs, err = s.target.Velero(ctx, "backup", "logs", "sighted")
	must(t, err)
	if linesWith(problems(logs), name, "[KindTooNew]") > 0 {
		t.Errorf("the backup still warns of the kind:\n%s", problems(logs))
	}
}

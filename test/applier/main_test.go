package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const mark = "example.org/mark"

// applierFn is a function that is an applier.
type applierFn func(ctx context.Context, manifest, live *unstructured.Unstructured) error

func (fn applierFn) apply(ctx context.Context, manifest, live *unstructured.Unstructured) error {
	return fn(ctx, manifest, live)
}

func TestLoop(t *testing.T) {
	type want struct {
		Out, Errs string
		Err       bool
	}
	refused := errors.New("it is refused")

	cases := map[string]struct {
		reason string
		once   bool
		refuse bool
		want   want
	}{
		"Again": {
			reason: "Only live objects must be applied, and the output must show which of them were held.",
			want:   want{Out: "free a\nheld b\n"},
		},
		"Once": {
			reason: "A missing object must be created if each is applied once.",
			once:   true,
			want:   want{Out: "free a\nheld b\nfree c\n"},
		},
		"AgainRefused": {
			reason: "The loop must go on after a failure.",
			refuse: true,
			want:   want{Errs: "cannot apply ConfigMap a: it is refused\ncannot apply ConfigMap b: it is refused\n"},
		},
		"OnceRefused": {
			reason: "Applying once must return the failure.",
			once:   true,
			refuse: true,
			want:   want{Err: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manifests, err := read(written(t))
			if err != nil {
				t.Fatal(err)
			}
			get := func(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
				if key.Name == "c" {
					return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
				}
				if key.Name == "b" {
					into.SetAnnotations(map[string]string{mark: ""})
				}

				return nil
			}
			apply := func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) error {
				if tc.refuse {
					return refused
				}

				return nil
			}
			var out, errs bytes.Buffer
			l := &loop{get: get, applier: applierFn(apply), mark: mark, out: &out, errs: &errs}
			if tc.once {
				err = l.once(t.Context(), manifests)
			} else {
				l.again(t.Context(), manifests)
			}
			if diff := cmp.Diff(tc.want, want{Out: out.String(), Errs: errs.String(), Err: err != nil}); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// pruning is an applier that records the objects that it prunes.
type pruning struct {
	applierFn

	pruned []string
	err    error
}

func (p *pruning) prune(_ context.Context, live *unstructured.Unstructured) error {
	p.pruned = append(p.pruned, live.GetName())

	return p.err
}

func TestPrune(t *testing.T) {
	manifests, err := read(written(t))
	if err != nil {
		t.Fatal(err)
	}
	get := func(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
		if key.Name == "c" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, key.Name)
		}
		into.SetName(key.Name)

		return nil
	}
	p := &pruning{}
	err = (&loop{get: get, applier: p}).prune(t.Context(), manifests)
	if diff := cmp.Diff([]string{"a", "b"}, p.pruned); err != nil || diff != "" {
		t.Errorf("Live objects must be pruned: %v, -want, +got:\n%s", err, diff)
	}
	p.err = errors.New("it is refused")
	if err := (&loop{get: get, applier: p}).prune(t.Context(), manifests); err == nil {
		t.Error("Pruning must return the failure.")
	}
	if err := (&loop{get: get, applier: &command{}}).prune(t.Context(), manifests); err == nil {
		t.Error("An applier that does not prune must return an error.")
	}
}

func TestCommand(t *testing.T) {
	m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	if err := (&command{args: []string{"grep", "-q", `"name":"a"`}}).apply(t.Context(), m, nil); err != nil {
		t.Errorf("The command must have the manifest as its input: %v", err)
	}
	err := (&command{args: []string{"sh", "-c", "echo why; exit 1"}}).apply(t.Context(), m, nil)
	if err == nil || !strings.Contains(err.Error(), "why") {
		t.Errorf("The command's output must be in the error: %v", err)
	}
}

// written returns a file with three manifests.
func written(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for _, name := range []string{"a", "b", "c"} {
		b.WriteString("- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: " + name + "\n")
	}
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

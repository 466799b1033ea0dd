package e2e

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// managed lists the MRs of a scene.
func (s *identity) managed(ctx context.Context, t *testing.T, c *stack.Cluster, scene string) []unstructured.Unstructured {
	t.Helper()
	groups := []string{"cloud.example.org"}
	if s.version != stack.V1 {
		groups = append(groups, "cloud.m.example.org")
	}
	var mrs []unstructured.Unstructured
	for _, group := range groups {
		for _, kind := range api.Kinds() {
			all, err := list(ctx, c, schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: string(kind)}, scene, "")
			must(t, err)
			for _, u := range all {
				if strings.HasPrefix(u.GetName(), scene+"-") {
					mrs = append(mrs, u)
				}
			}
		}
	}

	return mrs
}

// creates returns the creates in the cloud's journal, after an entry, by a caller whose name has the text in it.
func (s *identity) creates(ctx context.Context, t *testing.T, since int64, by string) []api.Entry {
	t.Helper()

	return s.entries(ctx, t, since, by, api.Create)
}

func (s *identity) entries(ctx context.Context, t *testing.T, since int64, by string, ops ...api.Op) []api.Entry {
	t.Helper()
	entries, err := s.cloud.Journal(ctx, since, ops...)
	must(t, err)

	return slices.DeleteFunc(entries, func(e api.Entry) bool {
		return e.Status >= http.StatusBadRequest || !strings.Contains(e.ManagedBy, by)
	})
}

// seq is the last entry of the cloud's journal.
func (s *identity) seq(t *testing.T) int64 {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), 0)
	must(t, err)

	return entries[len(entries)-1].Seq
}

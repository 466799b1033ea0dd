package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A maker is the provider of the MRs in the scenes of identity.
type maker struct {
	program string
	kinds   []schema.GroupVersionKind
	// announced is a kind whose MRs have the annotation of a pending create. silent is one that is
	// created asynchronously, whose MRs do not keep that annotation.
	announced, silent string
}

// ownMaker returns the provider of these tests.
func ownMaker(version stack.Version) maker {
	m := maker{program: stack.CloudProvider, announced: "Network", silent: "Database"}
	groups := []string{"cloud.example.org", "cloud.m.example.org"}
	if version == stack.V1 {
		m.announced, groups = "Bucket", groups[:1]
	}
	for _, group := range groups {
		for _, kind := range api.Kinds() {
			m.kinds = append(m.kinds, schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: string(kind)})
		}
	}

	return m
}

// manages reports whether the provider has kinds of a group.
func (m maker) manages(group string) bool {
	return slices.ContainsFunc(m.kinds, func(gvk schema.GroupVersionKind) bool { return gvk.Group == group })
}

// managed returns the MRs of a scene.
func (s *identity) managed(ctx context.Context, t *testing.T, c *stack.Cluster, scene string) []unstructured.Unstructured {
	t.Helper()
	var mrs []unstructured.Unstructured
	for _, gvk := range s.kinds {
		all, err := list(ctx, c, gvk, scene, "")
		must(t, err)
		for _, u := range all {
			if strings.HasPrefix(u.GetName(), scene+"-") {
				mrs = append(mrs, u)
			}
		}
	}

	return mrs
}

// awaitReads waits until each MR of a scene was reconciled since an entry of the cloud's journal.
// upjet's provider identifies its MRs in the journal by UID.
func (s *identity) awaitReads(t *testing.T, n *shape, since int64) {
	t.Helper()
	must(t, n.AwaitReads(t.Context(), s.target, s.cloud, since))
	if s.program == stack.UpjetProvider {
		s.eventually(t, "upjet to read each MR once more", func(ctx context.Context) error { return s.readSince(ctx, n, since) })
	}
}

// isUnfound reports whether an MR of upjet has an empty status.atProvider.
func isUnfound(mr *unstructured.Unstructured) bool {
	_, upjets, _ := unstructured.NestedMap(mr.Object, "spec", "initProvider")
	found, _, _ := unstructured.NestedMap(mr.Object, "status", "atProvider")

	return upjets && len(found) == 0
}

// stalled returns the callers whose creates the cloud does not answer.
func (s *identity) stalled() []string {
	if s.program == stack.UpjetProvider {
		return []string{
			s.called("Gateway", "flight-00"), s.called("Network", "flight-00"), s.called("Topic", "flight-00"), s.called("Gateway", "pending-00"),
			s.called("Gateway", "killed-00"), s.called("Network", "killed-00"),
		}
	}
	if s.version == stack.V1 {
		return []string{", Bucket, flight-00", ", Database, flight-00", ", Bucket, pending-00", ", Network, killed-00", ", Database, killed-00"}
	}

	return []string{", Network, flight/", ", Database, flight/", ", Network, pending/", ", Network, killed/", ", Database, killed/"}
}

// awaitStalled waits until the cloud has done the creates of a scene that it does not answer.
func (s *identity) awaitStalled(t *testing.T, scene string) {
	t.Helper()
	must(t, s.source.Wait(t.Context(), patience, "the creates of "+scene, func(ctx context.Context) error {
		for _, by := range s.stalled() {
			if strings.Contains(by, ", "+scene) && len(s.creates(ctx, t, 0, by)) == 0 {
				return errors.New("there is none by" + by)
			}
		}

		return nil
	}))
}

// awaitStarted waits until the provider has noted that the asynchronous create of a scene has
// succeeded. Until then, it refuses that MR after a kill, as it does one of the other kind.
func (s *identity) awaitStarted(t *testing.T, scene string) {
	t.Helper()
	must(t, s.source.Wait(t.Context(), patience, "the asynchronous create of "+scene+" to be noted", func(ctx context.Context) error {
		for _, u := range s.managed(ctx, t, s.source, scene) {
			if u.GetKind() == s.silent && u.GetAnnotations()[createSucceeded] != "" {
				return nil
			}
		}

		return fmt.Errorf("no %s has the annotation %s", s.silent, createSucceeded)
	}))
}

// creates returns the creates in the cloud's journal after an entry, by callers with the text in
// their names.
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

// seq returns the number of the last entry of the cloud's journal.
func (s *suite) seq(t *testing.T) int64 {
	t.Helper()
	entries, err := s.cloud.Journal(t.Context(), 0)
	must(t, err)

	return entries[len(entries)-1].Seq
}

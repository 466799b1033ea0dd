package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/drill"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// sampleKills returns a few of the kills of TestMatrixKills. Each point and each component is in one
// of them, for one of the versions.
func sampleKills(version stack.Version) []kill {
	if version == stack.V1 {
		return []kill{
			{victim: stack.Velero, point: killPointOf("just created"), byRelease: true},
			{victim: stack.Velero, point: killPointOf("10 % restored")},
			{victim: stack.Etcd, point: killPointOf("50 % restored"), byRelease: true},
			{victim: pluginProcess, point: killPointOf("verified")},
			{victim: stack.CloudProvider, point: killPointOf("unpaused")},
		}
	}

	return []kill{
		{victim: stack.Velero, point: killPointOf("just created")},
		{victim: pluginProcess, point: killPointOf("90 % restored")},
		{victim: stack.Velero, point: killPointOf("before the first poll"), byRelease: true},
		{victim: stack.APIServer, point: killPointOf("unpaused")},
		{victim: stack.Crossplane, point: killPointOf("half released")},
	}
}

func killPointOf(name string) killPoint {
	points := killPoints()

	return points[slices.IndexFunc(points, func(p killPoint) bool { return p.name == name })]
}

// fillSampleKills fills a namespace for each kill of the sample.
func (s *suite) fillSampleKills(t *testing.T) []*tenant {
	t.Helper()
	var tenants []*tenant
	for _, k := range sampleKills(s.version) {
		tenants = append(tenants, s.few(t, s.source, drill.Platform{Namespace: k.namespace()}, 5))
	}

	return tenants
}

func (k kill) namespace() string {
	return "killed-" + strings.NewReplacer(" ", "-", "%", "percent").Replace(k.point.name)
}

func (s *suite) testSampleKills(t *testing.T, tenants []*tenant) {
	for i, k := range sampleKills(s.version) {
		t.Run(k.name(), func(t *testing.T) { s.testKill(t, tenants[i], k) })
	}
}

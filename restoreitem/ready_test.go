package restoreitem

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A conversion is a cluster whose webhook answers from a given time on.
type conversion struct {
	versions    xp.Versions
	versionsErr error
	config      map[string]string
	configErr   error
	now, from   time.Time
	asked       int
}

var errDown = errors.New("conversion webhook for example.org/v1, Kind=Bucket failed: connection refused")

func (c *conversion) Settings(context.Context, string) (map[string]string, error) {
	return c.config, c.configErr
}

func (c *conversion) Versions(context.Context, schema.GroupKind) (xp.Versions, error) {
	return c.versions, c.versionsErr
}

func (c *conversion) Convert(context.Context, *unstructured.Unstructured, string) error {
	c.asked++
	if c.now.Before(c.from) {
		return errDown
	}

	return nil
}

func (c *conversion) readiness() *Readiness {
	r := NewReadiness(c)
	r.now = func() time.Time { return c.now }
	r.sleep = func(d time.Duration) { c.now = c.now.Add(d) }

	return r
}

func TestReadinessCheck(t *testing.T) {
	mr := xptest.MR("b")
	gvk := mr.GroupVersionKind()
	versions := func(stored, webhook string, served ...string) xp.Versions {
		return xp.Versions{Kind: gvk.GroupKind(), Stored: stored, Served: served, Webhook: webhook, Provider: "Provider cloud"}
	}
	both := versions("v9", "Service crossplane-system/cloud", gvk.Version, "v9")
	kind, began := gvk.GroupKind().String(), time.Unix(1_700_000_000, 0)
	never := func(within string) string {
		return "cannot restore " + xp.String(mr) + ": " + kind + " is stored in v9, and its conversion from " + gvk.Version + " (Service crossplane-system/cloud) " +
			"does not answer: " + errDown.Error() + ". Start Provider cloud (kubectl get providers.pkg.crossplane.io), then restore " +
			"again. A restore waits for " + within + ", the setting kind-timeout [ConversionWebhookDown]"
	}
	type want struct {
		Err    string
		Asked  int
		Waited time.Duration
	}
	cases := map[string]struct {
		reason  string
		cluster conversion
		want    want
	}{
		"Answers":     {reason: "The webhook answers, so the restore does not wait.", cluster: conversion{versions: both}, want: want{Asked: 1}},
		"Stored":      {reason: "All objects are stored in this version, so the webhook is not needed.", cluster: conversion{versions: versions(gvk.Version, "Service a/b", gvk.Version, "v9")}},
		"NoWebhook":   {reason: "The API server converts without a webhook.", cluster: conversion{versions: versions("v9", "", gvk.Version, "v9")}},
		"NoCRD":       {reason: "An aggregated API server serves the kind.", cluster: conversion{}},
		"Unread":      {reason: "The request that creates the object reports the error.", cluster: conversion{versions: both, versionsErr: errAPI}},
		"Late":        {reason: "The webhook starts to answer while the restore waits.", cluster: conversion{versions: both, from: began.Add(20 * time.Second)}, want: want{Asked: 21, Waited: 20 * time.Second}},
		"Never":       {reason: "The wait must end, so that the restore ends.", cluster: conversion{versions: both, from: began.Add(time.Hour)}, want: want{Err: never("1m0s"), Asked: 61, Waited: time.Minute}},
		"OddSettings": {reason: "Another action reports unreadable settings, so the default timeout applies.", cluster: conversion{versions: both, from: began.Add(time.Hour), configErr: errAPI}, want: want{Err: never("1m0s"), Asked: 61, Waited: time.Minute}},
		"ByConfig":    {reason: "A user can set the timeout.", cluster: conversion{versions: both, from: began.Add(time.Hour), config: map[string]string{"kind-timeout": "3s"}}, want: want{Err: never("3s"), Asked: 4, Waited: 3 * time.Second}},
		"NotServed": {
			reason: "The error names the unserved version, since Velero's would not.", cluster: conversion{versions: versions("v9", "", "v9", "v10")},
			want: want{Err: "cannot restore " + xp.String(mr) + ": the backup has it in " + gvk.Version + ", and this cluster serves " + kind + " only in v9 and v10. Install a " +
				"version of Provider cloud that serves both, restore again, then upgrade [BackupVersionNotServed]"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := tc.cluster
			c.now = began
			log, _ := logtest.NewNullLogger()
			o := NewOrder(Crossplane(), kindsFn(served), log, Shared{Ready: c.readiness()})
			_, err := o.Execute(inputFor(mr, &velerov1.Restore{}))
			got := want{Asked: c.asked, Waited: c.now.Sub(began)}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadinessWaitsOnce(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	gvk := xptest.MR("b").GroupVersionKind()
	c := &conversion{
		now: began, from: began.Add(100 * time.Second),
		versions: xp.Versions{Kind: gvk.GroupKind(), Stored: "v9", Served: []string{gvk.Version, "v9"}, Webhook: "Service a/b"},
	}
	r := c.readiness()
	log, _ := logtest.NewNullLogger()
	check := func() bool { return r.check(newItem(inputFor(xptest.MR("b"), &velerov1.Restore{}), log)) == nil }
	got := []any{check(), c.now.Sub(began), check(), c.asked}
	c.now = c.now.Add(webhookTTL)
	got = append(got, check(), c.asked) // Called again without waiting.
	c.now = began.Add(100 * time.Second)
	got = append(got, check(), check(), c.asked)
	if diff := cmp.Diff([]any{false, time.Minute, false, 61, false, 62, true, true, 63}, got); diff != "" {
		t.Errorf("the plugin must wait for a webhook once, not for each item: -want, +got:\n%s", diff)
	}
}

func TestReadinessWithin(t *testing.T) {
	cases := map[string]struct {
		reason string
		ready  *Readiness
		want   time.Duration
	}{
		"NoServer": {reason: "A dry run waits for no webhook.", want: setting.DefaultKindTimeout},
		"Default":  {reason: "Without a setting the default timeout applies.", ready: (&conversion{}).readiness(), want: time.Minute},
		"Set":      {reason: "The setting replaces the default timeout.", ready: (&conversion{config: map[string]string{"kind-timeout": "10m"}}).readiness(), want: 10 * time.Minute},
		"Odd":      {reason: "An unreadable setting leaves the default timeout.", ready: (&conversion{config: map[string]string{"kind-timeout": "10"}}).readiness(), want: time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.ready.timeout(&velerov1.Restore{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

package setting

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParse(t *testing.T) {
	const all = "adoption-timeout, clone, external-name-from-id, hold, kind-timeout, observe-first, provider-credentials, release, restore-status and without-external-name"
	type want struct {
		Settings Settings
		Err      string
	}
	cases := map[string]struct {
		reason              string
		config, annotations map[string]string
		want                want
	}{
		"Defaults": {reason: "By default a copy must be held, and credentials must stay out of the backup.", want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}}},
		"Config": {
			reason: "The ConfigMap applies to the whole cluster.", config: map[string]string{"clone": "observe", "provider-credentials": "include"},
			want: want{Settings: Settings{Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute, Credentials: true}},
		},
		"Annotations": {
			reason:      "Annotations apply to one Backup or Restore; annotations of other programs must not matter.",
			annotations: map[string]string{"velero.crossplane.io/clone": "new", "velero.io/clone": "x", "clone": "x"},
			want:        want{Settings: Settings{Clone: New, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"Both": {
			reason:      "An annotation overrides the ConfigMap.",
			config:      map[string]string{"clone": "new", "provider-credentials": "include"},
			annotations: map[string]string{"velero.crossplane.io/provider-credentials": "exclude", "velero.crossplane.io/clone": "hold"},
			want:        want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"Kept": {
			reason: "Without an annotation the ConfigMap's value stays.", config: map[string]string{"clone": "new", "provider-credentials": "include"},
			annotations: map[string]string{"velero.crossplane.io/clone": "observe"},
			want:        want{Settings: Settings{Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute, Credentials: true}},
		},
		"ObserveFirst": {
			reason: "A restore can observe the external resources before it changes them.", annotations: map[string]string{"velero.crossplane.io/observe-first": "true"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, ObserveFirst: ObserveAll}},
		},
		"NotObserveFirst": {
			reason: "An annotation can turn observe-first off for one restore.", config: map[string]string{"observe-first": "true"},
			annotations: map[string]string{"velero.crossplane.io/observe-first": "false"},
			want:        want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, ObserveFirst: ObserveNone}},
		},
		"FromID": {
			reason: "A kind needs its group; blanks must not matter.", config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io, Zone.example.org"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, FromID: []schema.GroupKind{{Group: "ec2.aws.upbound.io", Kind: "VPC"}, {Group: "example.org", Kind: "Zone"}}}},
		},
		"Unnamed": {
			reason: "The list of kinds without external-names has the same form.", annotations: map[string]string{"velero.crossplane.io/without-external-name": "Rule.ec2.example.org"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, Unnamed: []schema.GroupKind{{Group: "ec2.example.org", Kind: "Rule"}}}},
		},
		"NoneFromID": {
			reason: "An empty annotation must clear the ConfigMap's list.", config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io"},
			annotations: map[string]string{"velero.crossplane.io/external-name-from-id": " "}, want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"NotFromID": {
			reason: "A user can exclude a kind that the plugin knows.", config: map[string]string{"external-name-from-id": "-VPC.ec2.aws.upbound.io, Zone.example.org"},
			want: want{Settings: Settings{
				Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, FromID: []schema.GroupKind{{Group: "example.org", Kind: "Zone"}},
				NotFromID: []schema.GroupKind{{Group: "ec2.aws.upbound.io", Kind: "VPC"}},
			}},
		},
		"NoneKnown": {
			reason: "A user can exclude all known kinds and add others.", config: map[string]string{"external-name-from-id": "none,Zone.example.org"},
			want: want{Settings: Settings{
				Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, FromID: []schema.GroupKind{{Group: "example.org", Kind: "Zone"}}, NoneKnown: true,
			}},
		},
		"KnownAgain": {
			reason: "An annotation must replace the whole list of the ConfigMap.", config: map[string]string{"external-name-from-id": "none,-Zone.example.org"},
			annotations: map[string]string{"velero.crossplane.io/external-name-from-id": ""}, want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"BothFromID": {
			reason: "A list that includes and excludes one kind is a mistake.", config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io,-VPC.ec2.aws.upbound.io"},
			want: want{Err: "cannot read the ConfigMap of settings: external-name-from-id can't have both VPC.ec2.aws.upbound.io and -VPC.ec2.aws.upbound.io"},
		},
		"HoldAll": {
			reason: "An annotation can put one restore into quarantine.", annotations: map[string]string{"velero.crossplane.io/hold": "all"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldAll, KindTimeout: time.Minute}},
		},
		"HoldNone": {
			reason: "A user can turn off the holds on unsafe objects.", config: map[string]string{"hold": "none"}, want: want{Settings: Settings{Clone: Hold, Hold: HoldNone, KindTimeout: time.Minute}},
		},
		"HoldUnsafe": {
			reason: "An annotation can restore the default in a cluster for drills.", config: map[string]string{"hold": "all"},
			annotations: map[string]string{"velero.crossplane.io/hold": "unsafe"}, want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"Timeout": {
			reason: "A user can shorten the wait for adoption.", config: map[string]string{"adoption-timeout": "1h30m"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, AdoptionTimeout: 90 * time.Minute}},
		},
		"NoTimeout": {
			reason: "An empty annotation must remove the timeout of the ConfigMap.", config: map[string]string{"adoption-timeout": "30m"},
			annotations: map[string]string{"velero.crossplane.io/adoption-timeout": ""}, want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"KindTimeout": {
			reason: "A provider can take long to start.", config: map[string]string{"kind-timeout": "10m"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: 10 * time.Minute}},
		},
		"NoKindTimeout": {
			reason: "A duration needs a unit.", config: map[string]string{"kind-timeout": "10"},
			want: want{Err: "cannot read the ConfigMap of settings: kind-timeout is a duration of more than 0, such as " +
				`30s or 10m, not "10"`},
		},
		"ByHand": {
			reason: "A user can require a manual release of one restore.", annotations: map[string]string{"velero.crossplane.io/release": "by-hand"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, ByHand: true}},
		},
		"Automatic": {
			reason: "An annotation can turn the manual release off.", config: map[string]string{"release": "by-hand"},
			annotations: map[string]string{"velero.crossplane.io/release": "automatic"}, want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"WithoutStatus": {
			reason: "A cluster without functions that read a status can skip it.", config: map[string]string{"restore-status": "none"},
			want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute, WithoutStatus: true}},
		},
		"WithStatus": {
			reason: "An annotation can restore the status for one restore.", config: map[string]string{"restore-status": "none"},
			annotations: map[string]string{"velero.crossplane.io/restore-status": "needed"}, want: want{Settings: Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}},
		},
		"BadTimeout": {
			reason: "A duration needs a unit.", config: map[string]string{"adoption-timeout": "30"},
			want: want{Err: `cannot read the ConfigMap of settings: adoption-timeout is a duration of more than 0, such as 30m or 1h30m, or empty for none, not "30"`},
		},
		"PastTimeout": {
			reason: "A timeout of zero would fail at once.", annotations: map[string]string{"velero.crossplane.io/adoption-timeout": "0s"},
			want: want{Err: `cannot read the annotation velero.crossplane.io/adoption-timeout: adoption-timeout is a duration of more than 0, such as 30m or 1h30m, ` +
				`or empty for none, not "0s"`},
		},
		"BadRelease": {
			reason: "An unknown value must not release anything.", annotations: map[string]string{"velero.crossplane.io/release": "manual"},
			want: want{Err: `cannot read the annotation velero.crossplane.io/release: release is automatic or by-hand, not "manual"`},
		},
		"BadStatus": {
			reason: "The setting takes no boolean; Velero has lists of resources for that.", config: map[string]string{"restore-status": "false"},
			want: want{Err: `cannot read the ConfigMap of settings: restore-status is needed or none, not "false"`},
		},
		"BadHold": {
			reason: "The content of a mark is no value.", annotations: map[string]string{"velero.crossplane.io/hold": "{}"},
			want: want{Err: `cannot read the annotation velero.crossplane.io/hold: hold is unsafe, all or none, not "{}"`},
		},
		"BadObserveFirst": {
			reason: "An unknown value must not stand for the default.", config: map[string]string{"observe-first": "yes"},
			want: want{Err: `cannot read the ConfigMap of settings: observe-first is upjet, true or false, not "yes"`},
		},
		"FromResource": {
			reason: "A resource name would never match a kind.", config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io,vpcs.ec2.aws.upbound.io"},
			want: want{Err: `cannot read the ConfigMap of settings: external-name-from-id is a list of kinds with their groups, such as ` +
				`VPC.ec2.aws.upbound.io,-Zone.route53.aws.upbound.io, and none to use only these; "vpcs.ec2.aws.upbound.io" is not a kind`},
		},
		"UnnamedResource": {
			reason: "A resource name would never match a kind here either.", config: map[string]string{"without-external-name": "rules.ec2.example.org"},
			want: want{Err: `cannot read the ConfigMap of settings: without-external-name is a list of kinds with their groups, such as ` +
				`Attachment.iam.example.org,Rule.ec2.example.org; "rules.ec2.example.org" is not a kind`},
		},
		"FromKindWithoutGroup": {
			reason: "Kinds of several groups can have the same name.", annotations: map[string]string{"velero.crossplane.io/external-name-from-id": "VPC"},
			want: want{Err: `cannot read the annotation velero.crossplane.io/external-name-from-id: external-name-from-id is a list of kinds with their groups, such as ` +
				`VPC.ec2.aws.upbound.io,-Zone.route53.aws.upbound.io, and none to use only these; "VPC" is not a kind`},
		},
		"FromNothing": {
			reason: "A surplus comma is a mistake.", config: map[string]string{"external-name-from-id": "VPC.ec2.aws.upbound.io,"},
			want: want{Err: `cannot read the ConfigMap of settings: external-name-from-id is a list of kinds with their groups, such as ` +
				`VPC.ec2.aws.upbound.io,-Zone.route53.aws.upbound.io, and none to use only these; "" is not a kind`},
		},
		"BadClone": {
			reason: "An unknown value must not stand for the default.", config: map[string]string{"clone": "Hold"},
			want: want{Err: `cannot read the ConfigMap of settings: clone is hold, observe or new, not "Hold"`},
		},
		"EmptyClone": {
			reason: "An empty value must not stand for the default.", annotations: map[string]string{"velero.crossplane.io/clone": ""},
			want: want{Err: `cannot read the annotation velero.crossplane.io/clone: clone is hold, observe or new, not ""`},
		},
		"BadCredentials": {
			reason: "An unknown value must not expose or drop credentials.", annotations: map[string]string{"velero.crossplane.io/provider-credentials": "true"},
			want: want{Err: `cannot read the annotation velero.crossplane.io/provider-credentials: provider-credentials is exclude or include, not "true"`},
		},
		"UnknownInConfig": {
			reason: "An unknown setting in the ConfigMap must be an error.", config: map[string]string{"clones": "hold", "zzz": ""},
			want: want{Err: `cannot read the ConfigMap of settings: there is no setting "clones". There are ` + all},
		},
		"UnknownAnnotation": {
			reason: "An unknown annotation with the prefix must be an error.", annotations: map[string]string{"velero.crossplane.io/": "hold"},
			want: want{Err: `cannot read the annotation velero.crossplane.io/: there is no setting "". There are ` + all},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			var err error
			if got.Settings, err = Parse(tc.config, tc.annotations); err != nil {
				got = want{Err: err.Error()}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// Any input is either understood or rejected, and equally so in a ConfigMap and in annotations.
func FuzzParse(f *testing.F) {
	for _, d := range Definitions() {
		for _, value := range append(d.Values, d.Default, "yes") {
			f.Add(d.Name, value)
		}
	}
	f.Add(NameFromID, "VPC.ec2.aws.upbound.io, Zone.route53.aws.upbound.io")
	f.Add(NameFromID, "vpcs.ec2.aws.upbound.io")
	f.Add(NameFromID, "none, -VPC.ec2.aws.upbound.io,Zone.example.org")
	f.Add(NameTimeout, "1h30m")
	f.Add(NameTimeout, "-1m")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, name, value string) {
		config, configErr := Parse(map[string]string{name: value}, nil)
		annotated, annotatedErr := Parse(nil, map[string]string{Prefix + name: value})
		if (configErr == nil) != (annotatedErr == nil) || configErr == nil && !cmp.Equal(config, annotated) {
			t.Errorf("the ConfigMap gives %v, %v, and the annotation gives %v, %v", config, configErr, annotated, annotatedErr)
		}
		if configErr != nil {
			if !strings.HasPrefix(configErr.Error(), "cannot read ") {
				t.Errorf("an error must begin with its place; got %v", configErr)
			}

			return
		}
		n := slices.IndexFunc(Definitions(), func(d Definition) bool { return d.Name == name })
		if n < 0 {
			t.Fatalf("%q is not a setting, but Parse accepts it", name)
		}
		if values := Definitions()[n].Values; values != nil && !slices.Contains(values, value) {
			t.Errorf("%q is not a value of %s, but Parse accepts it", value, name)
		}
		if config.AdoptionTimeout < 0 || (config.AdoptionTimeout == 0) != (name != NameTimeout || value == "") {
			t.Errorf("the timeout %v does not match %q", config.AdoptionTimeout, value)
		}
		for _, gk := range slices.Concat(config.FromID, config.NotFromID) {
			if gk.Kind == "" || gk.Group == "" || !strings.Contains(value, gk.String()) {
				t.Errorf("the kind %v does not match %q", gk, value)
			}
		}
		if config.Clone != Hold && config.Clone != Observe && config.Clone != New {
			t.Errorf("Parse returned the unknown choice %q", config.Clone)
		}
	})
}

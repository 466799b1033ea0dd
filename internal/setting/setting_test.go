package setting

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

func TestParse(t *testing.T) {
	const inConfig, inAnnotation = "cannot read the ConfigMap of settings: ", "cannot read the annotation velero.crossplane.io/"
	const ids = "external-name-from-id is a list of kinds with their groups, such as VPC.ec2.aws.upbound.io,-Zone.route53.aws.upbound.io, and none to use only these; "
	const all = "adoption-timeout, clone, external-name-from-id, hold, kind-timeout, observe-first, provider-credentials, release, restore-status and without-external-name"
	type values map[string]string
	// of are the settings of a ConfigMap, and of annotations without their prefix.
	type of struct{ config, annotations values }
	type want struct {
		Settings Settings
		Err      string
	}
	// but returns the defaults with a change.
	but := func(change func(s *Settings)) want {
		s := Settings{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}
		change(&s)

		return want{Settings: s}
	}
	defaults := but(func(*Settings) {})
	vpc, zone := schema.GroupKind{Group: "ec2.aws.upbound.io", Kind: "VPC"}, schema.GroupKind{Group: "example.org", Kind: "Zone"}
	xptest.Run(t, map[string]xptest.Row[of, want]{
		"Defaults": {Reason: "By default a copy must be held, and credentials must stay out of the backup.", Want: defaults},
		"Config": {
			Reason: "The ConfigMap applies to the whole cluster.", In: of{config: values{"clone": "observe", "provider-credentials": "include"}},
			Want: but(func(s *Settings) { s.Clone, s.Credentials = Observe, true }),
		},
		"Annotations": {Reason: "Annotations apply to one Backup or Restore.", In: of{annotations: values{"clone": "new"}}, Want: but(func(s *Settings) { s.Clone = New })},
		"Both": {
			Reason: "An annotation overrides the ConfigMap.", Want: defaults,
			In: of{config: values{"clone": "new", "provider-credentials": "include"}, annotations: values{"provider-credentials": "exclude", "clone": "hold"}},
		},
		"Kept": {
			Reason: "Without an annotation the ConfigMap's value stays.", In: of{config: values{"clone": "new", "provider-credentials": "include"}, annotations: values{"clone": "observe"}},
			Want: but(func(s *Settings) { s.Clone, s.Credentials = Observe, true }),
		},
		"NotObserveFirst": {
			Reason: "An annotation can turn observe-first off for one restore.", In: of{config: values{"observe-first": "true"}, annotations: values{"observe-first": "false"}},
			Want: but(func(s *Settings) { s.ObserveFirst = ObserveNone }),
		},
		"FromID": {
			Reason: "A kind needs its group; blanks must not matter.", In: of{config: values{"external-name-from-id": "VPC.ec2.aws.upbound.io, Zone.example.org"}},
			Want: but(func(s *Settings) { s.FromID = []schema.GroupKind{vpc, zone} }),
		},
		"Unnamed": {
			Reason: "The list of kinds without external-names has the same form.", In: of{annotations: values{"without-external-name": "Zone.example.org"}},
			Want: but(func(s *Settings) { s.Unnamed = []schema.GroupKind{zone} }),
		},
		"NoneFromID": {
			Reason: "An empty annotation must clear the ConfigMap's list.", Want: defaults,
			In: of{config: values{"external-name-from-id": "none,-Zone.example.org"}, annotations: values{"external-name-from-id": " "}},
		},
		"NotFromID": {
			Reason: "A user can exclude a kind that the plugin knows.", In: of{config: values{"external-name-from-id": "-VPC.ec2.aws.upbound.io, Zone.example.org"}},
			Want: but(func(s *Settings) { s.FromID, s.NotFromID = []schema.GroupKind{zone}, []schema.GroupKind{vpc} }),
		},
		"NoneKnown": {
			Reason: "A user can exclude all known kinds and add others.", In: of{config: values{"external-name-from-id": "none,Zone.example.org"}},
			Want: but(func(s *Settings) { s.FromID, s.NoneKnown = []schema.GroupKind{zone}, true }),
		},
		"Timeout": {
			Reason: "A user can shorten the wait for adoption.", In: of{config: values{"adoption-timeout": "1h30m"}},
			Want: but(func(s *Settings) { s.AdoptionTimeout = 90 * time.Minute }),
		},
		"NoTimeout": {
			Reason: "An empty annotation must remove the timeout of the ConfigMap.", In: of{config: values{"adoption-timeout": "30m"}, annotations: values{"adoption-timeout": ""}},
			Want: defaults,
		},
		"KindTimeout": {
			Reason: "A provider can take long to start.", In: of{config: values{"kind-timeout": "10m"}}, Want: but(func(s *Settings) { s.KindTimeout = 10 * time.Minute }),
		},
		"ByHand": {Reason: "A user can require a manual release of one restore.", In: of{annotations: values{"release": "by-hand"}}, Want: but(func(s *Settings) { s.ByHand = true })},
		"WithoutStatus": {
			Reason: "A cluster without functions that read a status can skip it.", In: of{config: values{"restore-status": "none"}},
			Want: but(func(s *Settings) { s.WithoutStatus = true }),
		},
		"HoldAll":  {Reason: "An annotation can put one restore into quarantine.", In: of{annotations: values{"hold": "all"}}, Want: but(func(s *Settings) { s.Hold = HoldAll })},
		"HoldNone": {Reason: "A user can turn off the holds on unsafe objects.", In: of{config: values{"hold": "none"}}, Want: but(func(s *Settings) { s.Hold = HoldNone })},
		"BothFromID": {
			Reason: "A list that includes and excludes one kind is a mistake.", In: of{config: values{"external-name-from-id": "Zone.example.org,-Zone.example.org"}},
			Want: want{Err: inConfig + "external-name-from-id can't have both Zone.example.org and -Zone.example.org"},
		},
		"NoUnit": {
			Reason: "A duration needs a unit.", In: of{config: values{"kind-timeout": "10"}},
			Want: want{Err: inConfig + `kind-timeout is a duration of more than 0, such as 30s or 10m, not "10"`},
		},
		"PastTimeout": {
			Reason: "A timeout of zero would fail at once.", In: of{annotations: values{"adoption-timeout": "0s"}},
			Want: want{Err: inAnnotation + `adoption-timeout: adoption-timeout is a duration of more than 0, such as 30m or 1h30m, or empty for none, not "0s"`},
		},
		"EmptyClone": {
			Reason: "An empty value must not stand for the default.", In: of{annotations: values{"clone": ""}},
			Want: want{Err: inAnnotation + `clone: clone is hold, observe or new, not ""`},
		},
		"Resource": {
			Reason: "A resource name would never match a kind.", In: of{config: values{"external-name-from-id": "VPC.ec2.aws.upbound.io,vpcs.ec2.aws.upbound.io"}},
			Want: want{Err: inConfig + ids + `"vpcs.ec2.aws.upbound.io" is not a kind`},
		},
		"WithoutGroup": {
			Reason: "Kinds of several groups can have the same name.", In: of{annotations: values{"external-name-from-id": "VPC"}},
			Want: want{Err: inAnnotation + "external-name-from-id: " + ids + `"VPC" is not a kind`},
		},
		"Comma": {
			Reason: "A surplus comma is a mistake.", In: of{config: values{"external-name-from-id": "VPC.ec2.aws.upbound.io,"}}, Want: want{Err: inConfig + ids + `"" is not a kind`},
		},
		"UnnamedResource": {
			Reason: "A resource name would never match a kind here either.", In: of{config: values{"without-external-name": "rules.ec2.example.org"}},
			Want: want{Err: inConfig + "without-external-name is a list of kinds with their groups, such as Attachment.iam.example.org,Rule.ec2.example.org; " +
				`"rules.ec2.example.org" is not a kind`},
		},
		"UnknownInConfig": {
			Reason: "An unknown setting in the ConfigMap must be an error.", In: of{config: values{"clones": "hold", "zzz": ""}},
			Want: want{Err: inConfig + `there is no setting "clones". There are ` + all},
		},
		"UnknownAnnotation": {
			Reason: "An unknown annotation with the prefix must be an error.", In: of{annotations: values{"": "hold"}},
			Want: want{Err: inAnnotation + `: there is no setting "". There are ` + all},
		},
	}, func(in of) want {
		annotations := values{"velero.io/clone": "x", "clone": "x"} // These are of other programs.
		for name, value := range in.annotations {
			annotations[Prefix+name] = value
		}
		s, err := Parse(in.config, annotations)
		if err != nil {
			return want{Err: err.Error()}
		}

		return want{Settings: s}
	})
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

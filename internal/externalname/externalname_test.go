package externalname

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRuleName(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   Rule
		id     string
		want   string
	}{
		"Whole":         {reason: "The ID is the external-name.", rule: "*", id: "vpc-1/a:b", want: "vpc-1/a:b"},
		"Nothing":       {reason: "Without an ID there is no external-name.", rule: "*"},
		"Last":          {reason: "The external-name is the end of the ID.", rule: "/subnets/*", id: "/subscriptions/s/virtualNetworks/n/subnets/default", want: "default"},
		"OtherFormat":   {reason: "An ID of another format gives no external-name.", rule: "/subnets/*", id: "/subscriptions/s/virtualNetworks/n"},
		"OtherCase":     {reason: "A separator in another case makes the format uncertain.", rule: "/resourceGroups/*", id: "/subscriptions/s/resourcegroups/g"},
		"Below":         {reason: "The external-name must be the last part of the ID.", rule: "/subnets/*", id: "/subnets/default/more"},
		"Empty":         {reason: "An empty string is no external-name.", rule: "/subnets/*", id: "/subnets/"},
		"LastOfTwo":     {reason: "Only the last separator counts.", rule: ":*", id: "a:b:c", want: "c"},
		"NoSeparator":   {reason: "The ID has no separator, so it does not match the rule.", rule: ":*", id: "abc"},
		"First":         {reason: "The external-name is the start of the ID.", rule: "*:", id: "budget:product:more", want: "budget"},
		"FirstMissing":  {reason: "The ID has no separator, so it does not match the rule.", rule: "*:", id: "budget"},
		"FirstLonger":   {reason: "The whole separator counts, not only its first character.", rule: "*/regions/", id: "a/regions/b", want: "a"},
		"FirstAnother":  {reason: "The ID continues with another separator.", rule: "*/regions/", id: "a/zones/b"},
		"NoRule":        {reason: "Without a rule the external-name is unknown.", id: "vpc-1"},
		"NoName":        {reason: "A rule must mark where the name is.", rule: "/subnets/", id: "/subnets/"},
		"BothSides":     {reason: "A name in the middle has no certain end.", rule: "/a/*/b", id: "/a/x/b"},
		"Indistinct":    {reason: "A name can have dashes, so a dash is no separator.", rule: "prefix-*", id: "prefix-a-b"},
		"IndistinctEnd": {reason: "A dash is no separator at the end either.", rule: "*-suffix", id: "a-b-suffix"},
		"Twice":         {reason: "A rule has one name only.", rule: "**", id: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.rule.Name(tc.id)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The result is a part of the id, and the rest is that of the rule.
func FuzzRuleName(f *testing.F) {
	for _, rule := range []string{"*", "/subnets/*", "*:", ":*", "a*", "/a/*/b"} {
		f.Add(rule, "/subscriptions/s/subnets/default")
		f.Add(rule, "a:b:c")
	}
	f.Fuzz(func(t *testing.T, rule, id string) {
		name := Rule(rule).Name(id)
		if name == "" {
			return
		}
		before, after, _ := strings.Cut(rule, "*")
		if !Rule(rule).IsValid() || !strings.Contains(id, before+name+after) || before == "" && after == "" && name != id {
			t.Errorf("%q of %q does not match the rule %q", name, id, rule)
		}
		separator := ""
		if before != "" {
			separator = before[len(before)-1:]
		} else if after != "" {
			separator = after[:1]
		}
		if separator != "" && strings.Contains(name, separator) {
			t.Errorf("%q of %q by %q contains the separator", name, id, rule)
		}
	})
}

func TestRuleOf(t *testing.T) {
	const table = `# An introduction.
# from provider-upjet-a a.upbound.io v1.0.0 v2.1.0 (3 versions) and commit 1
# from provider-upjet-b b.upbound.io v1.2.0 v1.3.0 (2 versions) and commit 2
Bad.s.a.upbound.io prefix-*
Bucket.s.a.upbound.io *
Group.b.upbound.io /groups/*
Stray.example.org *
`
	type want struct {
		Rule   Rule
		Source string
		Known  bool
	}
	cases := map[string]struct {
		reason string
		gk     schema.GroupKind
		want   want
	}{
		"Known":      {reason: "The table has the kind.", gk: schema.GroupKind{Group: "s.a.upbound.io", Kind: "Bucket"}, want: want{Rule: "*", Source: "provider-upjet-a v1.0.0 to v2.1.0", Known: true}},
		"Namespaced": {reason: "The table covers the namespaced kind too.", gk: schema.GroupKind{Group: "s.a.m.upbound.io", Kind: "Bucket"}, want: want{Rule: "*", Source: "provider-upjet-a v1.0.0 to v2.1.0", Known: true}},
		"Root": {
			reason: "A group can be the domain itself.", gk: schema.GroupKind{Group: "b.upbound.io", Kind: "Group"},
			want: want{Rule: "/groups/*", Source: "provider-upjet-b v1.2.0 to v1.3.0", Known: true},
		},
		"RootNamespaced": {
			reason: "The domain itself can be the group of a namespaced kind.", gk: schema.GroupKind{Group: "b.m.upbound.io", Kind: "Group"},
			want: want{Rule: "/groups/*", Source: "provider-upjet-b v1.2.0 to v1.3.0", Known: true},
		},
		"Unknown":     {reason: "The table has no such kind.", gk: schema.GroupKind{Group: "s.a.upbound.io", Kind: "Buckets"}},
		"Part":        {reason: "The end of a kind's name is another kind.", gk: schema.GroupKind{Group: "s.a.upbound.io", Kind: "ucket"}},
		"OtherGroup":  {reason: "A kind of the same name in another group is another kind.", gk: schema.GroupKind{Group: "a.upbound.io", Kind: "Bucket"}},
		"NoSource":    {reason: "A row without a source has no known origin.", gk: schema.GroupKind{Group: "example.org", Kind: "Stray"}},
		"Comment":     {reason: "A comment in the table is no kind.", gk: schema.GroupKind{Kind: "# An introduction"}},
		"SeveralRows": {reason: "A kind from a backup can be any string, even several rows.", gk: schema.GroupKind{Group: "s.a.upbound.io *\nGroup.b.upbound.io", Kind: "Bucket"}},
		"Invalid":     {reason: "An invalid rule gives no external-name.", gk: schema.GroupKind{Group: "s.a.upbound.io", Kind: "Bad"}, want: want{Rule: "prefix-*", Source: "provider-upjet-a v1.0.0 to v2.1.0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rule, source, known := ruleOf(table, tc.gk)
			got := want{Rule: rule, Known: known}
			if source.Provider != "" {
				got.Source = source.String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The shipped table has a rule and a source for each kind, sorted, and the common kinds.
func TestTable(t *testing.T) {
	var rows []string
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		rows = append(rows, line)
		name, rule, _ := strings.Cut(line, " ")
		gk := schema.ParseGroupKind(name)
		if got, source, known := ruleOf(table, gk); !known || string(got) != rule || source.First == "" || source.Last == "" {
			t.Errorf("cannot use %q: got %q of %v", line, got, source)
		}
	}
	if !slices.IsSorted(rows) || len(slices.Compact(slices.Clone(rows))) != len(rows) || len(rows) < 1000 {
		t.Errorf("the %d rows must be sorted and unique", len(rows))
	}
	const subnet = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/n/subnets/default"
	for name, want := range map[string]struct{ id, external string }{
		"VPC.ec2.aws.upbound.io":             {"vpc-1", "vpc-1"},
		"VPC.ec2.aws.m.upbound.io":           {"vpc-1", "vpc-1"},
		"NodeGroup.eks.aws.upbound.io":       {"cluster:group", "group"},
		"Subnet.network.azure.upbound.io":    {subnet, "default"},
		"ResourceGroup.azure.m.upbound.io":   {"/subscriptions/1/resourceGroups/g", "g"},
		"Cluster.container.gcp.upbound.io":   {"projects/p/locations/l/clusters/c", "c"},
		"Policy.iam.aws.upbound.io":          {"arn:aws:iam::1:policy/p", ""},
		"Cluster.ecs.aws.upbound.io":         {"arn:aws:ecs:r:1:cluster/c", ""},
		"User.sql.gcp.upbound.io":            {"u//i", ""},
		"Bucket.cloud.example.org":           {"b", ""},
		"Subnet.network.azure.m.example.org": {subnet, ""},
	} {
		rule, _, _ := ruleOf(table, schema.ParseGroupKind(name))
		if got := rule.Name(want.id); got != want.external {
			t.Errorf("%s: got %q for the id %q, want %q", name, got, want.id, want.external)
		}
	}
}

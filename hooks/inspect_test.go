package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/diagnosis"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// A commandResult is what a command wrote, and its exit code.
type commandResult struct {
	out, err string
	code     int
}

// dryRunNothing is the dry run of a restore that brings nothing back.
func dryRunNothing(context.Context, *archive.Backup, *cluster.Cluster, *velerov1.Restore, func(report.ItemResult)) error {
	return nil
}

func command(t *testing.T, in []byte, args ...string) commandResult {
	t.Helper()
	var out, err bytes.Buffer
	code := Run(t.Context(), args, Program{In: bytes.NewReader(in), Out: &out, Err: &err, DryRunner: dryRunNothing})

	return commandResult{out: out.String(), err: err.String(), code: code}
}

func decodeReport(t *testing.T, r commandResult) report.Report {
	t.Helper()
	var decoded report.Report
	if err := json.Unmarshal([]byte(r.out), &decoded); err != nil {
		t.Fatalf("cannot decode %q (%s): %v", r.out, r.err, err)
	}

	return decoded
}

// shop is a claim's tree as Crossplane leaves it, with its XRD and revision.
func shop(o ...xptest.Option) []*unstructured.Unstructured {
	claim, xr := xptest.Claim("shop"), xptest.XR("shop-x1")
	mr := xptest.MR("shop-b", append([]xptest.Option{xptest.ControlledBy(xr)}, o...)...)
	xr = xptest.With(xr, xptest.ClaimedBy(claim), xptest.Refs(mr))
	claim = xptest.With(claim, xptest.OfXR(xr))
	xrd := xptest.XRD("xorders.example.org", xptest.Field("example.org", "spec", "group"), xptest.Field("XOrder", "spec", "names", "kind"),
		xptest.Field("OrderClaim", "spec", "claimNames", "kind"))

	return []*unstructured.Unstructured{claim, xr, mr, xrd, xptest.Revision(xptest.RevisionName, xr), xptest.Composition(xptest.CompositionName, xr)}
}

// bound gives a role to a ServiceAccount named after a package revision.
func bound(namespace string) *unstructured.Unstructured {
	return xptest.Object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "in-"+namespace, xptest.JSON(`{"roleRef":{"kind":"ClusterRole","name":"edit"},`+
		`"subjects":[{"kind":"ServiceAccount","namespace":"`+namespace+`","name":"helm-0123456789ab"}]}`))
}

// serviceAccount is that of a package revision, with an annotation that the manager wrote.
func serviceAccount(manager string) *unstructured.Unstructured {
	return xptest.Object("v1", "ServiceAccount", "crossplane-system", "by-"+manager, xptest.Annotated("eks.amazonaws.com/role-arn", "r"),
		xptest.ControlledBy(xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "by-"+manager)),
		xptest.JSON(`{"metadata":{"managedFields":[{"manager":"`+manager+`","fieldsV1":{"f:metadata":{"f:annotations":{"f:eks.amazonaws.com/role-arn":{}}}}}]}}`))
}

// deploymentOf is the Deployment of a Crossplane version.
func deploymentOf(version string) *unstructured.Unstructured {
	return xptest.Object("apps/v1", "Deployment", "crossplane-system", "crossplane", xptest.Labelled("app.kubernetes.io/part-of", "crossplane"),
		xptest.Field([]any{map[string]any{"image": "xpkg.crossplane.io/crossplane/crossplane:" + version}}, "spec", "template", "spec", "containers"))
}

func TestInspect(t *testing.T) {
	unnamed := xptest.Without("metadata", "annotations", xp.AnnotationExternalName)
	cases := map[string]struct {
		reason  string
		objects []*unstructured.Unstructured
		args    []string
		code    int
		want    []string
	}{
		"Fine": {reason: "A complete tree has no problem.", objects: shop()},
		"Hazard": {
			reason: "A provider can create the external resource of an MR without an external-name twice.", objects: shop(unnamed), code: ExitProblems, want: []string{"problem IdentityMissing Bucket shop-b"},
		},
		"Warning": {
			reason: "A warning must not fail the command.", objects: shop(xptest.PublishesTo("team-a", "secret")), want: []string{"warning SecretMissing Secret team-a/secret"},
		},
		"Strict": {
			reason: "With --strict a warning must fail the command.", objects: shop(xptest.PublishesTo("team-a", "secret")), args: []string{"--strict"}, code: ExitProblems,
			want: []string{"warning SecretMissing Secret team-a/secret"},
		},
		"ServiceAccount": {
			reason: "Crossplane writes its own fields of a ServiceAccount again, but not those of kubectl.", objects: append(shop(), serviceAccount("crossplane"), serviceAccount("kubectl-annotate")),
			want: []string{"warning SettingsMisplaced ServiceAccount crossplane-system/by-kubectl-annotate"},
		},
		"Rights": {
			reason: "Only the binding in Crossplane's own namespace has lost its package.", objects: append(shop(), deploymentOf("v2.4.2"), bound("crossplane-system"), bound("other"),
				xptest.Object("pkg.crossplane.io/v1", "ProviderRevision", "", "helm-0123456789ab", xptest.Field("Active", "spec", "desiredState"))),
			want: []string{"warning RightsMisplaced ClusterRoleBinding in-crossplane-system"},
		},
		"KnownDefectElsewhere": {
			reason: "A defect of Crossplane concerns every namespace.", objects: append(shop(), deploymentOf("v2.4.0")), args: []string{"-n", "team-a"},
			want: []string{"warning KnownDefect Deployment crossplane-system/crossplane"},
		},
		"MissingPlatform": {
			reason: "Crossplane can't reconcile an XR without its revision and XRD.", objects: shop()[:3], code: ExitProblems,
			want: []string{"problem RevisionMissing XOrder shop-x1", "problem DefinitionMissing XOrder shop-x1"},
		},
		"Namespace": {
			reason: "With -n the report must cover the whole trees of that namespace.", objects: append(shop(unnamed), xptest.MR("alone", unnamed)),
			args: []string{"-n", "team-a"}, code: ExitProblems, want: []string{"problem IdentityMissing Bucket shop-b"},
		},
		"OtherNamespace": {
			reason: "A namespace without trees may be a typing error, and other trees must not appear.", objects: shop(unnamed), args: []string{"-n", "team-b"},
			code: ExitProblems, want: []string{"problem NotFound Namespace team-b"},
		},
		"NothingOfCrossplane": {
			reason: "A backup without Crossplane's objects may be the wrong file.", objects: []*unstructured.Unstructured{xptest.Object("v1", "ConfigMap", "team-a", "c")}, code: ExitProblems,
			want: []string{"problem NotFound Backup stdin"},
		},
		"Platform": {
			reason: "A backup of the platform has no trees.", objects: []*unstructured.Unstructured{xptest.Object("pkg.crossplane.io/v1", "Provider", "", "p")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := command(t, xptest.Backup(tc.objects...), append([]string{"inspect", "-", "-o", "json"}, tc.args...)...)
			var said []string
			for _, p := range decodeReport(t, got).Problems {
				said = append(said, string(p.Severity)+" "+string(p.Code)+" "+p.Object.String())
			}
			if diff := cmp.Diff(tc.want, said); diff != "" || got.code != tc.code {
				t.Errorf("%s exit code %d: %s%s", tc.reason, got.code, diff, got.err)
			}
		})
	}
}

func TestInspectReports(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nightly.tar.gz")
	if err := os.WriteFile(file, xptest.Backup(shop()...), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := decodeReport(t, command(t, xptest.Backup(append(shop(), deploymentOf("v2.4.2"))...), "inspect", "-", "-o", "json")).Versions
	if diff := cmp.Diff(report.Version{Name: "Crossplane that ran", Version: "2.4.2"}, ran[2]); diff != "" {
		t.Errorf("the version of Crossplane: %s", diff)
	}
	r := decodeReport(t, command(t, nil, "inspect", file, "-o", "json"))
	if r.Kind != report.KindInspection || r.Source != "nightly.tar.gz" || r.Time.IsZero() || r.APIVersion != report.APIVersion {
		t.Errorf("The report must have its kind, source and time; got %+v", r)
	}
	if diff := cmp.Diff(report.Summary{Claims: 1, XRs: 1, Composed: 1, Managed: 1, Adopted: 1}, r.Summary); diff != "" {
		t.Errorf("the summary: %s", diff)
	}
	want := []report.Version{
		{Name: "backup format", Version: "1.1.0"},
		{Name: "Crossplane", Version: "v1 or v2"},
		{Name: "XRD xorders.example.org", Version: "XOrder and OrderClaim in , LegacyCluster scope"},
	}
	if diff := cmp.Diff(want, r.Versions); diff != "" {
		t.Errorf("the versions: %s", diff)
	}
	if n := r.Trees[0].Children[0].Children[0]; n.ExternalName != "shop-b" || r.Trees[0].Children[0].Revision != xptest.RevisionName {
		t.Errorf("the tree: %+v", r.Trees[0])
	}
}

func TestInspectFails(t *testing.T) {
	whole := xptest.Backup(shop()...)
	cases := map[string]struct {
		reason string
		in     []byte
		args   []string
		code   int
		want   string
	}{
		"NoFile":    {reason: "The error must name the missing file.", args: []string{"no-such-file"}, code: ExitFailed, want: "no-such-file"},
		"Truncated": {reason: "A truncated backup must not pass for a whole one.", in: whole[:len(whole)-9], args: []string{"-"}, code: ExitFailed, want: "cannot read the backup stdin: "},
		"NoFormat":  {reason: "The error must list the formats.", in: whole, args: []string{"-", "-o", "xml"}, code: ExitUsage, want: "json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := command(t, tc.in, append([]string{"inspect"}, tc.args...)...)
			if got.code != tc.code || got.out != "" || !strings.Contains(got.err, tc.want) {
				t.Errorf("%s got %+v", tc.reason, got)
			}
		})
	}
}

func TestFormatOf(t *testing.T) {
	for format, want := range map[string]int{"1": 0, "1.1.0": 0, "1.9": 0, "2.0.0": 1, "": 1, "new": 1} {
		b := readBackup(t, xptest.Backup())
		b.Format = format
		if got := formatOf(b, "-"); len(got) != want {
			t.Errorf("wrong problems for the backup format %q: %v", format, got)
		}
	}
}

func readBackup(t *testing.T, b []byte) *archive.Backup {
	t.Helper()
	backup, err := archive.Read(t.Context(), bytes.NewReader(b), archive.Default())
	if err != nil {
		t.Fatal(err)
	}

	return backup
}

func TestFlawsAreProblems(t *testing.T) {
	objects := shop()
	b := readBackup(t, xptest.Backup(objects...))
	for n, i := range b.Items {
		if i.Object().GetKind() == xptest.ManagedKind {
			b.Items = append(b.Items[:n:n], b.Items[n+1:]...)
			b.Flaws = append(b.Flaws, archive.Flaw{Path: "resources/a", Item: i.Item, Why: "it is broken"}, archive.Flaw{Path: "README", Why: "it is odd", Ignored: true})

			break
		}
	}
	var got []string
	for _, p := range diagnosis.Inspect(objectsOf(b)) {
		got = append(got, string(p.Severity)+" "+string(p.Code)+" "+p.Object.String())
	}
	want := []string{"problem Malformed Bucket shop-b", "warning Malformed File README"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("The report must name an unreadable file once, and not as a missing object: %s", diff)
	}
}

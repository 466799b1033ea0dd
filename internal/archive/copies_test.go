package archive

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

func TestDuplicateItems(t *testing.T) {
	other := strings.Replace(bucket, `"n":1`, `"n":2`, 1)
	cases := map[string]struct {
		reason      string
		first, last string
		// want is the number in the item; nil if there is none.
		want  any
		flaws int
	}{
		"Twice":       {reason: "Velero restores the last copy.", first: bucket, last: other, want: int64(2), flaws: 1},
		"FirstBroken": {reason: "A broken first copy must not matter.", first: "{", last: other, want: int64(2), flaws: 1},
		"LastBroken":  {reason: "Velero restores no earlier copy if the last one is broken.", first: bucket, last: "{", flaws: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Read(t.Context(), bytes.NewReader(backupOf(t, file{name: here, content: tc.first}, file{name: here, content: tc.last})), Default())
			if err != nil {
				t.Fatal(err)
			}
			var got any
			for _, i := range b.Items {
				got, _, _ = unstructured.NestedFieldNoCopy(i.Object().Object, "spec", "n")
			}
			if got != tc.want || len(b.Items) > 1 || len(b.Flaws) != tc.flaws {
				t.Errorf("%s A repeated item must come at most once, with a flaw; got %v, %+v", tc.reason, got, b)
			}
		})
	}
}

// Velero writes each item into a directory of its version, and the preferred version above it too.
func TestVersions(t *testing.T) {
	const dir = "resources/buckets.cloud.example.org/"
	cases := map[string]struct {
		reason string
		dirs   []string
		// want are the versions that are reported because the directory above lacks the item.
		want []string
		kept int
	}{
		"Above":          {reason: "Velero restores the copy above the version directories, so other versions are no flaw.", dirs: []string{"", "v1-preferredversion/", "v1alpha1/"}},
		"AboveLast":      {reason: "The order of the entries must not matter.", dirs: []string{"v1-preferredversion/", "v1alpha1/", ""}, kept: 1},
		"Preferred":      {reason: "A restore by version uses the preferred version, so the flaw must name it.", dirs: []string{"v1alpha1/", "v1-preferredversion/"}, want: []string{"v1-preferredversion"}, kept: 1},
		"PreferredFirst": {reason: "The order of the entries must not matter.", dirs: []string{"v1-preferredversion/", "v1alpha1/"}, want: []string{"v1-preferredversion"}, kept: 1},
		"NonePreferred":  {reason: "Without a preferred version the flaw must name the first.", dirs: []string{"v1alpha1/", "v1beta1/"}, want: []string{"v1alpha1"}, kept: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &reader{
				limits: Default(), packer: pack.New(), items: map[xp.Item]pack.Object{}, versions: map[xp.Item]string{},
				backup: &Backup{Format: "1.1.0", Versions: map[schema.GroupResource]string{}},
			}
			for _, version := range tc.dirs {
				f := file{name: dir + version + "cluster/b.json", content: bucket}
				r.stream = bytes.NewReader(tarOf(t, f))
				if err := r.read(); err != nil {
					t.Fatal(err)
				}
			}
			if kept := len(r.versions); kept != tc.kept {
				t.Errorf("%s the reader must drop copies that it does not need: got %d", tc.reason, kept)
			}
			b, err := r.finish()
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for _, version := range tc.want {
				want = append(want, fmt.Sprintf("%s%s: the backup has it only in the version %s, which Velero restores only with its feature EnableAPIGroupVersions", dir, version, version))
			}
			for _, f := range b.Flaws {
				got = append(got, f.Path+": "+f.Why)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

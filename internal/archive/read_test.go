package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

type file struct {
	name, content string
	kind          byte
}

const (
	version = "metadata/version"
	bucket  = `{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","metadata":{"name":"b","velero.crossplane.io/restore-first":["x/y/z"]},"spec":{"n":1}}`
	here    = "resources/buckets.cloud.example.org/cluster/b.json"
)

func tarOf(tb testing.TB, files ...file) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if f.kind == 0 {
			f.kind = tar.TypeReg
		}
		h := &tar.Header{Name: f.name, Typeflag: f.kind, Size: int64(len(f.content)), Mode: 0o755}
		if f.kind != tar.TypeReg {
			h.Size, h.Linkname = 0, f.content
		}
		if err := w.WriteHeader(h); err != nil {
			tb.Fatal(err)
		}
		if f.kind != tar.TypeReg {
			continue
		}
		if _, err := w.Write([]byte(f.content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}

	return b.Bytes()
}

func zipped(tb testing.TB, b []byte) []byte {
	tb.Helper()
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}

	return z.Bytes()
}

func backupOf(tb testing.TB, files ...file) []byte {
	tb.Helper()

	return zipped(tb, tarOf(tb, append([]file{{name: version, content: "1.1.0\n"}}, files...)...))
}

func TestRead(t *testing.T) {
	b, err := Read(t.Context(), bytes.NewReader(backupOf(t,
		file{name: here, content: bucket},
		file{name: "resources/buckets.cloud.example.org/v1alpha1-preferredversion/cluster/b.json", content: bucket},
		file{name: "./resources/pods/namespaces/shop/web.json", content: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","managedFields":[]},"spec":{}}`},
		file{name: "resources/pods", kind: tar.TypeDir},
	)), Default())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range b.Items {
		j, _ := json.Marshal(i.Object())
		got = append(got, i.String()+" "+string(j))
	}
	want := []string{
		`buckets.cloud.example.org//b ` + bucket,
		`pods/shop/web {"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Each item must come once, with the notes of the backup; other objects must come without spec: %s", diff)
	}
	if b.Format != "1.1.0" || b.Versions[schema.ParseGroupResource("buckets.cloud.example.org")] != "v1alpha1" || len(b.Flaws) > 0 {
		t.Errorf("the format, the versions or the flaws are wrong: %+v", b)
	}
	if u := b.Get(b.Items[1].Item); u.GetName() != "web" {
		t.Errorf("Get returns %v", u)
	}
	if u := b.Get(xp.Item{GroupResource: schema.GroupResource{Resource: "pods"}, Name: "web"}); u != nil {
		t.Errorf("Get must return nil for a missing item, not %v", u)
	}
}

func TestSecretsHaveNoValues(t *testing.T) {
	encoded, plain := xptest.Field("aHVzaA==", "data", "password"), xptest.Field("hush", "stringData", "password")
	applied := xptest.Annotated("kubectl.kubernetes.io/last-applied-configuration", `{"data":{"password":"aHVzaA=="}}`)
	opaque := xptest.Field("Opaque", "type")
	all := []xptest.Option{encoded, plain, applied}
	cases := map[string]struct {
		reason    string
		of        []xptest.Option
		old, with string
		unread    bool
	}{
		"Data":            {reason: "The reader keeps more than the metadata of Crossplane's own Secrets.", of: []xptest.Option{encoded}},
		"StringData":      {reason: "An edited file can have values in plain text.", of: []xptest.Option{plain}},
		"Applied":         {reason: "kubectl's annotation repeats the applied object.", of: []xptest.Option{applied}},
		"Opaque":          {reason: "The reader keeps the metadata of any other Secret.", of: []xptest.Option{opaque, encoded, plain}},
		"OpaqueApplied":   {reason: "The metadata of a Secret contains kubectl's annotation.", of: []xptest.Option{opaque, applied}},
		"Unusual":         {reason: "An object that the packer decodes another way must lose its values too.", of: all, old: `{`, with: `{"n":1e3,`},
		"Broken":          {reason: "A decoder's error can repeat its input.", of: all, old: `"type":`, with: `"type"`, unread: true},
		"ValuesAsTheKind": {reason: "The reader's own error can repeat its input.", of: all, old: `"Secret"`, with: `["aHVzaA==","hush"]`, unread: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j, err := json.Marshal(xptest.Secret("s", tc.of...))
			if err != nil {
				t.Fatal(err)
			}
			content := strings.Replace(string(j), tc.old, tc.with, 1)
			b, err := Read(t.Context(), bytes.NewReader(backupOf(t, file{name: "resources/secrets/namespaces/team-a/s.json", content: content})), Default())
			if err != nil {
				t.Fatal(err)
			}
			var of []any // An Item's own output has its name only.
			for _, i := range b.Items {
				of = append(of, i.object, i.Object().Object)
			}
			kept := fmt.Sprintf("%+v %+v", b.Flaws, of)
			if tc.unread != (len(b.Items) == 0) || strings.Contains(kept, "hush") || strings.Contains(kept, "aHVzaA==") {
				t.Errorf("%s no value of a Secret may stay in memory; got %q", tc.reason, kept)
			}
		})
	}
}

func TestFlaws(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   file
		want   Flaw
	}{
		"NotJSON": {
			reason: "An unreadable file must not stop the reader.", file: file{name: here, content: `{"apiVersion":`},
			want: Flaw{Path: here, Why: "cannot decode it: it is not a Kubernetes object in JSON"},
		},
		"Other": {
			reason: "Velero finds an item by its path, so the object must match the path.",
			file:   file{name: here, content: strings.Replace(bucket, `"b"`, `"other"`, 1)},
			want:   Flaw{Path: here, Why: "it is Bucket other, and its path has another name; find out who wrote it"},
		},
		"OtherGroup": {
			reason: "The object's group must match the path.", file: file{name: here, content: strings.Replace(bucket, "cloud.example.org/", "rbac.authorization.k8s.io/", 1)},
			want: Flaw{Path: here, Why: `it is of the group "rbac.authorization.k8s.io", and its path is of another group`},
		},
		"NoMetadata": {
			reason: "Velero can't restore an object without metadata.", file: file{name: here, content: `{"apiVersion":"cloud.example.org/v1alpha1","kind":"Bucket","metadata":[]}`},
			want: Flaw{Path: here, Why: "it has no metadata"},
		},
		"Elsewhere": {
			reason: "The flaw must name a file that Velero ignores.", file: file{name: "resources/buckets.cloud.example.org/b.json", content: bucket},
			want: Flaw{Path: "resources/buckets.cloud.example.org/b.json", Why: "it is not where Velero stores items", Ignored: true},
		},
		"OtherNamespace": {
			reason: "The object's namespace must match the path.",
			file:   file{name: "resources/buckets.cloud.example.org/namespaces/shop/b.json", content: strings.Replace(bucket, `"name":"b"`, `"name":"b","namespace":"team-a"`, 1)},
			want: Flaw{
				Path: "resources/buckets.cloud.example.org/namespaces/shop/b.json", Why: "it is Bucket team-a/b, and its path has another name; find out who wrote it",
			},
		},
		"OneVersion": {
			reason: "Velero restores only files above the version directories.",
			file:   file{name: "resources/buckets.cloud.example.org/v1alpha1/cluster/b.json", content: bucket},
			want: Flaw{
				Path: "resources/buckets.cloud.example.org/v1alpha1", Ignored: true,
				Why: "the backup has it only in the version v1alpha1, which Velero restores only with its feature EnableAPIGroupVersions",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b, err := Read(t.Context(), bytes.NewReader(backupOf(t, tc.file, file{name: "resources/namespaces/cluster/n.json", content: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`})),
				Default())
			if err != nil {
				t.Fatal(err)
			}
			for n := range b.Flaws {
				b.Flaws[n].Item = xp.Item{}
			}
			if diff := cmp.Diff([]Flaw{tc.want}, b.Flaws); diff != "" || len(b.Items) != 1 {
				t.Errorf("%s %s; got %d items", tc.reason, diff, len(b.Items))
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	good := backupOf(t, file{name: here, content: bucket})
	plainTar := tarOf(t, file{name: version, content: "1.1.0"})
	cases := map[string]struct {
		reason string
		input  []byte
		limits func(*Limits)
		want   []string
	}{
		"Empty":      {reason: "A failed download leaves an empty file.", want: []string{"it is empty", "velero backup download"}},
		"NotGzip":    {reason: "A user can name any other file.", input: plainTar, want: []string{"not compressed with gzip", "velero backup download"}},
		"NotTar":     {reason: "The logs of a backup are compressed too.", input: zipped(t, []byte(strings.Repeat("time=now msg=hello\n", 99))), want: []string{"the beginning", "damaged"}},
		"NotABackup": {reason: "Another archive is no backup.", input: zipped(t, tarOf(t, file{name: "README", content: "x"})), want: []string{"not a backup of Velero"}},
		"Truncated":  {reason: "A truncated download must not pass for a smaller backup.", input: good[:len(good)-20], want: []string{"not complete", "velero backup download"}},
		"Changed":    {reason: "The checksum at the end must be verified.", input: flip(good, len(good)-6), want: []string{"damaged"}},
		"Outside":    {reason: "Velero writes no path that leads out of the archive.", input: backupOf(t, file{name: "resources/../../etc/passwd"}), want: []string{"resources/../../etc/passwd", "out of the archive"}},
		"Absolute":   {reason: "Velero writes no absolute path.", input: backupOf(t, file{name: "/etc/passwd"}), want: []string{"/etc/passwd", "out of the archive"}},
		"Symlink":    {reason: "Velero writes no symbolic link.", input: backupOf(t, file{name: here, content: "/etc/passwd", kind: tar.TypeSymlink}), want: []string{here, "a link or a device"}},
		"Device":     {reason: "Velero writes no device.", input: backupOf(t, file{name: here, kind: tar.TypeChar}), want: []string{here, "a link or a device"}},
		"HardLink":   {reason: "Velero writes no hard link.", input: backupOf(t, file{name: here, content: "metadata/version", kind: tar.TypeLink}), want: []string{here, "a link or a device"}},
		"NamedPipe":  {reason: "Velero writes no named pipe.", input: backupOf(t, file{name: here, kind: tar.TypeFifo}), want: []string{here, "a link or a device"}},
		"Backslash": {
			reason: "On some systems a backslash separates directories.", input: backupOf(t, file{name: `resources\..\..\passwd`}), want: []string{"out of the archive"},
		},
		"LongName": {
			reason: "The header of an entry can have a name of any length.", input: backupOf(t, file{name: strings.Repeat("a/", 99_999) + "a"}), want: []string{"its name has 199999 bytes"},
		},
		"ManyFlaws": {
			reason: "Flaws take memory too.", input: backupOf(t, file{name: "a"}, file{name: "b"}, file{name: "c"}),
			limits: func(l *Limits) { l.Kept = 1200 }, want: []string{`"c"`, "memory"},
		},
		"ManyVersions": {
			reason: "Copies by version take memory too.", limits: func(l *Limits) { l.Kept = 1200 },
			input: backupOf(t, file{name: "resources/a/v1/cluster/a.json"}, file{name: "resources/a/v1/cluster/b.json"}, file{name: "resources/a/v1/cluster/c.json"}),
			want:  []string{"c.json", "memory"},
		},
		"EmptyLists": {
			reason: "Short JSON can need much memory.", limits: func(l *Limits) { l.Kept = 100_000 },
			input: backupOf(t, file{name: here, content: strings.Replace(bucket, `"n":1`, `"n":[`+strings.Repeat("[],", 9999)+`[]]`, 1)}), want: []string{here, "memory"},
		},
		"LongAnnotation": {
			reason: "Other objects can need much memory too.", limits: func(l *Limits) { l.Kept = 100_000 },
			input: backupOf(t, file{
				name:    "resources/pods/namespaces/shop/web.json",
				content: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","annotations":{"a":"` + strings.Repeat("x", 100_000) + `"}}}`,
			}), want: []string{"web.json", "memory"},
		},
		"LongTail": {reason: "Data after the archive must count too.", input: zipped(t, append(tarOf(t, file{name: version}), make([]byte, 1<<20)...)), limits: func(l *Limits) { l.Total = 1 << 19 }, want: []string{"longer than any backup"}},
		"MuchKept": {reason: "The kept objects must fit into the limit.", input: good, limits: func(l *Limits) { l.Kept = 10 }, want: []string{here, "memory"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := Default()
			if tc.limits != nil {
				tc.limits(&limits)
			}
			_, err := Read(t.Context(), bytes.NewReader(tc.input), limits)
			if err == nil {
				t.Fatalf("%s want an error", tc.reason)
			}
			for _, words := range tc.want {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%s the error %q lacks %q", tc.reason, err, words)
				}
			}
		})
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, bytes.NewReader(backupOf(t)), Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("The reader must stop when its context ends; got %v", err)
	}
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0xff

	return b
}

// FuzzRead reads arbitrary files. It must neither panic nor keep data of Secrets.
func FuzzRead(f *testing.F) {
	f.Add(backupOf(f, file{name: here, content: bucket}), false)
	f.Add(tarOf(f, file{name: version, content: "1.1.0"}, file{name: here, content: bucket}), true)
	f.Add(tarOf(f, file{name: "resources/secrets/namespaces/a/b.json", content: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b","namespace":"a"},"data":{"a":"Yg=="}}`}), true)
	for _, h := range []file{
		{name: "resources/../../etc/passwd", content: "x"},
		{name: here, content: "/etc/passwd", kind: tar.TypeSymlink},
		{name: here, content: version, kind: tar.TypeLink},
		{name: here, kind: tar.TypeBlock},
		{name: here, content: strings.Repeat("[", 20_000)},
		{name: here, content: "\xff\xfe" + bucket},
		{name: here, content: strings.Replace(bucket, `"n":1`, `"n":`+strings.Repeat(`{"a":`, 9999)+"1"+strings.Repeat("}", 9999), 1)},
		{name: strings.Repeat("resources/", 300) + "b.json"},
		{name: "resources/buckets.cloud.example.org/cluster/\xff.json", content: bucket},
	} {
		f.Add(backupOf(f, h, file{name: here, content: bucket}), false)
		f.Add(tarOf(f, file{name: here, content: bucket}, h, h), true)
	}
	good := backupOf(f, file{name: here, content: bucket})
	f.Add(good[:len(good)/2], false)
	f.Add(bytes.Repeat(good, 2), false)         // A gzip file can have several members.
	f.Add(zipped(f, make([]byte, 1<<20)), true) // It is longer than it looks.
	f.Add(sparse(f), true)
	f.Fuzz(func(t *testing.T, b []byte, wrap bool) {
		if wrap {
			b = zipped(t, b)
		}
		limits := Limits{Entry: 1 << 16, Entries: 100, Total: 1 << 22, Kept: 1 << 22, Name: 1 << 10}
		got, err := Read(t.Context(), bytes.NewReader(b), limits)
		if err != nil {
			return
		}
		for _, i := range got.Items {
			u := i.Object()
			if _, data := u.Object["data"]; data || i.Name != u.GetName() || i.Namespace != u.GetNamespace() || strings.Contains(i.Name, "/") || i.Ref() != xp.RefTo(u) {
				t.Errorf("the item %s does not match its object: %v", i.Item, u)
			}
			if diff := cmp.Diff(u, got.Get(i.Item)); diff != "" {
				t.Errorf("Get returns another object for %s: %s", i.Item, diff)
			}
		}
	})
}

// sparse is a tarball whose PAX header declares its entry sparse.
func sparse(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h := &tar.Header{
		Name: here, Typeflag: tar.TypeReg, Size: 4, Format: tar.FormatPAX,
		PAXRecords: map[string]string{"VENDOR.x": strings.Repeat("x", 1<<10), "path": here},
	}
	if err := w.WriteHeader(h); err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write([]byte("0\n0\n")); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}

	return bytes.Replace(b.Bytes(), []byte("VENDOR.x="), []byte("GNU.sparse.major=1\n22 GNU.sparse.size="), 1)
}

// A backup within the limits is read. TestUnreadable has those beyond.
func TestLimits(t *testing.T) {
	files := []file{{name: version, content: "1.1.0"}, {name: here, content: bucket}}
	whole := tarOf(t, files...)
	cases := map[string]struct {
		reason string
		change func(*Limits)
		read   bool
	}{
		"Entry":       {reason: "An entry may reach the limit.", change: func(l *Limits) { l.Entry = int64(len(bucket)) }, read: true},
		"LongEntry":   {reason: "An entry must not exceed the limit.", change: func(l *Limits) { l.Entry = int64(len(bucket)) - 1 }},
		"Entries":     {reason: "The number of entries may reach the limit.", change: func(l *Limits) { l.Entries = int64(len(files)) }, read: true},
		"ManyEntries": {reason: "The number of entries must not exceed the limit.", change: func(l *Limits) { l.Entries = int64(len(files)) - 1 }},
		"Total":       {reason: "The whole archive may reach the limit.", change: func(l *Limits) { l.Total = int64(len(whole)) }, read: true},
		"LongTotal":   {reason: "The whole archive must not exceed the limit.", change: func(l *Limits) { l.Total = int64(len(whole)) - 1 }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := Default()
			tc.change(&limits)
			if _, err := Read(t.Context(), bytes.NewReader(zipped(t, whole)), limits); (err == nil) != tc.read {
				t.Errorf("%s got the error %v", tc.reason, err)
			}
		})
	}
}

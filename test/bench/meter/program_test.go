package meter

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDecode(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  [][2]string
		want   int
		fails  bool
	}{
		"Once": {
			reason: "Each object is in a backup twice, and inspect reads it once.",
			files: [][2]string{
				{"metadata/version", "1.1.0\n"},
				{"resources/pods/namespaces/a/b.json", `{"kind":"Pod"}`},
				{"resources/pods/v1-preferredversion/namespaces/a/b.json", `{"kind":"Pod"}`},
				{"resources/pods/namespaces/a/c.json", `{"kind":"Pod"}`},
			},
			want: 2,
		},
		"Broken": {reason: "A broken file must be an error.", files: [][2]string{{"resources/pods/namespaces/a/b.json", `{`}}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			zipped := gzip.NewWriter(&b)
			w := tar.NewWriter(zipped)
			for _, f := range tc.files {
				if err := w.WriteHeader(&tar.Header{Name: f[0], Size: int64(len(f[1])), Mode: 0o600}); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write([]byte(f[1])); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(w.Close(), zipped.Close()); err != nil {
				t.Fatal(err)
			}
			got, err := Decode(&b)
			if (err != nil) != tc.fails || got != tc.want {
				t.Errorf("%s\nwant %d, got %d; error: %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestHandshake(t *testing.T) {
	program := func(script string) string {
		path := filepath.Join(t.TempDir(), "plugin")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // It is run.
			t.Fatal(err)
		}

		return path
	}
	cases := map[string]struct {
		reason string
		script string
		fails  bool
	}{
		"Plugin":  {reason: "A plugin that is started as Velero starts it must print its address.", script: `[ "$VELERO_PLUGIN" = hello ] && echo "1|2|unix|/tmp/plugin|grpc"; exec sleep 60`},
		"Command": {reason: "A program with other output is no plugin.", script: "echo usage", fails: true},
		"Silent":  {reason: "One that ends without a word does not either.", script: "exit 0", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			took, err := Handshake(t.Context(), program(tc.script))
			if (err != nil) != tc.fails || err == nil && took <= 0 {
				t.Errorf("%s\ntook %s, error: %v", tc.reason, took, err)
			}
		})
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/printer"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// FuzzInspect inspects a backup with one arbitrary object, with a dry run of the restore, in each
// format.
func FuzzInspect(f *testing.F) {
	n := uint8(0)
	xptest.Seeds(func(kind uint8, patch []byte) {
		n++
		if n%4 == 0 { // Each run is slow.
			f.Add(kind, patch, n/4)
		}
	})
	f.Fuzz(func(t *testing.T, kind uint8, patch []byte, format uint8) {
		u, ok := xptest.Patched(kind, patch)
		if !ok {
			return
		}
		objects := map[xp.ID]*unstructured.Unstructured{}
		for _, o := range append(xptest.HostileObjects(), u) {
			objects[xp.RefTo(o).ID()] = o
		}
		var all []*unstructured.Unstructured
		for _, o := range objects {
			all = append(all, o)
		}
		formats := printer.Formats()
		args := []string{"inspect", "-", "-o", formats[int(format)%len(formats)]}
		var out, stderr bytes.Buffer
		code := hooks.Run(t.Context(), args, hooks.Program{In: bytes.NewReader(xptest.Backup(all...)), Out: &out, Err: &stderr, DryRunner: dryRun})
		switch {
		case strings.ContainsAny(u.GetName()+u.GetNamespace()+xptest.Resource(u), "\\\x00") || hasDots(u): // The path of its file leads out of the archive.
			if code != hooks.ExitFailed || stderr.Len() == 0 {
				t.Errorf("a backup with the path of %s ends with %d: %s", xp.String(u), code, stderr.String())
			}
		case code == hooks.ExitFailed && stderr.Len() > 0 && out.Len() == 0: // The error names the reason.
		case code != hooks.ExitProblems && code != hooks.ExitFine:
			t.Errorf("inspect ended with %d: %s", code, stderr.String())
		case args[3] == string(printer.JSON):
			var r report.Report
			if err := json.Unmarshal(out.Bytes(), &r); err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Problems {
				if p.Code == "" || p.Object.Kind == "" || p.Reason == "" || p.Next == "" {
					t.Errorf("a problem must name its object, the cause and the next step: %+v", p)
				}
			}
		}
	})
}

func hasDots(u *unstructured.Unstructured) bool {
	for part := range strings.SplitSeq(u.GetNamespace()+"/"+u.GetName()+".json/"+xptest.Resource(u), "/") {
		if part == ".." {
			return true
		}
	}

	return false
}

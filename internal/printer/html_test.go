package printer

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPageNeedsNothingElse looks for URLs that a browser would fetch. It fetches no link to the
// documentation before a user follows it. The tests with the tag browser open a page in a real one.
func TestPageNeedsNothingElse(t *testing.T) {
	fetches := regexp.MustCompile(`(?i)(https?:|//[a-z]|@import|url\(|<(script|link|img|iframe)[^>]+(src|href)="[^d"])`)
	links := regexp.MustCompile(`<a href="https://github\.com/crossplane-contrib/[\w/.#-]+">`)
	for name, r := range samples() {
		got := printed(t, r, HTML, Options{})
		if found := fetches.FindString(links.ReplaceAllString(got, "")); found != "" {
			t.Errorf("%s: the page must open without a network; it loads %q", name, found)
		}
		for _, s := range []string{pageStyle, pageScript} {
			if !strings.Contains(got, ">"+s+"</") || !strings.Contains(got, strings.ReplaceAll(digest(s), "+", "&#43;")) {
				t.Errorf("%s: the page's policy must allow its style and its script by their digests", name)
			}
		}
	}
}

func TestPageShowsAll(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   []string
	}{
		"held": {
			reason: "A problem must have its next step and a link to its place in the tree.",
			want: []string{
				`/docs/messages.md#Held">Held</a>`, "<code>velero restore describe --details nightly-20260314</code>",
				"<title>2 problems in kind-production. Validation</title>", `<a href="#r2">XOrder orders-x7k2p</a>`, `<li id="r2" class="wrong">`, "<strong>Next:</strong>",
				`datetime="2026-03-14T09:18:00Z"`, "12m so far",
			},
		},
		"real-restored": {reason: "The page must show how long a restore took.", want: []string{`<td class="took">3m12s</td>`, "Restore, Completed"}},
		"healthy":       {reason: "A tree without problems must be folded.", want: []string{`class="well"><details><summary>`}},
		"against":       {reason: "The page of a backup must show the restore order and the outcomes.", want: []string{"Order of restore", "restore: refuse", "its XRD is being deleted", "backup format"}},
		"empty":         {reason: "An empty report must state that the cluster has no objects of Crossplane.", want: []string{"Nothing of Crossplane was found"}},
		"hostile":       {reason: "The page must escape the text of objects.", want: []string{"&lt;img src=x onerror=alert(1)&gt;"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := printed(t, samples()[name], HTML, Options{})
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s %s is not in the page:\n%s", tc.reason, want, got)
				}
			}
		})
	}
}

func TestSplitStep(t *testing.T) {
	cases := map[string]struct {
		reason, next string
		want         [3]string
	}{
		"Command":  {reason: "A user copies the command.", next: "repair that, then run: kubectl get order -n a", want: [3]string{"repair that, then run:", "kubectl get order -n a", ""}},
		"Notes":    {reason: "A note behind the command is not part of it.", next: "run: velero restore get (add -o yaml)", want: [3]string{"run:", "velero restore get", " (add -o yaml)"}},
		"Sentence": {reason: "Another step can follow.", next: "see: kubectl get orders; then delete one", want: [3]string{"see:", "kubectl get orders", "; then delete one"}},
		"None":     {reason: "A step need not have a command.", next: "restore again", want: [3]string{"restore again", "", ""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			step, command, rest := splitStep(tc.next)
			if diff := cmp.Diff(tc.want, [3]string{step, command, rest}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

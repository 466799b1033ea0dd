package release

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// A workflow has the fields of a GitHub workflow that can be dangerous.
type workflow struct {
	// On has the key "true" in YAML.
	On          any `json:"true"`
	Permissions any `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Uses        string            `json:"uses"`
		Steps       []struct {
			Uses string         `json:"uses"`
			Run  string         `json:"run"`
			With map[string]any `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

var (
	// pinRE matches an action with its commit. expressionRE matches expressions that GitHub puts
	// into a script before a shell runs it, except those of a matrix, whose values are in the file.
	pinRE        = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	expressionRE = regexp.MustCompile(`(?s)\$\{\{\s*(.*?)\s*\}\}`)
	matrixRE     = regexp.MustCompile(`^matrix\.[\w-]+$`)
)

// flaws returns the problems in the text of a workflow.
func flaws(t *testing.T, text string) []string {
	t.Helper()
	w := parse(t, text)
	var all []string
	switch p := w.Permissions.(type) {
	case nil:
		all = append(all, "it has no top-level permissions")
	case string:
		all = append(all, "its top-level permissions are "+p)
	case map[string]any:
		for name, right := range p {
			if right != "read" && right != "none" {
				all = append(all, fmt.Sprintf("each of its jobs has %s: %v", name, right))
			}
		}
	}
	for _, event := range []string{"pull_request_target", "workflow_run"} {
		if strings.Contains(fmt.Sprint(w.On), event) {
			all = append(all, "it gives the rights of "+event+" to what a stranger proposes")
		}
	}
	for name, job := range w.Jobs {
		all = append(all, unpinned(text, job.Uses)...)
		for _, step := range job.Steps {
			all = append(all, unpinned(text, step.Uses)...)
			if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
				all = append(all, "a checkout of "+name+" leaves its token behind")
			}
			script, _ := step.With["script"].(string)
			for _, found := range expressionRE.FindAllStringSubmatch(step.Run+script, -1) {
				if !matrixRE.MatchString(found[1]) {
					all = append(all, "a script of "+name+" has ${{ "+found[1]+" }} in it")
				}
			}
		}
	}
	slices.Sort(all)

	return all
}

// unpinned returns the problems in a step's reference to its action.
func unpinned(text, uses string) []string {
	switch {
	case uses == "" || strings.HasPrefix(uses, "./"):
		return nil
	case !pinRE.MatchString(uses):
		return []string{uses + " is not pinned by commit"}
	case !regexp.MustCompile(regexp.QuoteMeta("uses: "+uses) + ` # v\d+(\.\d+)*\n`).MatchString(text):
		return []string{uses + " has no version in a comment, which dependabot and users read"}
	}

	return nil
}

func parse(t *testing.T, text string) workflow {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}

	return w
}

// TestWorkflows checks that nothing unreviewed can change a release: a tag of an action can be
// moved, and names that a stranger chooses are code in a script.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no workflow: %v", err)
	}
	pins, writes := map[string]string{}, map[string]string{}
	for _, file := range files {
		text := read(t, file)
		if diff := cmp.Diff([]string(nil), flaws(t, text)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", filepath.Base(file), diff)
		}
		for _, found := range regexp.MustCompile(`uses: ([^@/\s]+/[^@/\s]+)\S*@(.+)`).FindAllStringSubmatch(text, -1) {
			if other, ok := pins[found[1]]; ok && other != found[2] {
				t.Errorf("%s is %s and %s: one version is enough to trust", found[1], other, found[2])
			}
			pins[found[1]] = found[2]
		}
		for name, job := range parse(t, text).Jobs {
			var rights []string
			for right, is := range job.Permissions {
				if is == "write" {
					rights = append(rights, right)
				}
			}
			slices.Sort(rights)
			if len(rights) > 0 {
				writes[filepath.Base(file)+" "+name] = strings.Join(rights, " ")
			}
		}
	}
	want := map[string]string{
		"codeql.yaml analyze":  "security-events",
		"release.yaml image":   "attestations id-token packages",
		"release.yaml publish": "contents",
		"release.yaml sign":    "attestations id-token",
		"scorecard.yaml score": "id-token security-events",
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("Which jobs may write what: -want, +got:\n%s", diff)
	}
}

// TestFlaws checks that TestWorkflows finds each kind of problem.
func TestFlaws(t *testing.T) {
	const pin = "actions/checkout@0123456789012345678901234567890123456789"
	good := `on: {push: {tags: ["v*"]}}
permissions: {contents: read}
jobs:
  one:
    steps:
    - uses: ` + pin + ` # v7.0.1
      with: {persist-credentials: false}
    - run: make ${{ matrix.target }} "$VERSION"
      env:
        VERSION: ${{ github.ref_name }}
`
	cases := map[string]struct {
		reason, old, new string
		want             []string
	}{
		"None":        {reason: "Names come from the environment."},
		"Permissions": {reason: "Without any, the repository's settings decide.", old: "permissions: {contents: read}\n", want: []string{"it has no top-level permissions"}},
		"All":         {reason: "All is more than a job needs.", old: "{contents: read}", new: "write-all", want: []string{"its top-level permissions are write-all"}},
		"Write":       {reason: "Only a job may have the right to write.", old: "contents: read", new: "contents: write", want: []string{"each of its jobs has contents: write"}},
		"Target":      {reason: "A pull request would run with our token.", old: "push:", new: "pull_request_target:", want: []string{"it gives the rights of pull_request_target to what a stranger proposes"}},
		"Tag":         {reason: "A tag can be moved.", old: pin, new: "actions/cache@v4", want: []string{"actions/cache@v4 is not pinned by commit"}},
		"Short":       {reason: "Another commit may begin with the same digits.", old: pin, new: "actions/cache@0123456", want: []string{"actions/cache@0123456 is not pinned by commit"}},
		"NoVersion":   {reason: "A reader can't see the version of a commit.", old: " # v7.0.1", want: []string{pin + " has no version in a comment, which dependabot and users read"}},
		"Token":       {reason: "Later steps could take it.", old: "persist-credentials: false", new: "fetch-depth: 0", want: []string{"a checkout of one leaves its token behind"}},
		"Ref":         {reason: "A tag's name is a script here.", old: `"$VERSION"`, new: "${{ github.ref_name }}", want: []string{"a script of one has ${{ github.ref_name }} in it"}},
		"Compared":    {reason: "Anything may be behind what is harmless.", old: `"$VERSION"`, new: "${{ matrix.a || github.ref }}", want: []string{"a script of one has ${{ matrix.a || github.ref }} in it"}},
		"Reused":      {reason: "A workflow that is called is pinned as well.", old: "  one:", new: "  two: {uses: a/b/.github/workflows/c.yaml@main}\n  one:", want: []string{"a/b/.github/workflows/c.yaml@main is not pinned by commit"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(good, tc.old) {
				t.Fatalf("there is no %q in the workflow", tc.old)
			}
			got := flaws(t, strings.Replace(good, tc.old, tc.new, 1))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestBase checks that the Dockerfile pins its base image: its tag can be moved as well.
func TestBase(t *testing.T) {
	for _, from := range regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(read(t, "../../Dockerfile"), -1) {
		if from != "FROM scratch" && !regexp.MustCompile(`@sha256:[0-9a-f]{64} AS `).MatchString(from) {
			t.Errorf("%q has no digest", from)
		}
	}
}

// TestDependabot checks that dependabot proposes newer versions of all pinned dependencies.
func TestDependabot(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem string `json:"package-ecosystem"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../.github/dependabot.yml")), &config); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range config.Updates {
		got = append(got, u.Ecosystem)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"docker", "github-actions", "gomod"}, got); diff != "" {
		t.Errorf("the ecosystems of dependabot: -want, +got:\n%s", diff)
	}
}

// labelRE matches a label of a Dockerfile that Artifact Hub reads.
var labelRE = regexp.MustCompile(`(io\.artifacthub\.[\w.-]+)="([^"]*)"`)

// TestAnnotations checks that the index that the workflow pushes has the Dockerfile's labels for
// Artifact Hub as annotations. "make image" copies them, and an engine does not.
func TestAnnotations(t *testing.T) {
	dockerfile := read(t, "../../Dockerfile")
	asText := strings.NewReplacer("crossplane-contrib/velero-plugin-for-crossplane", "${{ github.repository }}", "$VERSION", "${{ github.ref_name }}")
	var want, got []string
	for _, l := range labelRE.FindAllStringSubmatch(dockerfile, -1) {
		want = append(want, l[1]+"="+asText.Replace(l[2]))
	}
	for _, step := range parse(t, read(t, "../../.github/workflows/release.yaml")).Jobs["image"].Steps {
		annotations, _ := step.With["annotations"].(string)
		for line := range strings.Lines(annotations) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "io.artifacthub.") {
				got = append(got, line)
			}
		}
	}
	if diff := cmp.Diff(want, got); len(want) == 0 || diff != "" {
		t.Errorf("%d labels; -Dockerfile, +workflow:\n%s", len(want), diff)
	}
}

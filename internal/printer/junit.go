package printer

import (
	"bytes"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// suites returns a report as JUnit XML. Each tree is a test that fails if an object in it has a
// problem. Each problem outside the trees is a test too. A test with warnings only passes, with
// them as its output.
func suites(r *report.Report) ([]byte, error) {
	all := junit.Testsuites{Name: r.Kind}
	trees, problems := junit.Testsuite{Name: "trees", ID: 0}, junit.Testsuite{Name: "problems", ID: 1}
	for _, s := range []*junit.Testsuite{&trees, &problems} {
		s.AddProperty("source", r.Source)
		s.AddProperty("apiVersion", r.APIVersion)
		s.Time = "0"
		if !r.Time.IsZero() {
			s.SetTimestamp(r.Time)
		}
	}
	about := map[xp.ID][]int{}
	for k, p := range r.Problems {
		about[p.Object.ID()] = append(about[p.Object.ID()], k)
	}
	reported := map[int]bool{}
	for _, n := range r.Trees {
		if n != nil {
			trees.AddTestcase(treeCase(n, r.Problems, about, reported))
		}
	}
	for k, p := range r.Problems {
		if reported[k] {
			continue
		}
		problems.AddTestcase(testcase(string(p.Code), p.Object.String(), []report.Problem{p}))
	}
	all.AddSuite(trees)
	all.AddSuite(problems)
	var b bytes.Buffer
	b.WriteString(xml.Header)
	err := all.WriteXML(&b)

	return b.Bytes(), err
}

// treeCase returns the test of a tree. about has the indexes of the problems by object. It adds
// those of the tree to reported.
func treeCase(root *report.Node, problems []report.Problem, about map[xp.ID][]int, reported map[int]bool) junit.Testcase {
	within, found := map[xp.ID]bool{}, []int{}
	for n := range report.All(root) {
		if !within[n.ID()] {
			within[n.ID()] = true
			found = append(found, about[n.ID()]...)
		}
	}
	slices.Sort(found)
	mine := make([]report.Problem, 0, len(found))
	for _, k := range found {
		mine = append(mine, problems[k])
		reported[k] = true
	}

	return testcase(root.Kind, root.String(), mine)
}

func testcase(class, name string, problems []report.Problem) junit.Testcase {
	c := junit.Testcase{Classname: class, Name: name, Time: "0"}
	var messages []string
	for _, p := range problems {
		messages = append(messages, string(p.Severity)+" "+string(p.Code)+": "+p.Object.String()+": "+p.Reason+"\nNext: "+p.Next)
		if p.Severity == report.Error && c.Failure == nil {
			c.Failure = &junit.Result{Message: p.Object.String() + ": " + p.Reason, Type: string(p.Code)}
		}
	}
	switch {
	case c.Failure != nil:
		c.Failure.Data = strings.Join(messages, "\n\n")
	case len(messages) > 0:
		c.SystemOut = &junit.Output{Data: strings.Join(messages, "\n\n")}
	}

	return c
}

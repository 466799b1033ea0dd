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

// suites returns a report as JUnit's XML: a test for each tree, which fails if anything in it has a
// problem, and one for each problem with what is in no tree. A warning is a test that passes, with
// what it says as its output.
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
	told := map[int]bool{}
	for _, n := range r.Trees {
		if n != nil {
			trees.AddTestcase(treeCase(n, r.Problems, about, told))
		}
	}
	for k, p := range r.Problems {
		if told[k] {
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

// treeCase is the test of a tree. About are which of the problems are about an object, and told
// those that a tree has.
func treeCase(root *report.Node, problems []report.Problem, about map[xp.ID][]int, told map[int]bool) junit.Testcase {
	within, found := map[xp.ID]bool{}, []int{}
	walk([]*report.Node{root}, func(n *report.Node) {
		if !within[n.ID()] {
			within[n.ID()] = true
			found = append(found, about[n.ID()]...)
		}
	})
	slices.Sort(found)
	mine := make([]report.Problem, 0, len(found))
	for _, k := range found {
		mine = append(mine, problems[k])
		told[k] = true
	}

	return testcase(root.Kind, root.String(), mine)
}

func testcase(class, name string, problems []report.Problem) junit.Testcase {
	c := junit.Testcase{Classname: class, Name: name, Time: "0"}
	var said []string
	for _, p := range problems {
		said = append(said, string(p.Severity)+" "+string(p.Code)+": "+p.Object.String()+": "+p.Reason+"\nNext: "+p.Next)
		if p.Severity == report.Grave && c.Failure == nil {
			c.Failure = &junit.Result{Message: p.Object.String() + ": " + p.Reason, Type: string(p.Code)}
		}
	}
	switch {
	case c.Failure != nil:
		c.Failure.Data = strings.Join(said, "\n\n")
	case len(said) > 0:
		c.SystemOut = &junit.Output{Data: strings.Join(said, "\n\n")}
	}

	return c
}

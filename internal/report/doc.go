// Package report is what is said about trees of Crossplane's resources: which there are, how well
// each resource is, what is wrong and what to do. A Report is data; docs/report.md describes its
// JSON, which is the same in each version of APIVersion. How one looks to a person is the business
// of package printer.
package report

// Package report defines the result of inspect, validate and release: trees of Crossplane's
// resources, their problems and what to do. It is data only, and any package may import it.
// docs/validate.md describes its JSON, which stays compatible within an APIVersion. Package printer
// prints it. Start reading at Report.
package report

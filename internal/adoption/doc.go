// Package adoption decides how a restored XR gets from held to adopted: which hold it is created
// with, what must be true before Crossplane may reconcile it, what proves that it controls its
// composed resources again, and what to give back then. It works on what was observed and returns
// patches; it has no client and no clock.
package adoption

package restoreitem

// Shared is what the actions of one restore share. Of what is nil, an action lacks the feature.
type Shared struct {
	// Requested is what Order has requested, for Adopt. It is empty if it is nil.
	Requested *RequestedItems
	// XRDs refuses XRs and claims whose XRD is being deleted.
	XRDs *XRDCheck
	// Ready has Order wait until its items can be converted.
	Ready *Readiness
	// Claims has Order restore connection secrets before their claims.
	Claims ClaimKinds
	// Features returns the features of the Velero server.
	Features func() []string
	// Modifiers returns the name of the ConfigMap with the resource modifiers of all Restores; "" if
	// there is none.
	Modifiers func() string

	// remarks are for a dry run.
	remarks remarkFn
	// warned are the warnings about the item.
	warned *warned
}

func (s Shared) complete() Shared {
	s.warned = &warned{}
	if s.Requested == nil {
		s.Requested = &RequestedItems{}
	}

	return s
}

package restoreitem

// An Option gives an action something that the actions of one restore share. Without it the action
// lacks that feature.
type Option func(s *shared)

// shared is what Options give to Order and Adopt.
type shared struct {
	xrds      *XRDCheck
	requested *RequestedItems
	claims    ClaimKinds
	ready     *Readiness
	velero    *VeleroFeatures
	// modifiersName is the ConfigMap with the resource modifiers of all Restores, "" if there is none.
	modifiersName string
	// warned are the warnings about the item.
	warned *warned
	// remarks are for a dry run.
	remarks remarkFn
}

func sharedBy(options []Option) shared {
	s := shared{warned: &warned{}}
	for _, o := range options {
		o(&s)
	}

	return s
}

// WithXRDCheck makes Order and Adopt refuse XRs and claims whose XRD is being deleted.
func WithXRDCheck(c *XRDCheck) Option { return func(s *shared) { s.xrds = c } }

// WithRequestedItems makes Adopt hold MRs until the connection secrets are back that Order has
// recorded in the items.
func WithRequestedItems(items *RequestedItems) Option {
	return func(s *shared) { s.requested = items }
}

// WithClaimKinds makes Order restore connection secrets before their claims.
func WithClaimKinds(kinds ClaimKinds) Option { return func(s *shared) { s.claims = kinds } }

// WithReadiness makes Order wait until its items can be converted.
func WithReadiness(r *Readiness) Option { return func(s *shared) { s.ready = r } }

// WithVeleroFeatures makes Adopt leave to Velero what Velero does.
func WithVeleroFeatures(f *VeleroFeatures) Option { return func(s *shared) { s.velero = f } }

// withRemarks makes Order and Adopt give each remark to the function.
func withRemarks(fn remarkFn) Option { return func(s *shared) { s.remarks = fn } }

// WithModifiers makes Adopt read the resource modifiers of all Restores from the ConfigMap with the
// name, "" if there is none.
func WithModifiers(name string) Option { return func(s *shared) { s.modifiersName = name } }

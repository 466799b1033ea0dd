package restoreitem

// An Option gives an action something that the actions of one restore share. Without it the action
// leaves out what it is for.
type Option func(s *shared)

// shared is what Order and Adopt can be given.
type shared struct {
	xrds      *XRDCheck
	requested *RequestedItems
	claims    ClaimKinds
	ready     *Readiness
	velero    *VeleroFeatures
	// modifiersName returns the name of the ConfigMap with the resource modifiers of all Restores; ""
	// if there is none.
	modifiersName func() string
}

func sharedBy(options []Option) shared {
	var s shared
	for _, o := range options {
		o(&s)
	}

	return s
}

// WithXRDCheck has Order and Adopt refuse XRs and claims whose XRD is being deleted.
func WithXRDCheck(c *XRDCheck) Option { return func(s *shared) { s.xrds = c } }

// WithRequestedItems has Adopt hold MRs until the connection secrets are back that the restore
// brings, as Order has noted them in the same items.
func WithRequestedItems(items *RequestedItems) Option {
	return func(s *shared) { s.requested = items }
}

// WithClaimKinds has Order request no claim before its connection secret is restored.
func WithClaimKinds(kinds ClaimKinds) Option { return func(s *shared) { s.claims = kinds } }

// WithReadiness has Order wait until what it restores can be converted.
func WithReadiness(r *Readiness) Option { return func(s *shared) { s.ready = r } }

// WithVeleroFeatures has Adopt leave to Velero what Velero does itself.
func WithVeleroFeatures(f *VeleroFeatures) Option { return func(s *shared) { s.velero = f } }

// WithModifiers has Adopt read the resource modifiers of all Restores from the ConfigMap that the
// function names; "" if there is none.
func WithModifiers(name func() string) Option { return func(s *shared) { s.modifiersName = name } }

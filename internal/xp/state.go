package xp

import "strings"

// A State is what a tool keeps in a Secret of its own. Only by it a provider knows what it has made:
// without it, it makes that again.
type State struct {
	// Keeper is the tool, What the name that it has for its state.
	Keeper, What string
	// Again is, as part of a message, what the provider does without the Secret.
	Again string
}

// StateIn returns what a Secret of this name keeps; false if it is no such Secret.
func StateIn(secret string) (s State, ok bool) {
	switch {
	case strings.HasPrefix(secret, prefixRelease):
		return State{
			Keeper: "Helm", What: "release",
			Again: "provider-helm installs the chart again over what is there, with new passwords where the chart makes some",
		}, true
	case strings.HasPrefix(secret, prefixTerraform):
		return State{
			Keeper: "Terraform", What: "state", Again: "provider-terraform creates all resources of the module again, beside those that exist",
		}, true
	default:
		return State{}, false
	}
}

// IsStateSecret reports whether a Secret of this name keeps a State.
func IsStateSecret(name string) bool {
	_, ok := StateIn(name)

	return ok
}

package cases

import "encoding/json"

// A Step is one thing that somebody does. Exactly one of its fields is set.
type Step struct {
	// Apply applies a file of the case.
	Apply string `json:"apply,omitempty"`
	// Patch patches each of some objects.
	Patch *Patch `json:"patch,omitempty"`
	// Delete deletes each of some objects, and does not wait until it is gone.
	Delete *Objects `json:"delete,omitempty"`
	// Await waits for the state of some objects.
	Await *Await `json:"await,omitempty"`
	// Revise gives the case's Composition so many new revisions with the same content.
	Revise int `json:"revise,omitempty"`
	// Stop and Start name a component of the stack.
	Stop  string `json:"stop,omitempty"`
	Start string `json:"start,omitempty"`
	// Details adds a key that no provider can publish again to all connection Secrets.
	Details bool `json:"details,omitempty"`
	// Own makes an object an owner, but not the controller, of others of its kind.
	Own *Own `json:"own,omitempty"`
	// BackUp makes another backup.
	BackUp *BackUp `json:"backUp,omitempty"`
	// Release runs the plugin's command release with these arguments.
	Release []string `json:"release,omitempty"`
	// RestoreAgain restores the backup once more with these arguments of velero, and waits until
	// that is Completed.
	RestoreAgain *[]string `json:"restoreAgain,omitempty"`
	// AwaitReady waits until all is complete and Ready, and nothing held.
	AwaitReady bool `json:"awaitReady,omitempty"`
}

// An Own names the owner of objects by its name.
type Own struct {
	Objects `json:",inline"`

	By string `json:"by"`
}

// A BackUp is a backup by velero's arguments, and the reasons that its log names.
type BackUp struct {
	Name  string   `json:"name"`
	Args  []string `json:"args"`
	Codes []string `json:"codes,omitempty"`
}

// Objects are those of a kind, written as Kind.version.group, in the namespace of the case, or with
// a name that begins with the case's if they have none, that have the labels. With a pattern for
// names, what they begin with does not matter.
type Objects struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Labels string `json:"labels,omitempty"`
}

// A Patch is a JSON merge patch, or a JSON patch, of objects or their status.
type Patch struct {
	Objects `json:",inline"`

	Merge  json.RawMessage `json:"merge,omitempty"`
	JSON   json.RawMessage `json:"json,omitempty"`
	Status bool            `json:"status,omitempty"`
}

// An Await is a state of objects.
type Await struct {
	Objects `json:",inline"`

	// Count is how many there are; at least one if it is nil.
	Count *int `json:"count,omitempty"`
	// Conditions must be those of all.
	Conditions map[string]string `json:"conditions,omitempty"`
	// Mark is the reason that the marks of all have.
	Mark string `json:"mark,omitempty"`
	// Deleting is true if all are being deleted.
	Deleting bool `json:"deleting,omitempty"`
	// Has is a text in the JSON of all.
	Has string `json:"has,omitempty"`
}

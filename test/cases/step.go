package cases

import (
	"encoding/json"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// A Step is one thing that somebody does. Exactly one of its fields is set.
type Step struct {
	// Apply applies a file of the case.
	Apply string `json:"apply,omitempty"`
	// Patch patches each of some objects.
	Patch *Patch `json:"patch,omitempty"`
	// Delete deletes each of some objects, and does not wait until it is gone.
	Delete *Deletion `json:"delete,omitempty"`
	// Refused tries to delete each of some objects, which must be refused.
	Refused *Objects `json:"refused,omitempty"`
	// Await waits for the state of some objects.
	Await *Await `json:"await,omitempty"`
	// Revise gives the case's Composition so many new revisions with the same content.
	Revise int `json:"revise,omitempty"`
	// Fault makes the cloud fail calls for the MRs whose names begin with the case's, a dash and By; all
	// of them if Times is 0. Recover ends all of the case.
	Fault   *api.Fault `json:"fault,omitempty"`
	Recover bool       `json:"recover,omitempty"`
	// Failed waits until the cloud has failed so many reads for each restored MR.
	Failed int `json:"failed,omitempty"`
	// Lose deletes an external resource, written as its kind and ID, in the cloud.
	Lose string `json:"lose,omitempty"`
	// Settle makes the cloud answer what a fault has stalled, and delete what lingers.
	Settle bool `json:"settle,omitempty"`
	// Follow gives XRs and claims a Composition.
	Follow *Follow `json:"follow,omitempty"`
	// Stop and Start name a component of the stack.
	Stop  string `json:"stop,omitempty"`
	Start string `json:"start,omitempty"`
	// Details adds a key that no provider can publish again to all connection Secrets.
	Details bool `json:"details,omitempty"`
	// Own makes an object an owner of others.
	Own *Own `json:"own,omitempty"`
	// BackUp makes another backup.
	BackUp *BackUp `json:"backUp,omitempty"`
	// Release runs the plugin's command release with these arguments.
	Release []string `json:"release,omitempty"`
	// RestoreAgain restores once more, and waits until that has ended.
	RestoreAgain *Again `json:"restoreAgain,omitempty"`
	// AwaitReady waits until all is complete and Ready, and nothing held.
	AwaitReady bool `json:"awaitReady,omitempty"`
}

// An Own names the owner of objects by its kind, theirs if it is empty, and its name.
type Own struct {
	Objects `json:",inline"`

	Owner      string `json:"owner,omitempty"`
	By         string `json:"by"`
	Controller bool   `json:"controller,omitempty"`
}

// An Again restores a backup, that of the case if it is empty, with arguments of velero. Phase and
// Codes are as in an Expectation.
type Again struct {
	Of    string   `json:"of,omitempty"`
	Args  []string `json:"args,omitempty"`
	Phase string   `json:"phase,omitempty"`
	Codes []string `json:"codes,omitempty"`
}

// A BackUp is a backup by velero's arguments, its phase, Completed if empty, and the reasons that its
// log names.
type BackUp struct {
	Name  string   `json:"name"`
	Args  []string `json:"args"`
	Phase string   `json:"phase,omitempty"`
	Codes []string `json:"codes,omitempty"`
}

// Objects are those of a kind, written as Kind.version.group, in the namespace of the case, or with
// a name that begins with the case's if they have none, that have the labels. With a pattern for
// names, what they begin with does not matter.
type Objects struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Labels    string `json:"labels,omitempty"`
}

// A Deletion is of objects, and first of what they own if it is in the foreground.
type Deletion struct {
	Objects `json:",inline"`

	Foreground bool `json:"foreground,omitempty"`
}

// A Follow is of objects and the name of a Composition, with its newest revision or without.
type Follow struct {
	Objects `json:",inline"`

	Composition string `json:"composition"`
	Revision    bool   `json:"revision,omitempty"`
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
	// Any means that one of them is enough.
	Any bool `json:"any,omitempty"`
	// Has is a text in the JSON of all, and Lacks one in that of none.
	Has   string `json:"has,omitempty"`
	Lacks string `json:"lacks,omitempty"`
}

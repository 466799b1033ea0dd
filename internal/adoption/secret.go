package adoption

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// takeSecret plans to make u the controller of the Secret that it publishes its connection details in, and tells whether that is to do. Crossplane
// takes control of one without a controller only if what it publishes differs (crossplane internal/controller/apiextensions/composite/api.go,
// PublishConnection), and a claim refuses to read one that its XR does not control. One that was live before the restore can be like that.
func (t *tree) takeSecret(u *unstructured.Unstructured) bool {
	s := t.w.looseSecret(u)
	if s == nil {
		return false
	}
	t.plan.Change = takeControl(u, s)

	return true
}

// looseSecret returns the Secret that u publishes its connection details in, if nothing controls that; else nil.
func (w *World) looseSecret(u *unstructured.Unstructured) *unstructured.Unstructured {
	r, ok := xp.SecretRef(u)
	if !ok {
		return nil
	}
	s := w.Get(r)
	if s == nil || !xp.IsConnectionSecret(s) || s.GetDeletionTimestamp() != nil {
		return nil
	}
	if _, controlled := xp.Controller(s); controlled {
		return nil
	}

	return s
}

// takeControl makes u the controller of s, under the name of who has written the data of s, if it is a Secret: whoever publishes it has made u its owner.
func takeControl(u, s *unstructured.Unstructured) Change {
	c := Change{Target: s, Patch: control(u, s), Step: "make " + xp.String(u) + " its controller again"}
	if !xp.IsConnectionSecret(s) {
		return c
	}
	if of := managersOf(entriesOf(s), managedPaths(s)); len(of) == 1 && writesAs(s, of[0], managedPaths(s)) {
		c.Manager, _ = of[0]["manager"].(string)
	}

	return c
}

package restoreitem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/gobwas/glob"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// A modifierRule has what matters here of a rule of Velero's resource modifiers (velero
// internal/resourcemodifiers, resource_modifiers.go).
type modifierRule struct {
	Conditions struct {
		GroupResource string `json:"groupResource"`
	} `json:"conditions"`
	Patches []struct {
		Operation string `json:"operation"`
		From      string `json:"from"`
		Path      string `json:"path"`
		Value     string `json:"value"`
	} `json:"patches"`
	MergePatches     []modifierPatch `json:"mergePatches"`
	StrategicPatches []modifierPatch `json:"strategicPatches"`
}

type modifierPatch struct {
	PatchData string `json:"patchData"`
}

// DefaultModifiers is the flag of the Velero server with the ConfigMap of resource modifiers for
// each Restore that names none (velero PR #10098, in no release yet).
const DefaultModifiers = "default-resource-modifier-configmap"

// checkModifiers fails if a resource modifier of the Restore or the server removes the item's hold.
// Velero applies modifiers after all actions, just before it creates the item. Without the hold
// Crossplane would compose, or a provider create, other resources before the rest is restored.
func (a *Adopt) checkModifiers(i *item) error {
	if !xp.HasAnnotation(i.Unstructured, hold.Annotation) {
		return nil
	}
	name, rules, err := a.modifiers(i.restore)
	if err != nil {
		return reason.ModifiersNotRead.Errorf("cannot find out whether the resource modifiers in the ConfigMap %s/%s leave the hold on %s: %w", i.restore.Namespace,
			name, xp.String(i.original), err)
	}
	for n, rule := range rules {
		if after, ok := rule.apply(i.Unstructured); ok && !isHeldAs(i.Unstructured, after) {
			return reason.ModifierRemovesHold.Errorf("cannot restore %s: rule %d in the ConfigMap %s/%s of resource modifiers removes or changes the annotations %s "+
				"and %s of its hold. Change the rule to name only the annotations that it needs, and restore again",
				xp.String(i.original), n+1, i.restore.Namespace, name, hold.Annotation, xp.AnnotationPaused)
		}
	}

	return nil
}

// isHeldAs reports whether two objects have the same annotations of a hold.
func isHeldAs(before, after *unstructured.Unstructured) bool {
	for _, name := range []string{hold.Annotation, xp.AnnotationPaused} {
		if xp.Annotation(before, name) != xp.Annotation(after, name) {
			return false
		}
	}

	return true
}

// modifiers returns the rules for the Restore and the name of their ConfigMap. It reads them once.
func (a *Adopt) modifiers(restore *velerov1.Restore) (name string, rules []modifierRule, err error) {
	a.modifying.Lock()
	defer a.modifying.Unlock()
	read := a.readModifiers
	if ref := restore.Spec.ResourceModifier; ref != nil {
		name = ref.Name
	} else if a.Modifiers != nil {
		name, read = a.Modifiers(), a.defaultModifiers
	}
	if name == "" || a.rules != nil {
		return name, a.rules, nil
	}
	if rules, err = read(restore, name); err == nil {
		a.rules = append([]modifierRule{}, rules...)
	}

	return name, rules, err
}

func (a *Adopt) readModifiers(restore *velerov1.Restore, name string) (rules []modifierRule, err error) {
	data, err := a.cluster.ConfigMap(context.Background(), restore.Namespace, name)
	for _, text := range data {
		var all struct {
			Rules []modifierRule `json:"resourceModifierRules"`
		}
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			return nil, fmt.Errorf("cannot read them: %w: %w", errNotModifiers, err)
		}
		rules = append(rules, all.Rules...)
	}

	return rules, err
}

var errNotModifiers = errors.New("they are no resource modifiers")

// defaultModifiers returns the server's rules, none if the Restore skips them. Velero ignores rules
// that it can't read.
func (a *Adopt) defaultModifiers(restore *velerov1.Restore, name string) ([]modifierRule, error) {
	live, err := a.cluster.Restore(context.Background(), restore.Namespace, restore.Name)
	if err != nil {
		return nil, err
	}
	// The Velero API that this plugin is built with may lack the field.
	if skips, _, _ := unstructured.NestedBool(live.Object, "spec", "skipDefaultResourceModifier"); skips {
		return nil, nil
	}
	rules, err := a.readModifiers(restore, name)
	if apierrors.IsNotFound(err) || errors.Is(err, errNotModifiers) {
		return nil, nil
	}

	return rules, err
}

// apply returns the object after the rule. ok is false if the rule is for another kind or can't be
// applied. It ignores other conditions: a rule that would remove this hold removes the next one's.
func (r modifierRule) apply(u *unstructured.Unstructured) (after *unstructured.Unstructured, ok bool) {
	plural, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	of, err := glob.Compile(r.Conditions.GroupResource, '.')
	if err != nil || !of.Match(plural.GroupResource().String()) {
		return nil, false
	}
	b, err := u.MarshalJSON()
	if err != nil {
		return nil, false
	}
	switch {
	case len(r.Patches) > 0:
		b, err = r.applyPatches(b)
	default:
		// Velero has no merge strategy for custom resources.
		for _, p := range append(r.MergePatches, r.StrategicPatches...) {
			var patch []byte
			if patch, err = yaml.YAMLToJSON([]byte(p.PatchData)); err != nil {
				break
			}
			if b, err = jsonpatch.MergePatch(b, patch); err != nil {
				break
			}
		}
	}
	after = &unstructured.Unstructured{}
	if err != nil || after.UnmarshalJSON(b) != nil {
		return nil, false
	}

	return after, true
}

// applyPatches applies the JSON patches of a rule as one.
func (r modifierRule) applyPatches(object []byte) ([]byte, error) {
	var operations []map[string]any
	for _, p := range r.Patches {
		operation := map[string]any{"op": p.Operation, "path": p.Path}
		if p.From != "" {
			operation["from"] = p.From
		}
		// Valid JSON counts as JSON (velero internal/resourcemodifiers/json_patch.go).
		if operation["value"] = p.Value; json.Valid([]byte(p.Value)) && !strings.HasPrefix(p.Value, `"`) {
			operation["value"] = json.RawMessage(p.Value)
		}
		operations = append(operations, operation)
	}
	b, err := json.Marshal(operations)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller drops it.
	}
	patch, err := jsonpatch.DecodePatch(b)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller drops it.
	}
	after, err := patch.Apply(object)
	if errors.Is(err, jsonpatch.ErrTestFailed) {
		return object, nil
	}

	return after, err //nolint:wrapcheck // The caller drops it.
}

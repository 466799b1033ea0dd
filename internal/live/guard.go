package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/guard"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// guardKinds are the kinds of the guard's objects in the order of removal: bindings go first.
var guardKinds = []string{ //nolint:gochecknoglobals // It is a constant list.
	guard.KindMutatingBinding, guard.KindMutating, guard.KindValidatingBinding, guard.KindValidating,
}

// GuardPolicy returns a reference to the policy that every guard has.
func GuardPolicy() xp.Ref {
	return xp.Ref{APIVersion: guard.Group + "/v1", Kind: guard.KindValidating, Name: guard.Name}
}

// A GuardState is the guard as it is in the cluster.
type GuardState struct {
	guard.Guard

	// Up is set if the policy exists, and Made is when it was created.
	Up   bool
	Made time.Time
	// Objects are the guard's existing objects, by kind.
	Objects map[string]*unstructured.Unstructured
	// Changed are the kinds of the objects that differ from what was put up.
	Changed []string
}

// Guard returns the state of the guard. It fails if the API server does not serve the policy kinds,
// or if another object has the name of a guard's object.
func (c *Cluster) Guard(ctx context.Context) (GuardState, error) {
	objects := map[string]*unstructured.Unstructured{}
	for _, kind := range guardKinds {
		gvk, ok, err := c.Served(schema.GroupKind{Group: guard.Group, Kind: kind})
		if err != nil {
			return GuardState{}, err
		}
		if !ok && kind == guard.KindValidating {
			return GuardState{}, errNoPolicies
		}
		if !ok {
			continue
		}
		u, err := c.Get(ctx, xp.Ref{APIVersion: gvk.GroupVersion().String(), Kind: kind, Name: guard.Name})
		switch {
		case isUnserved(err):
			continue
		case err != nil:
			return GuardState{}, err
		case !guard.IsOwn(u):
			return GuardState{}, fmt.Errorf("cannot use %s %s: %w; rename or remove it", kind, guard.Name, guard.ErrForeign)
		}
		objects[kind] = u
	}
	policy := objects[guard.KindValidating]
	if policy == nil {
		return GuardState{Objects: objects}, nil
	}
	s := stateOf(policy)
	s.Objects = objects
	if s.Since == "" {
		s.Changed = []string{guard.KindValidating} // A user has changed it; the guard can still be put up again or taken down.
	} else {
		s.Changed = s.Differs(objects)
	}

	return s, nil
}

// GuardUp returns the guard as its policy describes it, or the zero value if it is not up. It needs
// only the right to get that.
func (c *Cluster) GuardUp(ctx context.Context) (GuardState, error) {
	policy, err := c.Get(ctx, GuardPolicy())
	if isUnserved(err) || err == nil && !guard.IsOwn(policy) {
		return GuardState{}, nil
	}
	if err != nil {
		return GuardState{}, err
	}

	return stateOf(policy), nil
}

func stateOf(policy *unstructured.Unstructured) GuardState {
	g, _ := guard.From(policy) // It is up, whatever its annotation says.

	return GuardState{Guard: g, Up: true, Made: policy.GetCreationTimestamp().Time}
}

// errNoPolicies is returned if the API server is too old.
var errNoPolicies = errors.New("cannot guard this cluster: its API server serves no ValidatingAdmissionPolicy in " + guard.Group +
	"/v1, as Kubernetes v1.30 and later do; suspend what applies claims and XRs instead (docs/gitops.md)")

// GuardObjects returns the objects of the guard in the versions that this API server serves. It
// fails if the guard needs a kind that is not served.
func (c *Cluster) GuardObjects(g guard.Guard) ([]*unstructured.Unstructured, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	gvk, ok, err := c.Served(schema.GroupKind{Group: guard.Group, Kind: guard.KindMutating})
	if err != nil {
		return nil, err
	}
	if g.Paused && !ok {
		return nil, errors.New("cannot let claims and XRs in paused: the API server serves no MutatingAdmissionPolicy, as Kubernetes v1.36 and later do, and v1.34 " +
			"and v1.35 with the feature gate MutatingAdmissionPolicy and its beta API; refuse them instead, without --paused")
	}

	return g.Objects(gvk.Version), nil
}

// PutGuard creates or updates the objects of the guard, and removes those that it no longer needs.
// It fails if another writer has changed one since s was read.
func (c *Cluster) PutGuard(ctx context.Context, s GuardState, objects []*unstructured.Unstructured) error {
	wanted := map[string]bool{}
	for _, u := range objects {
		wanted[u.GetKind()] = true
		if err := c.putGuardObject(ctx, s.Objects[u.GetKind()], u); err != nil {
			return err
		}
	}
	for _, kind := range guardKinds {
		if u := s.Objects[kind]; u != nil && !wanted[kind] {
			if err := c.deleteGuardObject(ctx, u); err != nil {
				return err
			}
		}
	}

	return nil
}

func (c *Cluster) putGuardObject(ctx context.Context, live, u *unstructured.Unstructured) error {
	gvr, _, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return err
	}
	if live == nil {
		_, err = c.client.Resource(gvr).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
	} else {
		u = u.DeepCopy()
		u.SetResourceVersion(live.GetResourceVersion())
		_, err = c.client.Resource(gvr).Update(ctx, u, metav1.UpdateOptions{FieldManager: FieldManager})
	}
	if err != nil {
		return fmt.Errorf("cannot put up the guard, %s: %w", xp.String(u), err)
	}

	return nil
}

// RemoveGuard deletes the existing objects of the guard.
func (c *Cluster) RemoveGuard(ctx context.Context, s GuardState) error {
	for _, kind := range guardKinds {
		if u := s.Objects[kind]; u != nil {
			if err := c.deleteGuardObject(ctx, u); err != nil {
				return err
			}
		}
	}

	return nil
}

func (c *Cluster) deleteGuardObject(ctx context.Context, u *unstructured.Unstructured) error {
	gvr, _, err := c.Resource(u.GroupVersionKind())
	if err != nil {
		return err
	}
	uid := u.GetUID()
	err = c.client.Resource(gvr).Delete(ctx, u.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot take down the guard, %s: %w", xp.String(u), err)
	}

	return nil
}

// A Probe is what the guard does with an object that is created now.
type Probe string

// Probes.
const (
	Admitted Probe = "admitted"
	Refused  Probe = "refused"
	Paused   Probe = "paused"
)

// Probe returns what the guard does now. An API server takes about a second to enforce a policy,
// and there is no other way to know when it does. Probe creates, as a dry run, an Event that the
// policies match.
func (c *Cluster) Probe(ctx context.Context) (Probe, error) {
	event := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Event",
		"involvedObject": map[string]any{"namespace": metav1.NamespaceDefault},
	}}
	event.SetName(guard.Name)
	event.SetNamespace(metav1.NamespaceDefault)
	events := c.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "events"}).Namespace(metav1.NamespaceDefault)
	got, err := events.Create(ctx, event, metav1.CreateOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), guard.Name):
		return Refused, nil
	case err != nil:
		return "", fmt.Errorf("cannot find out whether the guard is in force: %w", err)
	case xp.IsPaused(got):
		return Paused, nil
	default:
		return Admitted, nil
	}
}

// NeitherClaimsNorXRs returns the given kinds that are served and are neither claims nor XRs. A
// given *.GROUP is returned if any kind of the group is neither.
func (c *Cluster) NeitherClaimsNorXRs(kinds []schema.GroupResource) ([]schema.GroupResource, error) {
	groups, err := c.groupList()
	if err != nil {
		return nil, err
	}
	var others []schema.GroupResource
	for _, kind := range kinds {
		for _, version := range versionsOf(groups, kind.Group) {
			list, err := c.kindsOf(schema.GroupVersion{Group: kind.Group, Version: version})
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return isOther(r, kind.Resource) }) {
				others = append(others, kind)

				break
			}
		}
	}

	return others, nil
}

// isOther reports whether a resource has the name, or any if that is *, and is neither a kind of
// claims nor of XRs.
func isOther(r metav1.APIResource, name string) bool {
	return !strings.Contains(r.Name, "/") && (name == "*" || name == r.Name) &&
		!slices.Contains(r.Categories, xp.CategoryClaim) && !slices.Contains(r.Categories, xp.CategoryComposite)
}

// Definitions returns the XRDs of the cluster, none if Crossplane is not installed yet.
func (c *Cluster) Definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	xrds, err := c.List(ctx, xp.KindDefinition, "", metav1.ListOptions{})
	if isUnserved(err) {
		return nil, nil
	}

	return xrds, err
}

// Accounts returns the users as which Velero and Crossplane act, and the names of those of the two
// whose user is a guess because no Deployment has it. Only Deployments in the two namespaces count:
// any user could label a Deployment as Crossplane's.
func (c *Cluster) Accounts(ctx context.Context, velero, crossplane string) (users, guessed []string) {
	of := func(program, namespace string, is func(*unstructured.Unstructured) bool, usual ...string) {
		found, _ := c.List(ctx, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, namespace, metav1.ListOptions{})
		var accounts []string
		for _, u := range found {
			if account, _, _ := unstructured.NestedString(u.Object, "spec", "template", "spec", "serviceAccountName"); is(u) && account != "" {
				accounts = append(accounts, account)
			}
		}
		if len(accounts) == 0 {
			accounts, guessed = usual, append(guessed, program)
		}
		for _, account := range accounts {
			users = append(users, "system:serviceaccount:"+namespace+":"+account)
		}
	}
	of("Velero", velero, func(u *unstructured.Unstructured) bool {
		return u.GetName() == "velero" || u.GetLabels()["component"] == "velero" || u.GetLabels()["app.kubernetes.io/name"] == "velero"
	}, "velero", "velero-server") // The names that "velero install" and Velero's chart use.
	key, value, _ := strings.Cut(adoption.LabelCrossplane, "=")
	of("Crossplane", crossplane, func(u *unstructured.Unstructured) bool {
		return u.GetLabels()[key] == value && !strings.HasSuffix(u.GetName(), "-rbac-manager")
	}, "crossplane")
	slices.Sort(users)

	return slices.Compact(users), guessed
}

// User returns the client's user name, "" if the API server does not return it.
func (c *Cluster) User(ctx context.Context) string {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	got, err := c.client.Resource(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}).
		Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(got.Object, "status", "userInfo", "username")

	return name
}

// PausedByGuard returns the claims and XRs that still have the mark of the guard's pause.
func (c *Cluster) PausedByGuard(ctx context.Context) ([]*unstructured.Unstructured, error) {
	roots, err := c.Roots(ctx, Places{}, "")
	if err != nil {
		return nil, err
	}
	for gvk, err := range roots.Unread {
		return nil, fmt.Errorf("cannot find out which %s are paused: %w", gvk.Kind, err)
	}

	return slices.DeleteFunc(roots.Objects, func(u *unstructured.Unstructured) bool {
		return xp.Annotation(u, guard.AnnotationPaused) == ""
	}), nil
}

// UnpauseAfterGuard removes the guard's pause from an object.
func (c *Cluster) UnpauseAfterGuard(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := c.Patch(ctx, u, map[string]any{"metadata": map[string]any{
		"resourceVersion": u.GetResourceVersion(), "annotations": map[string]any{guard.AnnotationPaused: nil, xp.AnnotationPaused: nil},
	}})

	return err
}

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

// guardKinds are the kinds of the guard's objects, in the order in which they are taken away: what
// makes a policy count comes before the policy.
var guardKinds = []string{ //nolint:gochecknoglobals // It is a constant list.
	guard.KindMutatingBinding, guard.KindMutating, guard.KindValidatingBinding, guard.KindValidating,
}

// GuardPolicy names the object of which the guard consists, whatever else it has.
func GuardPolicy() xp.Ref {
	return xp.Ref{APIVersion: guard.Group + "/v1", Kind: guard.KindValidating, Name: guard.Name}
}

// A GuardState is what of the guard is there.
type GuardState struct {
	guard.Guard

	// Up says that the policy is there, and Made is when it was made.
	Up   bool
	Made time.Time
	// Objects are those that are there, by kind.
	Objects map[string]*unstructured.Unstructured
	// Changed are the kinds of the objects that are not as they were put up.
	Changed []string
}

// Guard returns what of the guard is there. It fails if the API server has no such policies, and if
// an object that is called like the guard's is not its own.
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
		s.Changed = []string{guard.KindValidating} // Somebody has changed it, and it can still be put up again or taken down.
	} else {
		s.Changed = s.Differs(objects)
	}

	return s, nil
}

// GuardUp returns what the guard was asked for if it is up. It takes the right to get its policy,
// and not those that it takes to change it.
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
	g, _ := guard.From(policy) // It is up, whatever somebody has written there.

	return GuardState{Guard: g, Up: true, Made: policy.GetCreationTimestamp().Time}
}

// errNoPolicies is that the API server is too old.
var errNoPolicies = errors.New("cannot guard this cluster: its API server serves no ValidatingAdmissionPolicy in " + guard.Group +
	"/v1, as Kubernetes v1.30 and later do; suspend what applies claims and XRs instead (docs/gitops.md)")

// GuardObjects returns the objects of the guard as this API server takes them. It fails if the
// guard needs what is not served here.
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

// PutGuard makes the guard be as it is asked for, over the one that is there, which nobody may have
// changed since it was read.
func (c *Cluster) PutGuard(ctx context.Context, s GuardState, objects []*unstructured.Unstructured) error {
	wanted := map[string]bool{}
	for _, u := range objects {
		wanted[u.GetKind()] = true
		if err := c.putGuard(ctx, s.Objects[u.GetKind()], u); err != nil {
			return err
		}
	}
	for _, kind := range guardKinds {
		if u := s.Objects[kind]; u != nil && !wanted[kind] {
			if err := c.dropGuard(ctx, u); err != nil {
				return err
			}
		}
	}

	return nil
}

func (c *Cluster) putGuard(ctx context.Context, live, u *unstructured.Unstructured) error {
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

// RemoveGuard takes away what of the guard is there.
func (c *Cluster) RemoveGuard(ctx context.Context, s GuardState) error {
	for _, kind := range guardKinds {
		if u := s.Objects[kind]; u != nil {
			if err := c.dropGuard(ctx, u); err != nil {
				return err
			}
		}
	}

	return nil
}

func (c *Cluster) dropGuard(ctx context.Context, u *unstructured.Unstructured) error {
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

// A Probe says what the guard does with what is created now.
type Probe string

// Probes.
const (
	Admitted Probe = "admitted"
	Refused  Probe = "refused"
	Paused   Probe = "paused"
)

// Probe finds out what the guard does now. An API server needs about a second until it enforces a
// policy, and there is no other way to know when it does. It creates, for the API server to say
// what would come of it and no more, an Event that the guard knows by its name.
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

// NeitherClaimsNorXRs returns those of the kinds that are served and are something else, with
// *.GROUP for a group that has something else.
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

// isOther reports whether a resource is of a name, if that is not *, and is neither one of claims
// nor one of XRs.
func isOther(r metav1.APIResource, name string) bool {
	return !strings.Contains(r.Name, "/") && (name == "*" || name == r.Name) &&
		!slices.Contains(r.Categories, xp.CategoryClaim) && !slices.Contains(r.Categories, xp.CategoryComposite)
}

// Definitions returns the XRDs of the cluster, none if it has no Crossplane yet.
func (c *Cluster) Definitions(ctx context.Context) ([]*unstructured.Unstructured, error) {
	xrds, err := c.List(ctx, xp.KindDefinition, "", metav1.ListOptions{})
	if isUnserved(err) {
		return nil, nil
	}

	return xrds, err
}

// Accounts returns the users that Velero and Crossplane are, and of which of the two that had to be
// guessed since no Deployment says it. Only Deployments in the two namespaces count: anybody could
// say of theirs that it is Crossplane.
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
	}, "velero", "velero-server") // As "velero install" and as its chart call it.
	key, value, _ := strings.Cut(adoption.LabelCrossplane, "=")
	of("Crossplane", crossplane, func(u *unstructured.Unstructured) bool {
		return u.GetLabels()[key] == value && !strings.HasSuffix(u.GetName(), "-rbac-manager")
	}, "crossplane")
	slices.Sort(users)

	return slices.Compact(users), guessed
}

// User returns who the client is to the API server; "" if it does not say.
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

// PausedByGuard returns the claims and XRs that the guard has let in paused, and that still are.
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

// UnpauseAfterGuard takes off the pause of what the guard has let in.
func (c *Cluster) UnpauseAfterGuard(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := c.Patch(ctx, u, map[string]any{"metadata": map[string]any{
		"resourceVersion": u.GetResourceVersion(), "annotations": map[string]any{guard.AnnotationPaused: nil, xp.AnnotationPaused: nil},
	}})

	return err
}

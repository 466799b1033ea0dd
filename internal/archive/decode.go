package archive

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// GroupCRD is the group of CRDs.
const GroupCRD = "apiextensions.k8s.io"

// crossplaneDomain is part of every label, annotation and finalizer that Crossplane writes.
var crossplaneDomain = []byte("crossplane.io") //nolint:gochecknoglobals // It is a constant.

// decode packs the parts of an item that are kept. It fails if the object does not match its path.
func decode(p *pack.Packer, i xp.Item, b []byte) (pack.Object, error) {
	shape := shapeOf(i, b)
	o, ok := p.JSON(b, shape)
	if !ok {
		// Unusual JSON is decoded as Velero decodes it.
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(b); err != nil {
			return pack.Object{}, errNoObject // The decoder's error could quote a secret.
		}
		shape.Cut(u.Object)
		o = p.Pack(u.Object)
	}

	return o, check(i, o)
}

var errNoObject = errors.New("cannot decode it: it is not a Kubernetes object in JSON")

// check compares an object with its path. Velero looks for an item by its path when an action
// requests it, and creates it by its content.
func check(i xp.Item, o pack.Object) error {
	r := Item{Item: named(i, o), object: o}.Ref()
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || r.Kind == "" || r.APIVersion == "" {
		return errNoObject
	}
	if !o.IsObject("metadata") {
		return errors.New("it has no metadata")
	}
	if gv.Group != i.Group {
		return fmt.Errorf("it is of the group %q, and its path is of another group", gv.Group)
	}
	if r.Name != i.Name || r.Namespace != i.Namespace {
		return fmt.Errorf("it is %s, and its path has another name; find out who wrote it", r)
	}

	return nil
}

// named returns an item with the name and namespace strings of its object, so that those of the
// path need no memory.
func named(i xp.Item, o pack.Object) xp.Item {
	i.Name, _ = o.Field("metadata", "name").(string)
	i.Namespace, _ = o.Field("metadata", "namespace").(string)

	return i
}

// These are the parts that are kept of an item. A Secret's data is also in the last-applied
// annotation. The schemas of CRDs are long. Of an object that is no custom resource and does not
// mention Crossplane only the metadata is used; bindings are kept, as they state rights.
var (
	shapeCustom = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Without: []string{"data", "stringData"},
		Fields:  map[string]*pack.Shape{"metadata": {Without: []string{"managedFields"}, Fields: shapeAnnotations}},
	}
	// The managedFields of a ServiceAccount show which of its settings Crossplane creates again.
	shapeServiceAccount = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Fields: map[string]*pack.Shape{"metadata": {Fields: shapeAnnotations}},
	}
	shapeMeta = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only: []string{"apiVersion", "kind", "metadata"}, Fields: map[string]*pack.Shape{"metadata": shapeMetadata},
	}
	shapeCRD = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only: append([]string{"spec"}, shapeMeta.Only...),
		Fields: map[string]*pack.Shape{"metadata": shapeMetadata, "spec": {
			Only: []string{"group", "scope", "names", "versions"},
			Fields: map[string]*pack.Shape{
				"names": {Only: []string{"kind", "plural", "categories"}}, "versions": {Only: []string{"name", "served"}},
			},
		}},
	}
	shapeMetadata = &pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		Only:   []string{"name", "namespace", "uid", "labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp"},
		Fields: shapeAnnotations,
	}
	shapeAnnotations = map[string]*pack.Shape{ //nolint:gochecknoglobals // It is a constant.
		"annotations": {Without: []string{"kubectl.kubernetes.io/last-applied-configuration"}},
	}
)

func shapeOf(i xp.Item, b []byte) *pack.Shape {
	switch {
	case i.Group == GroupCRD:
		return shapeCRD
	case i.GroupResource.String() == "serviceaccounts" && bytes.Contains(b, crossplaneDomain):
		return shapeServiceAccount
	case xp.IsCustomGroup(i.Group) || isBinding(i.GroupResource) || bytes.Contains(b, crossplaneDomain):
		return shapeCustom
	default:
		return shapeMeta
	}
}

// isBinding reports whether a resource is RoleBindings or ClusterRoleBindings.
func isBinding(gr schema.GroupResource) bool {
	return gr.Group == xp.KindRoleBinding.Group && strings.HasSuffix(gr.Resource, "rolebindings")
}

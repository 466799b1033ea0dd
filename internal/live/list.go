package live

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

var kindSecret = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

const (
	pageSize = 250
	// maxRetries is how often a list is retried when the API server suggests it, as in client-go.
	maxRetries = 10
	// acceptMetadata asks for objects without their content, such as the data of Secrets.
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// A collection is a kind and the namespace in which it is listed; "" is all namespaces.
type collection struct {
	schema.GroupVersionKind

	namespace string
}

func collectionOf(r xp.Ref) collection { return collection{r.GroupVersionKind(), r.Namespace} }

// maxNamespaces is in how many namespaces a kind is listed separately. An XR's composed resources
// are in its own namespace, and a tenant who can write an XR there can name any kind. Listing only
// that namespace reads no objects of other tenants. With more namespaces, more than one tenant
// asks, and the kind is listed in all namespaces.
const maxNamespaces = 4

// isListed reports whether a collection is among those that were listed, or part of one.
func isListed(collections map[collection]bool, c collection) bool {
	return collections[collection{GroupVersionKind: c.GroupVersionKind}] || collections[c]
}

// due returns the collections to list for what is needed and not found yet. A collection is first
// listed with the selector's label, and then whole.
func (o *observer) due(needs []xp.Ref) (labelled, whole []collection) {
	seen := map[collection]bool{}
	for _, r := range needs {
		at := collectionOf(r)
		if seen[at] || o.snapshot.Has(r) || isListed(o.whole, at) {
			continue
		}
		seen[at] = true
		if isListed(o.labelled, at) {
			whole = append(whole, at)
		} else {
			labelled = append(labelled, at)
		}
	}

	return widened(labelled, func(gvk schema.GroupVersionKind) bool { return o.vital[gvk] && gvk != kindSecret }),
		widened(whole, func(schema.GroupVersionKind) bool { return false })
}

// widened returns the collections to list. A kind is listed in all namespaces if everywhere returns
// true for it, if an object is in no namespace, or if there are many namespaces.
func widened(all []collection, everywhere func(schema.GroupVersionKind) bool) []collection {
	namespaces := map[schema.GroupVersionKind]sets.Set[string]{}
	for _, c := range all {
		if namespaces[c.GroupVersionKind] == nil {
			namespaces[c.GroupVersionKind] = sets.New[string]()
		}
		namespaces[c.GroupVersionKind].Insert(c.namespace)
	}
	var wide []collection
	listed := map[collection]bool{}
	for _, c := range all {
		if in := namespaces[c.GroupVersionKind]; everywhere(c.GroupVersionKind) || in.Has("") || in.Len() > maxNamespaces {
			c.namespace = ""
		}
		if !listed[c] {
			wide = append(wide, c)
		}
		listed[c] = true
	}

	return wide
}

// List returns the objects of a kind that the options select. It lists one namespace, or all if
// namespace is "" or the kind is cluster-scoped. Errors are as for Get.
func (c *Cluster) List(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := c.Each(ctx, gvk, namespace, options, func(u *unstructured.Unstructured) { all = append(all, u) })

	return all, err
}

// Each calls do with each object of a kind that the options select, in the namespace, or in all if
// namespace is "". It reads one page at a time, so objects that do does not keep take no memory.
// Secrets that no selector limits have only their metadata. Errors are as for Get.
func (c *Cluster) Each(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string, options metav1.ListOptions, do func(*unstructured.Unstructured),
) error {
	in := collection{gvk, namespace}
	if gvk == kindSecret && options.LabelSelector == "" && options.FieldSelector == "" {
		return c.eachMetadata(ctx, in, "", do)
	}
	_, err := c.eachOf(ctx, c.pages, in, options, c.retryForever(ctx), do, nil)

	return err
}

// eachMetadata calls do with the metadata of each object that has the label, or of all if label is
// "". It removes the copy of a Secret's data that kubectl apply keeps in an annotation.
func (c *Cluster) eachMetadata(ctx context.Context, in collection, label string, do func(*unstructured.Unstructured)) error {
	_, err := c.eachOf(ctx, c.metadataPages, in, metav1.ListOptions{LabelSelector: label}, c.retryForever(ctx), func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		u.SetGroupVersionKind(in.GroupVersionKind)
		do(u)
	}, nil)

	return err
}

// eachOf calls do with each object of a collection that the options select. It reads the pages with
// try as the retry function, and returns the resourceVersion of the list. After each page it calls
// onPage with that version, if onPage is not nil.
func (c *Cluster) eachOf(
	ctx context.Context, pages pager, in collection, options metav1.ListOptions, try func(func() error) error,
	do func(*unstructured.Unstructured), onPage func(version string),
) (version string, err error) {
	gvr, namespaced, err := c.Resource(in.GroupVersionKind)
	if err != nil {
		return "", err
	}
	if !namespaced {
		in.namespace = ""
	}
	options.Limit = pageSize
	for {
		var p page
		err := try(func() (err error) {
			p, err = pages(ctx, gvr, in.namespace, options)

			return err
		})
		if err != nil {
			return "", fmt.Errorf("cannot list %s: %w", gvr.GroupResource(), err)
		}
		for _, u := range p.objects {
			do(ofKind(u, in.GroupVersionKind))
		}
		version = cmp.Or(version, p.version) // All pages have the version of the first.
		if onPage != nil {
			onPage(version)
		}
		if p.next == "" {
			return version, nil
		}
		options.Continue = p.next
	}
}

// ofKind sets the kind of a list's item, which some servers leave out.
func ofKind(u *unstructured.Unstructured, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	if u.GetKind() == "" {
		u.SetGroupVersionKind(gvk)
	}

	return u
}

// A page is a part of a list. All pages of a list have the same version, and the last has no next.
type page struct {
	objects       []*unstructured.Unstructured
	version, next string
}

// A pager returns the page of a resource that the options select, in the namespace, or in all if
// namespace is "". Errors are those of the API server.
type pager func(ctx context.Context, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (page, error)

// pagesOf returns a pager that uses the dynamic client.
func pagesOf(client dynamic.Interface) pager {
	return func(ctx context.Context, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (page, error) {
		list, err := client.Resource(gvr).Namespace(namespace).List(ctx, options)
		if err != nil {
			return page{}, err //nolint:wrapcheck // The caller adds what was listed.
		}
		p := page{objects: make([]*unstructured.Unstructured, len(list.Items)), version: list.GetResourceVersion(), next: list.GetContinue()}
		for i := range list.Items {
			p.objects[i] = &list.Items[i]
		}

		return p, nil
	}
}

// pagesFrom returns a pager that decodes each page in one pass. The dynamic client decodes each
// object several times, which took a third of the CPU time of a poll with thousands of objects.
func pagesFrom(config *rest.Config, accept string) (pager, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, metainternalversionscheme.Codecs.WithoutConversion() // For errors.
	config.AcceptContentTypes = accept
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the API server's lists: %w", err)
	}

	return func(ctx context.Context, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (page, error) {
		path := []string{"/apis", gvr.Group, gvr.Version}
		if gvr.Group == "" {
			path = []string{"/api", gvr.Version}
		}
		for retries := 0; ; retries++ {
			answer := client.Get().AbsPath(path...).NamespaceIfScoped(namespace, namespace != "").Resource(gvr.Resource).MaxRetries(0).
				SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion).Do(ctx)
			err := answer.Error() // The error of Raw has fewer details.
			if err == nil {
				b, _ := answer.Raw()

				return decodePage(b)
			}
			delay, suggested := apierrors.SuggestsClientDelay(err)
			// The API server suggests 30 s for a failed conversion, and client-go would wait ten
			// times.
			if !suggested || retries == maxRetries || xp.IsConversion(err) {
				return page{}, err //nolint:wrapcheck // The caller adds what was listed.
			}
			if err := sleep(ctx, time.Duration(delay)*time.Second); err != nil {
				return page{}, err
			}
		}
	}, nil
}

// decodePage decodes a list in the API server's JSON. Any other document is an error, not an empty
// list.
func decodePage(b []byte) (page, error) {
	list := struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`

		Items []map[string]any `json:"items"`
	}{}
	if err := utiljson.Unmarshal(b, &list); err != nil {
		return page{}, fmt.Errorf("cannot decode the list: %w", err)
	}
	if !strings.HasSuffix(list.Kind, "List") {
		return page{}, fmt.Errorf("cannot decode the list: the answer's kind is %q", list.Kind)
	}
	p := page{objects: make([]*unstructured.Unstructured, 0, len(list.Items)), version: list.ResourceVersion, next: list.Continue}
	for _, item := range list.Items {
		p.objects = append(p.objects, &unstructured.Unstructured{Object: item})
	}

	return p, nil
}

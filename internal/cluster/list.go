package cluster

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// KindSecret is the kind of Secrets, of which lists read only the metadata if they can.
var KindSecret = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

const (
	pageSize = 250
	// maxRetries is how often a list is retried when the API server suggests it, as in client-go.
	maxRetries = 10
	// acceptMetadata asks for objects without their content, such as the data of Secrets.
	acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// A Collection is a kind and the namespace in which it is listed; "" is all namespaces.
type Collection struct {
	schema.GroupVersionKind

	Namespace string
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
	in := Collection{gvk, namespace}
	if gvk == KindSecret && options.LabelSelector == "" && options.FieldSelector == "" {
		return c.EachMetadata(ctx, in, "", do)
	}
	_, err := c.eachOf(ctx, c.pages, in, options, c.RetryForever(ctx), do, nil)

	return err
}

// EachMetadata calls do with the metadata of each object that has the label, or of all if label is
// "". It removes the copy of a Secret's data that kubectl apply keeps in an annotation.
func (c *Cluster) EachMetadata(ctx context.Context, in Collection, label string, do func(*unstructured.Unstructured)) error {
	_, err := c.eachOf(ctx, c.metadataPages, in, metav1.ListOptions{LabelSelector: label}, c.RetryForever(ctx), func(u *unstructured.Unstructured) {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
		u.SetGroupVersionKind(in.GroupVersionKind)
		do(u)
	}, nil)

	return err
}

// EachPaged is Each for a caller that watches the collection from this list on, and so needs the
// Secrets that options select whole. It reads the pages with try as the retry function, RetryForever
// or WithFewRetries, and returns the resourceVersion of the list. After each page it calls onPage
// with that version, if onPage is not nil.
func (c *Cluster) EachPaged(
	ctx context.Context, in Collection, options metav1.ListOptions, try func(func() error) error, do func(*unstructured.Unstructured), onPage func(version string),
) (version string, err error) {
	return c.eachOf(ctx, c.pages, in, options, try, do, onPage)
}

// Watch watches what the options select in a collection, from their resourceVersion on. The error is
// that of the API server.
func (c *Cluster) Watch(ctx context.Context, in Collection, options metav1.ListOptions) (watch.Interface, error) {
	objects, err := c.objects(in.GroupVersionKind, in.Namespace)
	if err != nil {
		return nil, err
	}

	return objects.Watch(ctx, options) //nolint:wrapcheck // The error is not returned to users.
}

// eachOf calls do with each object of a collection that the options select. It reads the pages with
// try as the retry function, and returns the resourceVersion of the list. After each page it calls
// onPage with that version, if onPage is not nil.
func (c *Cluster) eachOf(
	ctx context.Context, pages pager, in Collection, options metav1.ListOptions, try func(func() error) error,
	do func(*unstructured.Unstructured), onPage func(version string),
) (version string, err error) {
	gvr, namespaced, err := c.Resource(in.GroupVersionKind)
	if err != nil {
		return "", err
	}
	if !namespaced {
		in.Namespace = ""
	}
	options.Limit = pageSize
	for {
		var p page
		err := try(func() (err error) {
			p, err = pages(ctx, gvr, in.Namespace, options)

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
			select {
			case <-ctx.Done():
				return page{}, ctx.Err()
			case <-time.After(time.Duration(delay) * time.Second):
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

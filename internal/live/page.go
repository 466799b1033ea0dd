package live

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

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
func pagesFrom(config *rest.Config) (pager, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, metainternalversionscheme.Codecs.WithoutConversion() // For errors.
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

// maxRetries is how often a list is retried when the API server suggests it, as in client-go.
const maxRetries = 10

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

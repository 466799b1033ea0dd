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

// A page is a part of a list: all pages of one are as of the same version, and the last has no
// next.
type page struct {
	objects       []*unstructured.Unstructured
	version, next string
}

// A pager returns the page that the options ask for of a resource, in the namespace or, if that is
// "", in all of them. Errors are those of the API server.
type pager func(ctx context.Context, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (page, error)

// pagesOf returns pages as the dynamic client decodes them.
func pagesOf(client dynamic.Interface) pager {
	return func(ctx context.Context, gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions) (page, error) {
		list, err := client.Resource(gvr).Namespace(namespace).List(ctx, options)
		if err != nil {
			return page{}, err //nolint:wrapcheck // Whoever asks for a page names what it lists.
		}
		p := page{objects: make([]*unstructured.Unstructured, len(list.Items)), version: list.GetResourceVersion(), next: list.GetContinue()}
		for i := range list.Items {
			p.objects[i] = &list.Items[i]
		}

		return p, nil
	}
}

// pagesFrom returns pages that are decoded in one go. The dynamic client goes through each object
// several times, which was a third of the processor time of a poll of thousands.
func pagesFrom(config *rest.Config) (pager, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{}, metainternalversionscheme.Codecs.WithoutConversion() // It decodes errors.
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
			err := answer.Error() // Raw says less of it.
			if err == nil {
				b, _ := answer.Raw()

				return decodePage(b)
			}
			delay, suggested := apierrors.SuggestsClientDelay(err)
			// Of a kind that can't be converted it suggests 30 s, and the client would wait for
			// that ten times.
			if !suggested || retries == mostRetries || xp.IsConversion(err) {
				return page{}, err //nolint:wrapcheck // Whoever asks for a page names what it lists.
			}
			if err := sleep(ctx, time.Duration(delay)*time.Second); err != nil {
				return page{}, err
			}
		}
	}, nil
}

// mostRetries is how often a list is asked for again when the API server suggests that, as
// client-go does by itself.
const mostRetries = 10

// decodePage reads a list as an API server encodes it. It fails for anything else: that is no empty
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

package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest/apiserver"
)

// Some servers leave out the kind of a list's items; each page gets it.
func TestListReadsEveryPage(t *testing.T) {
	s := apiserver.NewServer()
	names := []string{"a", "b", "c"}
	s.PrependReactor("list", "buckets", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetNamespace() != "" {
			t.Error("a cluster-scoped kind must be listed without the namespace")
		}
		list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": names[0]}}}}}
		list.SetGroupVersionKind(schema.FromAPIVersionAndKind(xptest.ManagedVersion, xptest.ManagedKind+"List"))
		if names = names[1:]; len(names) > 0 {
			list.SetContinue("more")
		}

		return true, list, nil
	})
	list, err := clusterOf(s).List(t.Context(), xptest.MR("b").GroupVersionKind(), "team-a", metav1.ListOptions{})
	xptest.Must(t, err)
	xptest.Same(t, []string{"Bucket a", "Bucket b", "Bucket c"}, apiserver.NamesOf(list), "each page must be read, and its items get their kind")
}

// A list of all Secrets excludes their data.
func TestAllSecretsAreListedWithoutData(t *testing.T) {
	s := apiserver.NewServer()
	c := clusterOf(s)
	c.metadataPages = metadataOf(xptest.Object("v1", "Secret", "infra", "password"))
	found, err := c.List(t.Context(), KindSecret, "infra", metav1.ListOptions{})
	if err != nil || len(found) != 1 || xp.RefTo(found[0]).String() != "Secret infra/password" {
		t.Fatalf("got %v, %v", found, err)
	}
	if exists, err := c.Exists(t.Context(), xp.RefTo(found[0])); !exists || err != nil || len(s.Requests("list")) > 0 {
		t.Errorf("got %v, %v; Secrets were read whole: %v", exists, err, s.Requests("list"))
	}
}

// answering returns the configuration of clients for which answer answers each request.
func answering(t *testing.T, answer func(r *http.Request) (code int, body string)) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code, body := answer(r)
		w.Header().Set("Content-Type", "application/json")
		var status metav1.Status
		if json.Unmarshal([]byte(body), &status) == nil && status.Details != nil {
			w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)

	return &rest.Config{Host: s.URL}
}

// refusal returns an API server's answer with an error.
func refusal(err *apierrors.StatusError) (code int, body string) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	b, _ := json.Marshal(status)

	return int(status.Code), string(b)
}

func TestPages(t *testing.T) {
	_, forbidden := refusal(apierrors.NewForbidden(apiserver.Secrets.GroupResource(), "", apiserver.ErrDown))
	_, expired := refusal(apierrors.NewResourceExpired("it is too old"))
	cases := map[string]struct {
		reason    string
		gvr       schema.GroupVersionResource
		namespace string
		options   metav1.ListOptions
		code      int
		answer    string
		url       string
	}{
		"Whole": {
			reason: "The decoded page must equal the result of the dynamic client, including whole numbers.",
			gvr:    apiserver.XOrders, options: metav1.ListOptions{Limit: 250, LabelSelector: "a=b", Continue: "from here"}, code: http.StatusOK,
			answer: `{"apiVersion":"example.org/v1","kind":"XOrderList","metadata":{"resourceVersion":"7","continue":"on"},"items":[
				{"apiVersion":"example.org/v1","kind":"XOrder","metadata":{"name":"a","generation":3},"spec":{"whole":9007199254740993,"part":1.5,"Whole":null}},
				{"apiVersion":"example.org/v1","kind":"XOrder","metadata":{"name":"b"}}]}`,
			url: "/apis/example.org/v1alpha1/xorders?continue=from+here&labelSelector=a%3Db&limit=250",
		},
		"Empty": {
			reason: "The list is empty.", gvr: apiserver.Deployments, namespace: "here", code: http.StatusOK, url: "/apis/apps/v1/namespaces/here/deployments",
			answer: `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"7"},"items":[]}`,
		},
		"Core": {
			reason: "The core group has another path.", gvr: apiserver.Secrets, namespace: "here", code: http.StatusOK, url: "/api/v1/namespaces/here/secrets",
			answer: `{"apiVersion":"v1","kind":"SecretList","metadata":{"resourceVersion":"7"},"items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}]}`,
		},
		"Forbidden": {reason: "A refusal keeps the text of the API server.", gvr: apiserver.Secrets, code: http.StatusForbidden, url: "/api/v1/secrets", answer: forbidden},
		"Expired":   {reason: "An expired version must stay recognisable.", gvr: apiserver.Secrets, code: http.StatusGone, url: "/api/v1/secrets", answer: expired},
		"NotFound":  {reason: "A kind can be gone.", gvr: apiserver.Secrets, code: http.StatusNotFound, url: "/api/v1/secrets", answer: "404 page not found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := answering(t, func(r *http.Request) (int, string) {
				if r.URL.String() != tc.url {
					t.Errorf("%s the request was %s", tc.reason, r.URL)
				}

				return tc.code, tc.answer
			})
			client, err := dynamic.NewForConfig(config)
			xptest.Must(t, err)
			pages, err := pagesFrom(config, "")
			xptest.Must(t, err)
			want, wantErr := pagesOf(client)(t.Context(), tc.gvr, tc.namespace, tc.options)
			got, gotErr := pages(t.Context(), tc.gvr, tc.namespace, tc.options)
			xptest.Same(t, want, got, tc.reason, cmp.AllowUnexported(page{}))
			if (gotErr == nil) != (tc.code == http.StatusOK) || apierrors.ReasonForError(gotErr) != apierrors.ReasonForError(wantErr) ||
				wantErr != nil && !strings.HasPrefix(gotErr.Error(), wantErr.Error()) {
				t.Errorf("%s Got %v, want %v", tc.reason, gotErr, wantErr)
			}
		})
	}
}

func TestDecodePage(t *testing.T) {
	for name, answer := range map[string]string{
		"Nothing": ``, "NoList": `{"kind":"Status"}`, "NoKind": `{"items":[]}`, "Truncated": `{"kind":"XList","items":[{}`, "NoObjects": `{"kind":"XList","items":[1]}`,
	} {
		if got, err := decodePage([]byte(answer)); err == nil {
			t.Errorf("%s: it is no list, and got %v", name, got)
		}
	}
}

// FuzzDecodePage compares decodePage with client-go's decoder.
func FuzzDecodePage(f *testing.F) {
	for _, items := range []string{``, `{"kind":"A","apiVersion":"v1","metadata":{"name":"a"},"n":1,"m":1.0,"N":[null,{"x":-1e3}]}`, `{"kind":"B","k":1},{"kind":"C"}`} {
		f.Add([]byte(`{"kind":"AList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"c"},"items":[` + items + `]}`))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodePage(b)
		list := unstructured.UnstructuredList{}
		if list.UnmarshalJSON(b) != nil || err != nil {
			return
		}
		if len(got.objects) != len(list.Items) {
			t.Fatalf("%d objects were read instead of %d of %s", len(got.objects), len(list.Items), b)
		}
		for n, u := range got.objects {
			gvk := list.Items[n].GroupVersionKind()
			if gvk.Kind == "" {
				continue // An item without a kind has the kind of the list.
			}
			xptest.Same(t, list.Items[n].Object, ofKind(u, gvk).Object, string(b))
		}
	})
}

// For a failed conversion an API server suggests a retry after 30 s, and client-go retries ten
// times. A list of metadata asks for nothing else: an API server must not send the data of Secrets.
func TestPagesAreRetried(t *testing.T) {
	initializing := apierrors.NewTooManyRequests("storage is (re)initializing: failed to list cloud.example.org/v1, Kind=Bucket: conversion webhook for "+
		"cloud.example.org/v1beta1, Kind=Bucket failed: EOF", 30)
	cases := map[string]struct {
		reason  string
		refusal *apierrors.StatusError
		asked   int
		fails   bool
	}{
		"Busy":        {reason: "A busy server names the time for a retry.", refusal: apierrors.NewServerTimeout(apiserver.Buckets.GroupResource(), "list", 0), asked: 2},
		"Unconverted": {reason: "A retry would delay the lists of all other kinds.", refusal: initializing, asked: 1, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			pages, err := pagesFrom(answering(t, func(r *http.Request) (int, string) {
				asked++
				if asked == 1 {
					return refusal(tc.refusal)
				}
				if accept := r.Header.Get("Accept"); accept != acceptMetadata {
					t.Errorf("the request accepts %s", accept)
				}

				return http.StatusOK, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[{"kind":"PartialObjectMetadata","metadata":{"name":"s"}}]}`
			}), acceptMetadata)
			xptest.Must(t, err)
			got, err := pages(t.Context(), apiserver.Buckets, "", metav1.ListOptions{})
			if (err != nil) != tc.fails || asked != tc.asked || err == nil && got.objects[0].GetName() != "s" {
				t.Errorf("%s: requested %d times, got %v, %v", tc.reason, asked, got, err)
			}
		})
	}
}

// metadataOf returns a pager that knows the metadata of objects.
func metadataOf(objects ...*unstructured.Unstructured) pager {
	return func(context.Context, schema.GroupVersionResource, string, metav1.ListOptions) (page, error) {
		var p page
		for _, u := range objects {
			p.objects = append(p.objects, &unstructured.Unstructured{Object: map[string]any{"metadata": u.DeepCopy().Object["metadata"]}})
		}

		return p, nil
	}
}

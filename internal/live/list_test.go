package live

import (
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestPages(t *testing.T) {
	refused := func(refusal *apierrors.StatusError) string {
		status := refusal.Status()
		status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		b, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}

		return string(b)
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	cases := map[string]struct {
		reason    string
		gvr       schema.GroupVersionResource
		namespace string
		options   metav1.ListOptions
		code      int
		answer    string
		path      string
		query     string
	}{
		"Whole": {
			reason: "The decoded page must equal the result of the dynamic client, including whole numbers.",
			gvr:    xorders, options: metav1.ListOptions{Limit: 250, LabelSelector: "a=b", Continue: "from here"}, code: http.StatusOK,
			answer: `{"apiVersion":"example.org/v1","kind":"XOrderList","metadata":{"resourceVersion":"7","continue":"on"},"items":[
				{"apiVersion":"example.org/v1","kind":"XOrder","metadata":{"name":"a","generation":3},"spec":{"whole":9007199254740993,"part":1.5,"Whole":null}},
				{"apiVersion":"example.org/v1","kind":"XOrder","metadata":{"name":"b"}}]}`,
			path: "/apis/" + xorders.Group + "/" + xorders.Version + "/" + xorders.Resource, query: "continue=from+here&labelSelector=a%3Db&limit=250",
		},
		"Empty": {
			reason: "The list is empty.", gvr: deployments, namespace: "here", code: http.StatusOK, path: "/apis/apps/v1/namespaces/here/deployments",
			answer: `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"7"},"items":[]}`,
		},
		"Core": {
			reason: "The core group has another path.", gvr: secrets, namespace: "here", code: http.StatusOK, path: "/api/v1/namespaces/here/secrets",
			answer: `{"apiVersion":"v1","kind":"SecretList","metadata":{"resourceVersion":"7"},
				"items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}]}`,
		},
		"Forbidden": {
			reason: "A refusal keeps the text of the API server.", gvr: secrets, code: http.StatusForbidden, path: "/api/v1/secrets",
			answer: refused(apierrors.NewForbidden(secrets.GroupResource(), "", errEmptyWatch)),
		},
		"Expired": {
			reason: "An expired version must stay recognisable.", gvr: secrets, code: http.StatusGone, path: "/api/v1/secrets",
			answer: refused(apierrors.NewResourceExpired("it is too old")),
		},
		"NotFound": {reason: "A kind can be gone.", gvr: secrets, code: http.StatusNotFound, path: "/api/v1/secrets", answer: "404 page not found"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != tc.path || r.URL.Query().Encode() != tc.query {
					t.Errorf("%s the request was %s", tc.reason, r.URL)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.answer))
			}))
			defer s.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			pages, err := pagesFrom(&rest.Config{Host: s.URL}, "")
			if err != nil {
				t.Fatal(err)
			}
			want, wantErr := pagesOf(client)(t.Context(), tc.gvr, tc.namespace, tc.options)
			got, gotErr := pages(t.Context(), tc.gvr, tc.namespace, tc.options)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(page{})); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
			if (gotErr == nil) != (tc.code == http.StatusOK) || apierrors.ReasonForError(gotErr) != apierrors.ReasonForError(wantErr) {
				t.Errorf("%s Got %v, want %v", tc.reason, gotErr, wantErr)
			}
			if wantErr != nil && !strings.HasPrefix(gotErr.Error(), wantErr.Error()) {
				t.Errorf("%s Got %v, want %v", tc.reason, gotErr, wantErr)
			}
		})
	}
}

func TestDecodePage(t *testing.T) {
	cases := map[string]struct {
		reason string
		answer string
		want   string
	}{
		"Nothing":   {reason: "An empty answer is no empty list.", answer: ``, want: "cannot decode the list: unexpected end of JSON input"},
		"NoList":    {reason: "Another object is no empty list.", answer: `{"kind":"Status"}`, want: `cannot decode the list: the answer's kind is "Status"`},
		"NoKind":    {reason: "An answer without a kind can be any object.", answer: `{"items":[]}`, want: `cannot decode the list: the answer's kind is ""`},
		"Truncated": {reason: "A truncated list is no list.", answer: `{"kind":"XList","items":[{}`, want: "cannot decode the list: unexpected end of JSON input"},
		"NoObjects": {
			reason: "A list with other values is no list.", answer: `{"kind":"XList","items":[1]}`,
			want: "cannot decode the list: json: cannot unmarshal number into Go struct field .items of type map[string]interface {}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := decodePage([]byte(tc.answer))
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s Got %v", tc.reason, err)
			}
		})
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
			if diff := cmp.Diff(list.Items[n].Object, ofKind(u, gvk).Object); diff != "" {
				t.Errorf("-want, +got of %s:\n%s", b, diff)
			}
		}
	})
}

// For a failed conversion an API server suggests a retry after 30 s, and client-go retries ten
// times.
func TestPagesAreRetried(t *testing.T) {
	initializing := apierrors.NewTooManyRequests("storage is (re)initializing: failed to list cloud.example.org/v1, Kind=Bucket: conversion webhook for "+
		"cloud.example.org/v1beta1, Kind=Bucket failed: EOF", 30)
	cases := map[string]struct {
		reason  string
		refusal *apierrors.StatusError
		asked   int
		fails   bool
	}{
		"Busy":        {reason: "A busy server names the time for a retry.", refusal: apierrors.NewServerTimeout(buckets.GroupResource(), "list", 0), asked: 2},
		"Unconverted": {reason: "A retry would delay the lists of all other kinds.", refusal: initializing, asked: 1, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				asked++
				if asked > 1 {
					_, _ = w.Write([]byte(`{"apiVersion":"cloud.example.org/v1alpha1","kind":"BucketList","metadata":{"resourceVersion":"7"},"items":[]}`))

					return
				}
				status := tc.refusal.Status()
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
				w.WriteHeader(int(status.Code))
				_ = json.NewEncoder(w).Encode(status)
			}))
			defer s.Close()
			pages, err := pagesFrom(&rest.Config{Host: s.URL}, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = pages(t.Context(), buckets, "", metav1.ListOptions{})
			if (err != nil) != tc.fails || asked != tc.asked {
				t.Errorf("%s: requested %d times, error %v", tc.reason, asked, err)
			}
		})
	}
}

// A list of metadata asks for nothing else: an API server must not send the data of Secrets.
func TestPagesOfMetadata(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accept := r.Header.Get("Accept"); accept != acceptMetadata {
			t.Errorf("the request accepts %s", accept)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","items":[{"kind":"PartialObjectMetadata","metadata":{"name":"s"}}]}`))
	}))
	defer s.Close()
	pages, err := pagesFrom(&rest.Config{Host: s.URL}, acceptMetadata)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pages(t.Context(), secrets, "", metav1.ListOptions{}); err != nil || len(got.objects) != 1 || got.objects[0].GetName() != "s" {
		t.Errorf("got %v, %v", got, err)
	}
}

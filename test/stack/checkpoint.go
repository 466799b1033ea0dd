package stack

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Admission is a change that the API server has accepted and not stored yet. If the object
// changes meanwhile, the API server never stores it.
type Admission struct {
	// Status is true for a change of the status only.
	Status bool
	// Old is the stored object; nil if New is to be created.
	Old, New *unstructured.Unstructured
}

// A Checkpoint is an admission webhook that passes changes to a function of the test, so that the
// test can act between two steps of a controller.
type Checkpoint struct {
	cluster *Cluster
	name    string
	visit   func(ctx context.Context, a Admission)
	server  *http.Server

	mu   sync.Mutex
	seen bool
}

// The probe's webhook is in the same configuration, so the API server calls both or neither. 30 s
// is the longest timeout that it allows.
const checkpointConfig = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %[1]s
webhooks:
- name: checkpoint.stack.example.org
  admissionReviewVersions:
  - v1
  clientConfig: &client
    url: https://%[2]s
    caBundle: %[3]s
  failurePolicy: Fail
  timeoutSeconds: 30
  rules:
  - apiGroups: [%[4]s]
    apiVersions: ["*"]
    operations: [CREATE, UPDATE]
    resources: ["*", "*/status"]
  sideEffects: None
- name: probe.stack.example.org
  admissionReviewVersions:
  - v1
  clientConfig: *client
  failurePolicy: Ignore
  objectSelector:
    matchLabels:
      checkpoint: %[1]s
  rules:
  - apiGroups: [""]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [configmaps]
  sideEffects: None
`

// Check makes each creation and update of objects of the API groups, and of their status, wait for
// visit, for 30 s at most; then the change fails. One stored change can have more than one visit,
// and visits run at the same time. visit must not change objects of these groups. Check skips dry
// runs.
func (c *Cluster) Check(ctx context.Context, name string, groups []string, visit func(ctx context.Context, a Admission)) (*Checkpoint, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", loopback(0))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for checkpoint %s: %w", name, err)
	}
	p := &Checkpoint{cluster: c, name: name, visit: visit}
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: c.pki.tls.Certificates, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }() // It ends when it is closed.

	quoted := make([]string, len(groups))
	for i, g := range groups {
		quoted[i] = fmt.Sprintf("%q", g)
	}
	config := fmt.Appendf(nil, checkpointConfig, name, listener.Addr(), base64.StdEncoding.EncodeToString(c.pki.ca), strings.Join(quoted, ", "))
	err = c.Apply(ctx, config)
	if err == nil {
		err = c.Wait(ctx, readyTimeout, "checkpoint "+name, func(ctx context.Context) error { return p.asked(ctx, true) })
	}
	if err != nil {
		return nil, errors.Join(err, p.server.Close())
	}

	return p, nil
}

// asked returns an error unless the API server calls the webhook or, if want is false, no longer
// calls it. It learns of a webhook some time after that is stored or deleted.
func (p *Checkpoint) asked(ctx context.Context, want bool) error {
	p.mu.Lock()
	p.seen = false
	p.mu.Unlock()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"name": "checkpoint-" + p.name, "labels": map[string]any{"checkpoint": p.name},
	}}}
	maps := p.cluster.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(metav1.NamespaceDefault)
	if _, err := maps.Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("cannot probe it: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen != want {
		return fmt.Errorf("whether the API server asks it is %t", p.seen)
	}

	return nil
}

// Remove lets all changes pass again.
func (p *Checkpoint) Remove(ctx context.Context) error {
	configs := p.cluster.dynamic.Resource(schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations",
	})
	err := configs.Delete(ctx, p.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}

	if err == nil { // Before that, writes of others would fail.
		err = p.cluster.Wait(ctx, readyTimeout, "the end of checkpoint "+p.name, func(ctx context.Context) error { return p.asked(ctx, false) })
	}

	return errors.Join(err, p.server.Close())
}

// ServeHTTP answers the API server.
func (p *Checkpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "cannot read the AdmissionReview", http.StatusBadRequest)

		return
	}
	request := review.Request
	if request.Kind.Kind == "ConfigMap" && request.Kind.Group == "" {
		p.mu.Lock()
		p.seen = true
		p.mu.Unlock()
	} else if request.DryRun == nil || !*request.DryRun {
		a, err := admission(request)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)

			return
		}
		p.visit(r.Context(), a)
	}
	review.Request, review.Response = nil, &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	b, err := json.Marshal(review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)

		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // An API server that has closed the connection needs no answer.
}

func admission(request *admissionv1.AdmissionRequest) (Admission, error) {
	a := Admission{Status: request.SubResource == "status"}
	var err error
	if a.New, err = decode(request.Object); err != nil {
		return a, err
	}
	a.Old, err = decode(request.OldObject)

	return a, err
}

func decode(raw runtime.RawExtension) (*unstructured.Unstructured, error) {
	if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
		return nil, nil //nolint:nilnil // A created object has no old state.
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw.Raw); err != nil {
		return nil, fmt.Errorf("cannot read an object of the AdmissionReview: %w", err)
	}

	return u, nil
}

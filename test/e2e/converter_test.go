package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// A webhookMode is how a conversion webhook behaves.
type webhookMode string

const (
	up webhookMode = "up"
	// slow answers after two seconds.
	slow webhookMode = "slow"
	// silent never answers.
	silent webhookMode = "silent"
	// broken answers that it can't convert.
	broken webhookMode = "broken"
	// expired has an expired certificate.
	expired webhookMode = "expired"
	// down closes each connection.
	down webhookMode = "down"
)

// A converter is a conversion webhook that changes only the version.
type converter struct {
	address  string
	ca       []byte
	certs    map[webhookMode]tls.Certificate
	mu       sync.Mutex
	mood     webhookMode
	accepted int
	// revision makes each URL unique, so the API server has no cached list of the kind.
	revision int
}

// newConverter starts a converter that ends with the test.
func newConverter(t *testing.T) *converter {
	t.Helper()
	c := &converter{mood: up, certs: map[webhookMode]tls.Certificate{}}
	c.certify(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	c.address = l.Addr().String()
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, ok := c.certs[c.is()]
		if !ok {
			cert = c.certs[up]
		}

		return &cert, nil
	}}
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	server.SetKeepAlivesEnabled(false) // Otherwise the API server would use an old connection.
	go func() { _ = server.Serve(tls.NewListener(&faultyListener{Listener: l, of: c}, config)) }()
	t.Cleanup(func() { must(t, server.Close()) })

	return c
}

// A faultyListener is a listener that closes each connection while the converter is down.
type faultyListener struct {
	net.Listener

	of *converter
}

func (d *faultyListener) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		d.of.mu.Lock()
		d.of.accepted++
		closed := d.of.mood == down
		d.of.mu.Unlock()
		if !closed {
			return conn, nil
		}
		_ = conn.Close()
	}
}

func (c *converter) is() webhookMode {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.mood
}

// asked returns the number of connections to the converter.
func (c *converter) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.accepted
}

func (c *converter) be(m webhookMode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mood = m
}

// certify creates a CA and two certificates of it: a valid one and an expired one.
func (c *converter) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	must(t, err)
	c.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for m, until := range map[webhookMode]time.Time{up: time.Now().Add(24 * time.Hour), expired: time.Now().Add(-time.Hour)} {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
		must(t, err)
		c.certs[m] = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
}

// ServeHTTP converts the objects of a ConversionReview, as the mode of the converter demands.
func (c *converter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)

		return
	}
	request, _ := review["request"].(map[string]any)
	response := map[string]any{"uid": request["uid"], "result": map[string]any{"status": "Success"}}
	switch c.is() { //nolint:exhaustive // The others answer.
	case slow:
		select {
		case <-time.After(2 * time.Second):
		case <-r.Context().Done():
		}
	case silent:
		<-r.Context().Done()

		return
	case broken:
		response["result"] = map[string]any{"status": "Failure", "message": "it has no opinion"}
	default:
	}
	objects, _ := request["objects"].([]any)
	for _, o := range objects {
		if m, ok := o.(map[string]any); ok {
			m["apiVersion"] = request["desiredAPIVersion"]
		}
	}
	response["convertedObjects"] = objects
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

// convert makes a CRD serve the versions, of which the first is stored, and makes the webhook
// convert between them. It also makes the API server discard what it has cached of the kind.
func (c *converter) convert(t *testing.T, on *stack.Cluster, crd string, versions ...string) {
	t.Helper()
	u, err := get(t.Context(), on, crdKind, "", crd)
	must(t, err)
	all, _, err := unstructured.NestedSlice(u.Object, "spec", "versions")
	must(t, err)
	schema, _ := all[0].(map[string]any)
	var list []any
	served := map[string]bool{}
	for n, v := range versions {
		version := (&unstructured.Unstructured{Object: schema}).DeepCopy().Object
		version["name"], version["served"], version["storage"] = v, true, n == 0
		list, served[v] = append(list, version), true
	}
	for _, entry := range all { // A version that was a storage version must stay in the CRD.
		if m, ok := entry.(map[string]any); ok && !served[fmt.Sprint(m["name"])] {
			m["served"], m["storage"] = false, false
			list = append(list, m)
		}
	}
	c.mu.Lock()
	c.revision++
	url := fmt.Sprintf("https://%s/convert/%d", c.address, c.revision)
	c.mu.Unlock()
	must(t, unstructured.SetNestedSlice(u.Object, list, "spec", "versions"))
	must(t, unstructured.SetNestedMap(u.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString(c.ca)},
	}}, "spec", "conversion"))
	u.Object["metadata"] = map[string]any{"name": crd}
	delete(u.Object, "status")
	must(t, on.ApplyObjects(t.Context(), u))
}

package stack

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFreePorts(t *testing.T) {
	var ports []int
	for range 50 {
		more, err := freePorts(40)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, more...)
	}
	slices.Sort(ports)
	if got := len(slices.Compact(slices.Clone(ports))); got != 2000 {
		t.Errorf("got %d different ports, want 2000", got)
	}
	if ports[0] < lowestPort || ports[len(ports)-1] > highestPort {
		t.Errorf("ports from %d to %d are out of range", ports[0], ports[len(ports)-1])
	}
}

func TestTail(t *testing.T) {
	var long strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	cases := map[string]struct {
		reason  string
		content string
		first   string
		last    string
		lines   int
	}{
		"Short": {reason: "The error must show the whole of a short log.", content: "a\nb\n", first: "  a", last: "  b", lines: 2},
		"Long":  {reason: "The error must show only the end of a long log.", content: long.String(), first: "  line 4980", last: "  line 4999", lines: tailLines},
		"Empty": {reason: "The error must state that a log is empty.", content: "", first: "  (the log is empty)", last: "  (the log is empty)", lines: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.Split(tail(path), "\n")
			if len(got) != tc.lines || got[0] != tc.first || got[len(got)-1] != tc.last {
				t.Errorf("%s\ngot %d lines, from %q to %q", tc.reason, len(got), got[0], got[len(got)-1])
			}
		})
	}
}

// Crossplane and a function use this certificate to authenticate each other.
func TestPKI(t *testing.T) {
	p, err := newPKI(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	server := p.tls.Clone()
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, p.tls.RootCAs
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err == nil {
			_, err = conn.Write([]byte("ok"))
		}
		if err != nil {
			t.Error(err)
		}
	}()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&tls.Dialer{Config: p.tls}).DialContext(t.Context(), "tcp", "localhost:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := make([]byte, 2)
	if _, err := conn.Read(b); err != nil || string(b) != "ok" {
		t.Errorf("read %q, %v", b, err)
	}

	if _, err := tls.LoadX509KeyPair(p.path(certFile), p.path(keyFile)); err != nil {
		t.Error(err)
	}
	ca, err := os.ReadFile(p.path(caFile))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(ca) {
		t.Errorf("%s has no certificate: %v", caFile, err)
	}
}

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason   string
		manifest string
		want     []string
	}{
		"Documents": {
			reason:   "Objects must keep their order, without empty documents.",
			manifest: "---\n# nothing\n---\nkind: B\nmetadata: {name: b, namespace: team}\n---\nkind: A\nmetadata: {name: a}\n",
			want:     []string{"B team/b", "A a"},
		},
		"List": {
			reason:   "A list stands for its items.",
			manifest: `{"kind": "List", "apiVersion": "v1", "items": [{"kind": "A", "metadata": {"name": "a"}}, {"kind": "B", "metadata": {"name": "b"}}]}`,
			want:     []string{"A a", "B b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs, err := Parse([]byte(tc.manifest))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, obj := range objs {
				got = append(got, describe(obj))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	got := strings.Join(Programs(Options{Crossplane: V1, Plugin: true, KubernetesProvider: true}, Options{Velero: "velero-v1.17", Kubernetes: "v1.30"}), " ")
	want := "cloud crossplane-v1 etcd function-patch-and-transform gofakes3 kube-apiserver kube-apiserver-v1.30 kube-controller-manager " +
		"kube-controller-manager-v1.30 plugin provider-cloud provider-kubernetes velero velero-plugin-for-aws velero-v1.17"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An API server accepts a CRD with a conversion webhook only if it has the webhook's address, and
// both programs have to use the same port.
func TestSetConversion(t *testing.T) {
	crds, err := Parse([]byte(`
metadata: {name: objects.kubernetes.crossplane.io}
spec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {path: /convert}}, conversionReviewVersions: [v1]}}}
---
metadata: {name: buckets.cloud.example.org}
spec: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{pki: &pki{ca: []byte("ca")}, conversion: map[string]int{KubernetesProvider: 12345}}
	if err := c.setConversion(KubernetesProvider, crds); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"clientConfig": map[string]any{"url": "https://127.0.0.1:12345/convert", "caBundle": "Y2E="}, "conversionReviewVersions": []any{"v1"},
		}}},
		map[string]any{},
	}
	if diff := cmp.Diff(want, []any{crds[0].Object["spec"], crds[1].Object["spec"]}); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestUsageWebhook(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version Version
		want    string
	}{
		"V1":      {reason: "Crossplane v1 has Usages in its group apiextensions.", version: V1, want: "nousages.apiextensions.crossplane.io"},
		"V2":      {reason: "Crossplane v2 has Usages in a group of their own.", version: V2, want: "nousages.protection.crossplane.io"},
		"OlderV2": {reason: "The first v2 has that group already.", version: "crossplane-v2.0", want: "nousages.protection.crossplane.io"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{pki: &pki{ca: []byte("ca")}, options: Options{Crossplane: tc.version}}
			objs, err := Parse(c.usageWebhook(12345))
			if err != nil {
				t.Fatal(err)
			}
			webhooks, _, _ := unstructured.NestedSlice(objs[0].Object, "webhooks")
			if len(webhooks) != 1 {
				t.Fatalf("got %d webhooks, want 1", len(webhooks))
			}
			webhook, _ := webhooks[0].(map[string]any)
			want := map[string]any{"url": "https://127.0.0.1:12345/validate-no-usages", "caBundle": "Y2E="}
			if diff := cmp.Diff([]any{tc.want, want}, []any{webhook["name"], webhook["clientConfig"]}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

package stack

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The controllers that Crossplane and Velero rely on, above all the garbage collector, and that of CronJobs.
const controllers = "garbage-collector-controller,namespace-controller,serviceaccount-controller,serviceaccount-token-controller," +
	"root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,cronjob-controller"

// startControlPlane starts etcd and the API server, and makes the clients.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	var err error
	if c.pki, err = newPKI(filepath.Join(c.dir, "pki")); err != nil {
		return err
	}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	etcd, peer, secure := "http://"+loopback(ports[0]), "http://"+loopback(ports[1]), ports[2]
	if err := c.configure("https://" + loopback(secure)); err != nil {
		return err
	}

	// The API server retries until etcd answers, so both start at the same time.
	return parallel(
		func() error { return c.startEtcd(ctx, etcd, peer) },
		func() error { return c.startAPIServer(ctx, etcd, secure) },
	)
}

func (c *Cluster) startEtcd(ctx context.Context, client, peer string) error {
	return c.run(ctx, &component{
		name: Etcd, ready: answers(http.DefaultClient, client+"/health"),
		args: []string{
			"--name=stack", "--data-dir=data", "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=stack=" + peer,
			"--unsafe-no-fsync", "--log-level=warn",
			"--quota-backend-bytes=8589934592", // 8 GiB, the most that etcd advises; the default of 2 GiB is full at some 100,000 objects with their history.
		},
	})
}

func (c *Cluster) startAPIServer(ctx context.Context, etcd string, port int) error {
	path, err := c.program(c.options.kubernetes(APIServer))
	if err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return fmt.Errorf("cannot make a client of the API server: %w", err)
	}
	audit, err := c.auditArgs()
	if err != nil {
		return err
	}

	return c.run(ctx, &component{
		name: APIServer, path: path, ready: answers(httpClient, c.config.Host+"/readyz"),
		args: append([]string{
			"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
			"--endpoint-reconciler-type=none", // A loopback address is no valid endpoint.
			"--tls-cert-file=" + c.pki.path(certFile), "--tls-private-key-file=" + c.pki.path(keyFile),
			"--token-auth-file=" + c.tokenFile(), "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-signing-key-file=" + c.pki.path(keyFile),
			"--service-account-key-file=" + c.pki.path(keyFile),
			"--profiling=false",
		}, audit...),
		// The API server takes most of the processor time, a sixth of it for garbage collection.
		// With tens of thousands of objects GOGC alone would take too much memory.
		env: []string{"GOGC=400", "GOMEMLIMIT=8GiB"},
	})
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	path, err := c.program(c.options.kubernetes(ControllerManager))
	if err != nil {
		return err
	}
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: c.pki.tls.Clone()}}

	return c.run(ctx, &component{
		name: ControllerManager, path: path, ready: answers(client, "https://"+loopback(ports[0])+"/healthz"),
		args: []string{
			"--kubeconfig=" + c.kubeconfig, "--controllers=" + controllers, "--leader-elect=false",
			"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
			"--tls-cert-file=" + c.pki.path(certFile), "--tls-private-key-file=" + c.pki.path(keyFile),
			"--service-account-private-key-file=" + c.pki.path(keyFile), "--root-ca-file=" + c.pki.path(caFile),
			"--profiling=false",
		},
	})
}

func (c *Cluster) tokenFile() string { return c.pki.path("tokens.csv") }

// configure creates a user with all permissions, a kubeconfig file and the clients.
func (c *Cluster) configure(server string) error {
	token := rand.Text()
	if err := os.WriteFile(c.tokenFile(), []byte(token+",stack,stack,system:masters\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write the token of cluster %s: %w", c.options.Name, err)
	}
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	name := c.options.Name
	kubeconfig := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: c.pki.ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
	if err := clientcmd.WriteToFile(kubeconfig, c.kubeconfig); err != nil {
		return fmt.Errorf("cannot write the kubeconfig of cluster %s: %w", name, err)
	}
	c.config = &rest.Config{
		Host: server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.ca},
		QPS: 200, Burst: 400, UserAgent: "stack", WarningHandler: rest.NoWarnings{},
	}
	var err error
	c.client, err = newClient(c.config)

	return err
}

package stack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const veleroNamespace = "velero"

// The location's phase is Available from
// the start: otherwise the server skips the synchronisation of backups at its start, and the next
// one is a minute later. The period is only the shortest time between two synchronisations.
const veleroObjects = `
apiVersion: v1
kind: Namespace
metadata:
  name: velero
---
apiVersion: velero.io/v1
kind: BackupStorageLocation
metadata:
  name: default
  namespace: velero
spec:
  default: true
  provider: aws
  backupSyncPeriod: 1s
  objectStorage:
    bucket: %s
  config:
    region: local
    s3ForcePathStyle: "true"
    s3Url: %s
    checksumAlgorithm: ""
status:
  phase: Available
`

// veleroDeployment is the Deployment without which every restore is PartiallyFailed.
const veleroDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: velero
  namespace: velero
  labels:
    component: velero
spec:
  replicas: 0
  selector:
    matchLabels:
      deploy: velero
  template:
    metadata:
      labels:
        deploy: velero
    spec:
      containers:
      - name: velero
        image: registry.invalid/velero
`

// pluginContainer is what "velero plugin add" adds to Velero's Deployment.
const pluginContainer = `      initContainers:
      - name: crossplane-contrib-velero-plugin-for-crossplane
        image: registry.invalid/crossplane-contrib/velero-plugin-for-crossplane
        volumeMounts:
        - name: plugins
          mountPath: /target
      volumes:
      - name: plugins
        emptyDir: {}
`

const veleroCredentials = "[default]\naws_access_key_id = stack\naws_secret_access_key = stack\n" //nolint:gosec // The S3 server takes any.

var locationResource = schema.GroupVersionResource{Group: "velero.io", Version: "v1", Resource: "backupstoragelocations"}

func (c *Cluster) veleroCRDs(ctx context.Context) ([]byte, error) {
	path, err := c.program(c.options.velero())
	if err != nil {
		return nil, err
	}

	return c.output(ctx, path, "install", "--crds-only", "--dry-run", "-o", "yaml")
}

func (c *Cluster) startVelero(ctx context.Context) error {
	path, err := c.program(c.options.velero())
	if err != nil {
		return err
	}
	if err := c.linkPlugins(); err != nil {
		return err
	}
	if err := os.WriteFile(c.credentialsFile(), []byte(veleroCredentials), 0o600); err != nil {
		return fmt.Errorf("cannot write Velero's credentials: %w", err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, fmt.Appendf(nil, veleroObjects, bucket, c.host.s3URL)); err != nil {
		return err
	}
	if err := c.applyVeleroDeployment(ctx); err != nil {
		return err
	}

	return c.run(ctx, &component{
		name: Velero, path: path, ready: c.veleroReady,
		args: append([]string{
			"server", "--plugin-dir=" + c.pluginDir(), "--kubeconfig=" + c.kubeconfig, "--namespace=" + veleroNamespace,
			"--metrics-address=" + loopback(ports[0]), "--profiler-address=" + loopback(ports[1]),
		}, c.options.VeleroArgs...),
		env: []string{"VELERO_NAMESPACE=" + veleroNamespace, "AWS_SHARED_CREDENTIALS_FILE=" + c.credentialsFile()},
	})
}

// applyVeleroDeployment applies Velero's Deployment, with the init container of the plugin if Velero
// has that.
func (c *Cluster) applyVeleroDeployment(ctx context.Context) error {
	manifest := veleroDeployment
	if c.options.Plugin {
		manifest += pluginContainer
	}

	return c.Apply(ctx, []byte(manifest))
}

func (c *Cluster) credentialsFile() string { return filepath.Join(c.dir, "credentials") }

func (c *Cluster) pluginDir() string { return filepath.Join(c.dir, "plugins") }

// linkPlugins makes the directory of plugins. Velero runs every executable in it.
func (c *Cluster) linkPlugins() error {
	names := []string{"velero-plugin-for-aws"}
	if c.options.Plugin {
		names = append(names, "plugin")
	}
	if err := os.Mkdir(c.pluginDir(), 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of Velero's plugins: %w", err)
	}
	for _, name := range names {
		path, err := c.program(name)
		if err != nil {
			return err
		}
		if err := c.linkPlugin(name, path); err != nil {
			return fmt.Errorf("cannot link Velero plugin %s: %w", name, err)
		}
	}

	return nil
}

// veleroReady is a probe that succeeds once the server, since its start, has validated the location
// and synchronised the backups in it.
func (c *Cluster) veleroReady(ctx context.Context, p *process) error {
	// A server that was stopped in the same second may have validated the location.
	if err := logs("Server starting...", 1)(ctx, p); err != nil {
		return err
	}
	location, err := c.dynamic.Resource(locationResource).Namespace(veleroNamespace).Get(ctx, "default", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if phase, _, _ := unstructured.NestedString(location.Object, "status", "phase"); phase != "Available" {
		message, _, _ := unstructured.NestedString(location.Object, "status", "message")

		return fmt.Errorf("%s is %q: %s", describe(location), phase, message)
	}
	for _, field := range []string{"lastValidationTime", "lastSyncedTime"} {
		value, _, _ := unstructured.NestedString(location.Object, "status", field)
		at, err := time.Parse(time.RFC3339, value)
		if err != nil || at.Before(p.began.Add(c.options.Clocks[Velero]).Truncate(time.Second)) {
			return fmt.Errorf("%s: %s is %q, which is before the start", describe(location), field, value)
		}
	}

	return nil
}

// Velero runs the velero command line client and returns what it writes to its standard output.
func (c *Cluster) Velero(ctx context.Context, args ...string) (string, error) {
	command := append(c.VeleroCommand(), args...)
	out, err := c.output(ctx, command[0], command[1:]...)

	return string(out), err
}

// VeleroCommand returns the command line of the velero client for this cluster, with the flags that
// it always needs.
func (c *Cluster) VeleroCommand() []string {
	return []string{c.host.set[c.options.velero()].Path, "--kubeconfig=" + c.kubeconfig, "--namespace=" + veleroNamespace}
}

// RestartVelero makes Velero discover new kinds, which it otherwise does every five minutes, and
// the backups in the bucket.
func (c *Cluster) RestartVelero(ctx context.Context) error { return c.Restart(ctx, Velero) }

// output runs a program to its end and returns its stdout.
func (c *Cluster) output(ctx context.Context, path string, args ...string) ([]byte, error) {
	return c.outputWith(ctx, nil, path, args...)
}

// outputWith is output with additional environment variables.
func (c *Cluster) outputWith(ctx context.Context, env []string, path string, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // It leads a group.
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, &stdout, &stderr
	cmd.Env = environment(c.dir, c.host.tmp, env...)
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return stdout.Bytes(), fmt.Errorf("cannot run %s %s: %w\n%s%s",
			filepath.Base(path), strings.Join(args, " "), errors.Join(err, ctx.Err()), stdout.String(), stderr.String())
	}

	return stdout.Bytes(), nil
}

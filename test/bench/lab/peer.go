package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

// A Peer is the measurement of a script that exports the namespace with kubectl and applies it in
// another cluster.
type Peer struct {
	// Export and Apply are the seconds that kubectl took. Settled is how many seconds later all was
	// Ready or the cloud got no new resources.
	Export  float64 `json:"export"`
	Apply   float64 `json:"apply"`
	Settled float64 `json:"settled"`
	Objects int     `json:"objects"`
	// Created counts the cloud resources that were created though they existed already. Ready
	// reports whether all became Ready.
	Created int    `json:"created"`
	Ready   bool   `json:"ready"`
	Why     string `json:"why,omitempty"`
	// Requests counts kubectl's requests.
	Requests int `json:"requests"`
}

// Peer does the work of a backup and a restore with kubectl: it exports the kinds of the trees one
// after the other, removes the fields that belong to the old cluster, as such scripts do, and
// applies the rest in a cluster with only the platform. Crossplane runs there, as it does for the
// plugin.
func (l *Lab) Peer(ctx context.Context, trees int) (*Peer, error) {
	if err := l.adopted(ctx, trees); err != nil {
		return nil, err
	}
	p := &Peer{}
	resources := []string{"buckets.cloud.m.example.org", "databases.cloud.m.example.org", "environments.platform.example.org", "networks.cloud.m.example.org"}
	var files [][]byte
	for _, resource := range resources { // As kubectl api-resources names them.
		began := time.Now()
		b, err := l.kubectl(ctx, nil, "get", resource, "--namespace", namespace, "--output", "json")
		if err != nil {
			return nil, err
		}
		p.Export += time.Since(began).Seconds()
		b, n, err := portable(b)
		if err != nil {
			return nil, err
		}
		files = append(files, b)
		p.Objects += n
	}
	l.Say("kubectl has exported %d objects in %.1f s", p.Objects, p.Export)

	if err := l.count(ctx, trees); err != nil {
		return nil, err
	}
	if err := l.reset(ctx, false, l.controllers()...); err != nil {
		return nil, err
	}
	if err := l.cluster.ApplyObjects(ctx, namespaceObject()); err != nil {
		return nil, err
	}
	_, place, err := l.cluster.RequestsSince(ctx, 0)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, b := range files {
		if _, err := l.kubectl(ctx, b, "apply", "--filename", "-"); err != nil {
			return nil, err
		}
	}
	p.Apply = time.Since(began).Seconds()
	l.Say("kubectl has applied them in %.1f s", p.Apply)
	requests, _, err := l.cluster.RequestsSince(ctx, place)
	if err != nil {
		return nil, err
	}
	for _, r := range requests {
		if strings.HasPrefix(r.UserAgent, "kubectl/") {
			p.Requests++
		}
	}

	return p, l.settle(ctx, trees, p)
}

// settle waits until all is Ready and the cloud gets no new resources, and counts those. It gives
// up when the cloud has got none for a minute.
func (l *Lab) settle(ctx context.Context, trees int, p *Peer) error {
	const silence, despair = 10 * time.Second, time.Minute
	began, changed := time.Now(), time.Now()
	err := l.wait(ctx, l.timeout(trees), "kubectl's objects to settle", func(ctx context.Context) error {
		created, err := l.created(ctx)
		if err != nil {
			return err
		}
		if created != p.Created {
			p.Created, changed = created, time.Now()
		}
		unready := l.ready(ctx, trees)
		if unready == nil && !p.Ready {
			p.Settled = time.Since(began).Seconds()
		}
		if p.Ready, p.Why = unready == nil, ""; !p.Ready {
			p.Why = unready.Error()
		}
		if quiet := time.Since(changed); quiet < silence || !p.Ready && quiet < despair {
			return errors.New("something new may still be made in the cloud")
		}

		return nil
	})
	if err != nil {
		return err
	}
	if !p.Ready {
		p.Settled = changed.Sub(began).Seconds()
	}
	l.Say("%d cloud resources were created again; all Ready: %v %s", p.Created, p.Ready, p.Why)

	return nil
}

// portable removes from a list of kubectl's the objects that can't be applied elsewhere, and from
// each object the fields that the API server or a controller has written.
func portable(b []byte) ([]byte, int, error) {
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(b); err != nil {
		return nil, 0, fmt.Errorf("cannot read what kubectl has exported: %w", err)
	}
	for _, u := range list.Items {
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(u.Object, "status")
	}
	b, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": list.Items})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot encode what kubectl has exported: %w", err)
	}

	return b, len(list.Items), nil
}

func (l *Lab) kubectl(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, l.set["kubectl"].Path, append([]string{"--kubeconfig", l.cluster.Kubeconfig()}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	cmd.Env = []string{"HOME=" + l.dir, "PATH=" + os.Getenv("PATH")}
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot run kubectl %s: %w\n%s", args[0], err, build.Tail(stderr.String()))
	}

	return stdout.Bytes(), nil
}

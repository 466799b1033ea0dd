// The applier command applies manifests again and again, as a GitOps controller does: Flux and Argo
// CD with their own code, and kubectl as a command. It prints a line for each object that it has
// applied: "free" or "held", for the state before, and the object's name.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// pause is the time between two rounds.
const pause = 200 * time.Millisecond

// settings are the values of the flags.
type settings struct {
	as, kubeconfig, manifests, mark string
	once, prune                     bool
	command                         []string
}

func main() {
	var s settings
	flag.StringVar(&s.as, "as", "command",
		"The applier: flux, argocd, argocd-server-side, argocd-replace, or the command behind the flags, which has the manifest as its input.")
	flag.StringVar(&s.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "The cluster.")
	flag.StringVar(&s.manifests, "manifests", "", "A file with a list of objects, as YAML or JSON.")
	flag.StringVar(&s.mark, "mark", "", "The annotation of an object that is held.")
	flag.BoolVar(&s.once, "once", false, "Apply each object once, also one that is not there; without it only those that are, until the input ends.")
	flag.BoolVar(&s.prune, "prune", false, "Delete each object once, as one that is not in Git any more.")

	flag.Parse()
	s.command = flag.Args()

	ctx, cancel := context.WithCancel(context.Background())
	if !s.once && !s.prune {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			cancel()
		}()
	}
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// An applier applies a manifest over the live object, which is nil if there is none.
type applier interface {
	apply(ctx context.Context, manifest, live *unstructured.Unstructured) error
}

// A pruner deletes a live object that was applied before and is not in Git any more. It does not
// wait until the object is gone.
type pruner interface {
	prune(ctx context.Context, live *unstructured.Unstructured) error
}

func run(ctx context.Context, s settings) error { //nolint:cyclop // It is one step after another.
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig %s: %w", s.kubeconfig, err)
	}
	config.QPS, config.Burst, config.WarningHandler = 200, 400, rest.NoWarnings{}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	manifests, err := read(s.manifests)
	if err != nil {
		return err
	}
	a, err := newApplier(s, config, c)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		for i := range manifests {
			err := one(ctx, c, a, &manifests[i], s)
			if err != nil && (s.once || s.prune) {
				return err
			}
			if err != nil && ctx.Err() == nil { // A GitOps controller goes on.
				_, _ = fmt.Fprintln(os.Stderr, err)
			}
		}
		if s.once || s.prune {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}

	return nil
}

// one applies or prunes a manifest, and prints what it has applied. It leaves out an object that is
// not there, unless each is applied once.
func one(ctx context.Context, c client.Client, a applier, manifest *unstructured.Unstructured, s settings) error {
	name := manifest.GetKind() + " " + manifest.GetName()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(manifest.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(manifest), live)
	if apierrors.IsNotFound(err) {
		if !s.once {
			return nil
		}
		live, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("cannot look at %s: %w", name, err)
	}
	if s.prune {
		p, ok := a.(pruner)
		if !ok {
			return errors.New("this applier does not prune")
		}
		if err := p.prune(ctx, live); err != nil {
			return fmt.Errorf("cannot prune %s: %w", name, err)
		}

		return nil
	}
	state := "free"
	if live != nil {
		if _, ok := live.GetAnnotations()[s.mark]; ok {
			state = "held"
		}
	}
	if err := a.apply(ctx, manifest.DeepCopy(), live); err != nil {
		return fmt.Errorf("cannot apply %s: %w", name, err)
	}
	fmt.Println(state, manifest.GetName()) //nolint:forbidigo // A program may print.

	return nil
}

func newApplier(s settings, config *rest.Config, c client.Client) (applier, error) { //nolint:ireturn // A flag chooses the applier.
	switch s.as {
	case "flux":
		return newFlux(c), nil
	case "argocd", "argocd-server-side", "argocd-replace":
		return &argocd{config: config, serverSide: s.as == "argocd-server-side", replace: s.as == "argocd-replace"}, nil
	case "command":
		if len(s.command) > 0 {
			return &command{args: s.command}, nil
		}
	}

	return nil, fmt.Errorf("cannot apply as %q", s.as)
}

// read reads a file with a list of objects.
func read(path string) ([]unstructured.Unstructured, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests: %w", err)
	}
	var l unstructured.UnstructuredList
	if b, err = yaml.YAMLToJSON(b); err == nil {
		err = l.UnmarshalJSON(b)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifests in %s: %w", path, err)
	}

	return l.Items, nil
}

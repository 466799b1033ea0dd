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

func run(ctx context.Context, s settings) error {
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
	l := &loop{get: c.Get, applier: a, mark: s.mark, out: os.Stdout, errs: os.Stderr}
	if s.prune {
		return l.prune(ctx, manifests)
	}
	if s.once {
		return l.once(ctx, manifests)
	}
	for ctx.Err() == nil {
		l.again(ctx, manifests)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}

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

// A getter gets a live object.
type getter func(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error

// A loop applies manifests.
type loop struct {
	get     getter
	applier applier
	mark    string
	out     io.Writer
	errs    io.Writer
}

// once applies each manifest, and stops at the first error.
func (l *loop) once(ctx context.Context, manifests []unstructured.Unstructured) error {
	for i := range manifests {
		live, err := l.live(ctx, &manifests[i])
		if err == nil {
			err = l.apply(ctx, &manifests[i], live)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// prune deletes each object, and stops at the first error.
func (l *loop) prune(ctx context.Context, manifests []unstructured.Unstructured) error {
	p, ok := l.applier.(pruner)
	if !ok {
		return errors.New("this applier does not prune")
	}
	for i := range manifests {
		live, err := l.live(ctx, &manifests[i])
		if err == nil && live != nil {
			err = p.prune(ctx, live)
		}
		if err != nil {
			return fmt.Errorf("cannot prune %s %s: %w", manifests[i].GetKind(), manifests[i].GetName(), err)
		}
	}

	return nil
}

// again applies the manifests of live objects, and goes on after each error, as a GitOps controller
// does.
func (l *loop) again(ctx context.Context, manifests []unstructured.Unstructured) {
	for i := range manifests {
		live, err := l.live(ctx, &manifests[i])
		if err == nil && live != nil {
			err = l.apply(ctx, &manifests[i], live)
		}
		if err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(l.errs, err)
		}
	}
}

// live returns the live object of a manifest; nil if there is none.
func (l *loop) live(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(manifest.GroupVersionKind())
	err := l.get(ctx, client.ObjectKeyFromObject(manifest), u)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // None is no error.
	}
	if err != nil {
		return nil, fmt.Errorf("cannot look at %s %s: %w", manifest.GetKind(), manifest.GetName(), err)
	}

	return u, nil
}

func (l *loop) apply(ctx context.Context, manifest, live *unstructured.Unstructured) error {
	state := "free"
	if live != nil {
		if _, ok := live.GetAnnotations()[l.mark]; ok {
			state = "held"
		}
	}
	if err := l.applier.apply(ctx, manifest.DeepCopy(), live); err != nil {
		return fmt.Errorf("cannot apply %s %s: %w", manifest.GetKind(), manifest.GetName(), err)
	}
	if _, err := fmt.Fprintln(l.out, state, manifest.GetName()); err != nil {
		return errors.New("cannot print the applied object")
	}

	return nil
}

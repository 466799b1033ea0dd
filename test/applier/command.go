package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A command applies what it reads.
type command struct{ args []string }

func (c *command) apply(ctx context.Context, manifest, _ *unstructured.Unstructured) error {
	b, err := manifest.MarshalJSON()
	if err != nil {
		return fmt.Errorf("cannot encode it: %w", err)
	}
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Stdin = bytes.NewReader(b)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	return nil
}

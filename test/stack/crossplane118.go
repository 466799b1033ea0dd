package stack

import (
	"context"
	"net/http"
)

// health is where Crossplane 1.18 answers; no flag changes it.
const health = "http://127.0.0.1:8081/readyz"

// runCrossplane118 runs a Crossplane whose ports are fixed, with realtime compositions, which are
// optional in that version.
func (c *Cluster) runCrossplane118(ctx context.Context) error {
	path, err := c.program(string(c.options.Crossplane))
	if err != nil {
		return err
	}
	args := []string{
		"core", "start", "--namespace=" + crossplaneNamespace, "--package-runtime=External", "--cache-dir=" + c.dir,
		"--tls-client-certs-dir=" + c.pki.dir, "--tls-server-certs-dir=" + c.pki.dir, "--poll-interval=10s", "--webhook-enabled=false",
		"--enable-realtime-compositions",
	}

	return c.run(ctx, &component{
		name: Crossplane, path: path, args: append(args, c.options.CrossplaneArgs...), ready: answers(http.DefaultClient, health),
	})
}

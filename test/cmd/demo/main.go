// Command demo shows how a restore affects Crossplane's composite resources, with Velero alone and
// with the plugin, on the real stack: it loses a cluster and restores its backup into another one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

func main() {
	crossplane := flag.String("crossplane", "v2", "Crossplane to show it with: v2 or v1.20.")
	native := flag.Bool("native", false, "On v1.20, compose with native patch-and-transform rather than with a function.")
	count := flag.Int("count", 10, "How many composite resources to make.")
	velero := flag.String("velero", "v1.18", "Velero to show it with: v1.18, v1.17 or v1.16.")
	flag.Parse()

	program, served := map[string]string{"v1.18": stack.Velero, "v1.17": "velero-v1.17", "v1.16": "velero-v1.16"}[*velero]
	version, ok := map[string]stack.Version{"v2": stack.V2, "v1.20": stack.V1}[*crossplane]
	if !ok || !served || *count < 1 || *native && version != stack.V1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "cannot run the demo so: --crossplane is v2 or v1.20, --native is for v1.20, --velero is v1.18, v1.17 or v1.16, "+
			"and --count is at least 1")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, stack.Options{Crossplane: version, Velero: program}, *native, *count)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nThe demo failed:", err)
		os.Exit(1)
	}
}

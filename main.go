// Command velero-plugin-for-crossplane makes Velero backup and restore safe for Crossplane. As a
// plugin of Velero it serves actions; begin with plugin.go. Otherwise it is a command line; begin
// with hooks.Run. Nothing imports it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adopter"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/cluster"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

func main() {
	// go-plugin sets this variable when it starts a program as a plugin.
	if handshake := framework.Handshake(); os.Getenv(handshake.MagicCookieKey) == handshake.MagicCookieValue {
		serve()

		return
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	return hooks.Run(ctx, os.Args[1:], hooks.Program{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, DryRunner: dryRun, Version: version(), Path: os.Args[0],
	})
}

// dryRun runs a restore without writing, into the cluster, or into an empty one if c is nil.
func dryRun(ctx context.Context, b *archive.Backup, c *cluster.Cluster, restore *velerov1.Restore, result func(report.ItemResult)) error {
	if c == nil {
		return restoreitem.DryRun(ctx, b, nil, restore, result)
	}

	return restoreitem.DryRun(ctx, b, adopter.NewTarget(c), restore, result)
}

// Command velero-plugin-for-crossplane makes Velero backup and restore safe for Crossplane. Velero
// starts it as a plugin; started by anything else it is a command, which looks into backups and
// finishes restores.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/report"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/restoreitem"
)

func main() {
	// go-plugin tells a program with this variable that it is started as a plugin.
	if handshake := framework.Handshake(); os.Getenv(handshake.MagicCookieKey) == handshake.MagicCookieValue {
		serve()

		return
	}
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	return hooks.Run(ctx, os.Args[1:], hooks.System(), hooks.WithDryRunner(dryRun), hooks.WithVersion(version()))
}

// dryRun dry-runs a restore into the cluster, or into an empty one if that is nil.
func dryRun(ctx context.Context, b *archive.Backup, c *live.Cluster, restore *velerov1.Restore, tell func(report.ItemResult)) error {
	if c == nil {
		return restoreitem.DryRun(ctx, b, nil, restore, tell)
	}

	return restoreitem.DryRun(ctx, b, c, restore, tell)
}

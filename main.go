// Command velero-plugin-for-crossplane makes Velero backup and restore safe for Crossplane. Velero starts it as a plugin; started by anything else
// it is a command, which looks into backups and finishes restores.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/vmware-tanzu/velero/pkg/plugin/framework"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/hooks"
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

	return hooks.Run(ctx, os.Args[1:], hooks.System())
}

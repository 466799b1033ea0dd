package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	velerov1 "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt/process"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

// TestMain runs the plugin if Velero's client has started this program.
func TestMain(m *testing.M) {
	if handshake := framework.Handshake(); os.Getenv(handshake.MagicCookieKey) == handshake.MagicCookieValue {
		main()

		return
	}
	os.Exit(m.Run())
}

// startPlugin starts the plugin as Velero does, with a kubeconfig of an API server that does not
// answer. Velero's registry also looks for plugins in its own program, which is this one.
func startPlugin(t *testing.T) clientmgmt.Manager {
	t.Helper()
	config := filepath.Join(t.TempDir(), "kubeconfig")
	const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(config, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", config)
	log, _ := logtest.NewNullLogger()
	registry := process.NewRegistry(t.TempDir(), log, logrus.WarnLevel)
	if err := registry.DiscoverPlugins(); err != nil {
		t.Fatal(err)
	}
	manager := clientmgmt.NewManager(log, logrus.WarnLevel, registry)
	t.Cleanup(manager.CleanupClients)

	return manager
}

// A call of a plugin can have 4 MiB: the item, the item from the backup, and the Restore. For a
// longer call Velero reports "error preparing", the name of the item and this error (velero
// pkg/restore/restore.go, restoreItem), and goes on with the next item.
func TestItemsThatAreTooLong(t *testing.T) {
	manager := startPlugin(t)
	order, err := manager.GetRestoreItemActionV2("velero.crossplane.io/1-order")
	if err != nil {
		t.Fatal(err)
	}
	execute := func(length int) error {
		u := xptest.Object("example.org/v1", "Thing", xptest.Namespace, "t", xptest.Field(strings.Repeat("x", length), "spec", "a"))
		_, err := order.Execute(&velero.RestoreItemActionExecuteInput{
			Item: u, ItemFromBackup: &unstructured.Unstructured{Object: u.Object}, Restore: &velerov1.Restore{},
		})

		return err
	}
	const mib = 1 << 20
	for range 2 {
		if err := execute(mib + mib/2); err != nil {
			t.Errorf("an item of the API server's default size must pass; got %v", err)
		}
		if err := execute(4 * mib); err == nil || !strings.Contains(err.Error(), "larger than max") {
			t.Errorf("an item that is too long must cause an error that names the limit; got %v", err)
		}
	}
}

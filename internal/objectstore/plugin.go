package objectstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	hcplugin "github.com/hashicorp/go-plugin"
	"github.com/sirupsen/logrus"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework"
	"github.com/vmware-tanzu/velero/pkg/plugin/framework/common"
	"github.com/vmware-tanzu/velero/pkg/plugin/velero"
)

// find starts the plugin in a folder that has the object store of a provider. Velero's own registry
// of plugins starts the running program as a plugin too (velero
// pkg/plugin/clientmgmt/process/registry.go), and fails if that is in the folder.
func find(folder, provider string) (velero.ObjectStore, func(), error) { //nolint:ireturn // Velero's.
	if !strings.Contains(provider, "/") {
		provider = "velero.io/" + provider // As Velero reads it (velero pkg/plugin/clientmgmt/manager.go).
	}
	files, err := executables(folder)
	if err != nil {
		return nil, nil, err
	}
	var others []error
	for _, file := range files {
		store, end, err := start(file, provider)
		if err == nil {
			return store, end, nil
		}
		others = append(others, fmt.Errorf("%s: %w", filepath.Base(file), err))
	}

	return nil, nil, errors.Join(append([]error{fmt.Errorf("cannot find the object store %s among the plugins in %s", provider, folder)}, others...)...)
}

// executables returns the programs in a folder, besides the running one.
func executables(folder string) ([]string, error) {
	own := ""
	if path, err := os.Executable(); err == nil {
		own = filepath.Base(path)
	}
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == own {
			return err
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			files = append(files, path)
		}

		return err //nolint:wrapcheck // It is wrapped below.
	})
	if err != nil {
		return nil, fmt.Errorf("cannot look for Velero's plugins: %w", err)
	}

	return files, nil
}

var errNotOne = errors.New("it has no such object store")

// start starts a plugin and returns its object store of a name, and what ends the plugin.
func start(file, name string) (velero.ObjectStore, func(), error) { //nolint:ireturn // Velero's.
	log := logrus.New()
	log.SetOutput(io.Discard) // A plugin can log its configuration.
	client := hcplugin.NewClient(&hcplugin.ClientConfig{
		HandshakeConfig: framework.Handshake(), AllowedProtocols: []hcplugin.Protocol{hcplugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
		Cmd: exec.CommandContext(context.Background(), file),
		Plugins: map[string]hcplugin.Plugin{
			string(common.PluginKindPluginLister): &framework.PluginListerPlugin{},
			string(common.PluginKindObjectStore):  framework.NewObjectStorePlugin(common.ClientLogger(log)),
		},
	})
	store, err := storeOf(client, framework.PluginIdentifier{Command: file, Kind: common.PluginKindObjectStore, Name: name})
	if err != nil {
		client.Kill()

		return nil, nil, err
	}

	return store, client.Kill, nil
}

func storeOf(client *hcplugin.Client, of framework.PluginIdentifier) (velero.ObjectStore, error) { //nolint:ireturn // Velero's.
	protocol, err := client.Client()
	if err != nil {
		return nil, fmt.Errorf("cannot start it: %w", err)
	}
	lister, err := protocol.Dispense(string(common.PluginKindPluginLister))
	if err != nil {
		return nil, fmt.Errorf("cannot ask it for its actions: %w", err)
	}
	list, err := lister.(framework.PluginLister).ListPlugins() //nolint:forcetypeassert // The framework makes no other.
	if err != nil {
		return nil, fmt.Errorf("cannot ask it for its actions: %w", err)
	}
	if !slices.ContainsFunc(list, func(p framework.PluginIdentifier) bool { return p.Kind == of.Kind && p.Name == of.Name }) {
		return nil, errNotOne
	}
	dispensed, err := protocol.Dispense(string(of.Kind))
	if err != nil {
		return nil, fmt.Errorf("cannot use it: %w", err)
	}

	return dispensed.(common.ClientDispenser).ClientFor(of.Name).(velero.ObjectStore), nil //nolint:forcetypeassert // The framework makes no other.
}

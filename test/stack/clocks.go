package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Clocks are by how much the clocks of a Cluster's components are ahead of the machine's, in whole
// seconds. Velero's plugins have the clock of Velero, as in a Pod. It works only on Linux on amd64.
type Clocks map[string]time.Duration

// Every returns the Clocks of a Cluster with all its components the same.
func Every(ahead time.Duration) Clocks {
	c := Clocks{}
	for _, name := range []string{
		Etcd, APIServer, ControllerManager, Crossplane, RBACManager, Function, Gate, AutoReady, CloudProvider, KubernetesProvider, HelmProvider, Flux,
		UpjetProvider, Velero,
	} {
		c[name] = ahead
	}

	return c
}

// skew is the program that runs another one with another clock.
const skew = "skew"

// skew makes a component run with its clock.
func (c *Cluster) skew(m *component) error {
	ahead := c.options.Clocks[m.name]
	if ahead == 0 {
		return nil
	}
	program, err := c.program(skew)
	if err != nil {
		return err
	}
	m.args, m.path = slices.Concat([]string{ahead.String(), m.path, m.path}, m.args), program

	return nil
}

// linkPlugin gives Velero a program as the plugin of that name. Velero starts a plugin by the path
// that the plugin itself reports.
func (c *Cluster) linkPlugin(name, path string) error {
	link, ahead := filepath.Join(c.pluginDir(), name), c.options.Clocks[Velero]
	if ahead == 0 {
		return os.Symlink(path, link) // The caller names the plugin.
	}
	program, err := c.program(skew)
	if err != nil {
		return err
	}

	return os.WriteFile(link, fmt.Appendf(nil, "#!/bin/sh\nexec %s %s %s \"$0\" \"$@\"\n", program, ahead, path), 0o755) //nolint:gosec // It is run.
}

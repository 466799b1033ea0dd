package hooks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/live"
)

// completionTimeout limits a completion that reads the cluster: the user's shell waits for it.
const completionTimeout = 5 * time.Second

func (o *options) completeContext(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names, err := live.Contexts(o.kubeconfig)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}

	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRestore returns the names of the Restores in Velero's namespace.
func (o *options) completeRestore(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmp.Or(c.Context(), context.Background()), completionTimeout)
	defer cancel()
	cluster, err := o.cluster()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	err = cluster.Each(ctx, live.KindRestore, o.velero, metav1.ListOptions{}, func(u *unstructured.Unstructured) { names = append(names, u.GetName()) })
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	slices.Sort(names)

	return names, cobra.ShellCompDirectiveNoFileComp
}

package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Installation returns the Deployment of Crossplane, or the zero value if there is none.
func (c *Cluster) Installation(ctx context.Context) (adoption.Installation, error) {
	found, err := c.List(ctx, adoption.KindDeployment, "", metav1.ListOptions{LabelSelector: adoption.LabelCrossplane})
	if err != nil {
		return adoption.Installation{}, err
	}

	return adoption.FindInstallation(found), nil
}

// WithoutPlugin returns the Deployment of Velero's server in a namespace if that does not bring this
// plugin. ok is false if it does, or if there is no such Deployment.
func (c *Cluster) WithoutPlugin(ctx context.Context, velero string) (server xp.Ref, ok bool, err error) {
	found, err := c.List(ctx, adoption.KindDeployment, velero, metav1.ListOptions{})
	if err != nil {
		return xp.Ref{}, false, err
	}
	server, ok = adoption.WithoutPlugin(found)

	return server, ok, nil
}

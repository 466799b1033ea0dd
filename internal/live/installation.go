package live

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/adoption"
)

// Installation returns the Deployment of Crossplane, or the zero value if there is none.
func (c *Cluster) Installation(ctx context.Context) (adoption.Installation, error) {
	found, err := c.List(ctx, adoption.KindDeployment, "", metav1.ListOptions{LabelSelector: adoption.LabelCrossplane})
	if err != nil {
		return adoption.Installation{}, err
	}

	return adoption.FindInstallation(found), nil
}

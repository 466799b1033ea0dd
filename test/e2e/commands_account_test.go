package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack"
)

// An account is a ServiceAccount, used as its Pods use it.
type account struct {
	config     *rest.Config
	kubeconfig string
}

// account returns the ServiceAccount with a token.
func (s *suite) account(t *testing.T, namespace, name string) *account {
	t.Helper()

	return accountIn(t, s.target, namespace, name)
}

func accountIn(t *testing.T, c *stack.Cluster, namespace, name string) *account {
	t.Helper()
	a, err := newAccount(t.Context(), c, namespace, name, filepath.Join(t.TempDir(), "kubeconfig"))
	must(t, err)

	return a
}

// newAccount makes a token for a ServiceAccount, and writes a kubeconfig with it.
func newAccount(ctx context.Context, c *stack.Cluster, namespace, name, kubeconfig string) (*account, error) {
	admin, err := kubernetes.NewForConfig(c.REST())
	if err != nil {
		return nil, err
	}
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := c.REST()
	config.BearerToken = token.Status.Token

	return &account{config: config, kubeconfig: kubeconfig}, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u", Namespace: namespace}},
		CurrentContext: "c",
	}, kubeconfig)
}

// A right is a verb on all objects of a resource, in one namespace. The namespace "" means all
// namespaces and cluster-scoped objects.
type right struct {
	Verb, Group, Resource, Namespace string
}

// verbs are all verbs of resources.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// rights asks the API server which verbs the account may use, for each served resource in each of
// the namespaces.
func (a *account) rights(t *testing.T, served []schema.GroupResource, namespaces ...string) []right {
	t.Helper()
	config := rest.CopyConfig(a.config)
	config.QPS, config.Burst = -1, -1
	clients, err := kubernetes.NewForConfig(config)
	must(t, err)
	var mu sync.Mutex
	var rights []right
	var failed error
	var wg sync.WaitGroup
	questions := make(chan right)
	for range 8 {
		wg.Go(func() {
			for q := range questions {
				allowed, err := may(t.Context(), clients, q)
				mu.Lock()
				if err != nil {
					failed = err
				}
				if allowed {
					rights = append(rights, q)
				}
				mu.Unlock()
			}
		})
	}
	for _, gr := range served {
		for _, verb := range verbs {
			for _, namespace := range namespaces {
				questions <- right{Verb: verb, Group: gr.Group, Resource: gr.Resource, Namespace: namespace}
			}
		}
	}
	close(questions)
	wg.Wait()
	must(t, failed)

	return sorted(rights)
}

func sorted(rights []right) []right {
	slices.SortFunc(rights, func(a, b right) int {
		return strings.Compare(strings.Join([]string{a.Namespace, a.Group, a.Resource, a.Verb}, " "), strings.Join([]string{b.Namespace, b.Group, b.Resource, b.Verb}, " "))
	})

	return rights
}

func may(ctx context.Context, clients kubernetes.Interface, q right) (bool, error) {
	resource, subresource, _ := strings.Cut(q.Resource, "/")
	review, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: q.Verb, Group: q.Group, Resource: resource, Subresource: subresource, Namespace: q.Namespace,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}

	return review.Status.Allowed, nil
}

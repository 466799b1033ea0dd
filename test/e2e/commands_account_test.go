package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
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

// rights asks the API server for the account's rules in each of the namespaces, and returns which
// verbs they allow for each served resource. It ignores rules for objects of given names.
func (a *account) rights(t *testing.T, served []schema.GroupResource, namespaces ...string) []right {
	t.Helper()
	clients, err := kubernetes.NewForConfig(a.config)
	must(t, err)
	var rights []right
	for _, namespace := range namespaces {
		review, err := clients.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
		}, metav1.CreateOptions{})
		must(t, err)
		if review.Status.Incomplete {
			t.Fatalf("the rights in %s are not complete: %s", namespace, review.Status.EvaluationError)
		}
		rules := slices.DeleteFunc(review.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool { return len(r.ResourceNames) > 0 })
		for _, gr := range served {
			for _, verb := range verbs {
				if slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool { return allows(r, verb, gr) }) {
					rights = append(rights, right{Verb: verb, Group: gr.Group, Resource: gr.Resource, Namespace: namespace})
				}
			}
		}
	}

	return rights
}

// allows reports whether a rule allows the verb for a resource or subresource of any name, as the
// RBAC authorizer decides (kubernetes pkg/apis/rbac/v1, VerbMatches and ResourceMatches).
func allows(rule authorizationv1.ResourceRule, verb string, gr schema.GroupResource) bool {
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	_, sub, isSub := strings.Cut(gr.Resource, "/")

	return has(rule.Verbs, verb) && has(rule.APIGroups, gr.Group) && (has(rule.Resources, gr.Resource) || isSub && slices.Contains(rule.Resources, "*/"+sub))
}

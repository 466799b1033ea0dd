package adoption

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/hold"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xptest"
)

const (
	restoreName = "velero/monday"
	restoredAt  = "2026-01-02T03:04:05Z"
)

var key = hold.Key(strings.Repeat("k", hold.KeySize))

// signed returns u with a signed mark, in its own namespace.
func signed(u *unstructured.Unstructured, o ...xptest.Option) *unstructured.Unstructured {
	u = held(u)
	if err := key.Sign(u, u.GetNamespace()); err != nil {
		panic(err) // The test is wrong.
	}

	return xptest.With(u, o...)
}

// markOf is the option that writes the mark of u on another object.
func markOf(u *unstructured.Unstructured) xptest.Option {
	return xptest.Annotated(hold.Annotation, xp.Annotation(u, hold.Annotation))
}

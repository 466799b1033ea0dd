package setting

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errAPI = errors.New("the API server is on holiday")

type source struct {
	config map[string]string
	// failures is how many reads fail first.
	failures int
	// asked are the namespaces of the reads.
	asked []string
}

func (s *source) Settings(_ context.Context, namespace string) (map[string]string, error) {
	s.asked = append(s.asked, namespace)
	if len(s.asked) <= s.failures {
		return nil, errAPI
	}

	return s.config, nil
}

func TestOf(t *testing.T) {
	of := func(annotations map[string]string) metav1.Object {
		return &metav1.ObjectMeta{Namespace: "velero", Annotations: annotations}
	}
	plain, annotated, odd := of(nil), of(map[string]string{"velero.crossplane.io/clone": "new"}), of(map[string]string{"velero.crossplane.io/clone": "?"})
	configured, none := &source{config: map[string]string{"clone": "observe"}, failures: 2}, &source{}
	ofConfigured, ofNone := Of(configured), Of(none)
	for _, step := range []struct {
		reason   string
		settings func(of metav1.Object) (Settings, error)
		of       metav1.Object
		want     Clone
		err      string
	}{
		{"The API server is away.", ofConfigured, plain, "", errAPI.Error()},
		{"A failure must not be cached.", ofConfigured, annotated, "", errAPI.Error()},
		{"The ConfigMap applies.", ofConfigured, plain, Observe, ""},
		{"The annotation of one object overrides the ConfigMap.", ofConfigured, annotated, New, ""},
		{"It does so for that object only.", ofConfigured, plain, Observe, ""},
		{"A cluster without a ConfigMap has the defaults.", ofNone, plain, Hold, ""},
		{"A wrong annotation is an error.", ofNone, odd, "", `cannot read the annotation velero.crossplane.io/clone: clone is hold, observe or new, not "?"`},
		{"It is one of that object only.", ofNone, plain, Hold, ""},
	} {
		got, err := step.settings(step.of)
		if err == nil && got.Clone != step.want || (err == nil) != (step.err == "") || err != nil && err.Error() != step.err {
			t.Errorf("%s\ngot %q, %v", step.reason, got.Clone, err)
		}
	}
	if diff := cmp.Diff([][]string{{"velero", "velero", "velero"}, {"velero"}}, [][]string{configured.asked, none.asked}); diff != "" {
		t.Errorf("every item asks, so the source is read once, and again only after a failure: -want, +got:\n%s", diff)
	}
}

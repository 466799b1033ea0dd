package setting

import (
	"context"
	"errors"
	"testing"
	"time"

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
	plain := &metav1.ObjectMeta{Namespace: "velero"}
	annotated := &metav1.ObjectMeta{Namespace: "velero", Annotations: map[string]string{"velero.crossplane.io/clone": "new"}}
	odd := &metav1.ObjectMeta{Namespace: "velero", Annotations: map[string]string{"velero.crossplane.io/clone": "?"}}
	const oddErr = `cannot read the annotation velero.crossplane.io/clone: clone is hold, observe or new, not "?"`
	type want struct {
		Settings []Settings
		Errs     []string
		Asked    []string
	}
	cases := map[string]struct {
		reason string
		source *source
		of     []metav1.Object
		want   want
	}{
		"None": {
			reason: "A cluster without a ConfigMap has the defaults, and the source must cache that.", source: &source{},
			of:   []metav1.Object{plain, plain},
			want: want{Settings: []Settings{{Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}, {Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}}, Errs: []string{"", ""}, Asked: []string{"velero"}},
		},
		"Once": {
			reason: "Every item asks for settings, so the source must read the ConfigMap once.", source: &source{config: map[string]string{"clone": "observe"}},
			of: []metav1.Object{plain, plain, plain},
			want: want{
				Settings: []Settings{{Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute}, {Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute}, {Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute}}, Errs: []string{"", "", ""}, Asked: []string{"velero"},
			},
		},
		"Annotations": {
			reason: "The annotations of one object must override the ConfigMap for it only.",
			source: &source{config: map[string]string{"clone": "observe", "provider-credentials": "include"}}, of: []metav1.Object{annotated, plain},
			want: want{
				Settings: []Settings{{Clone: New, Hold: HoldUnsafe, KindTimeout: time.Minute, Credentials: true}, {Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute, Credentials: true}}, Errs: []string{"", ""}, Asked: []string{"velero"},
			},
		},
		"Failure": {
			reason: "The source must not cache a failure.", source: &source{config: map[string]string{"clone": "observe"}, failures: 2},
			of: []metav1.Object{plain, annotated, plain, plain},
			want: want{
				Settings: []Settings{{}, {}, {Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute}, {Clone: Observe, Hold: HoldUnsafe, KindTimeout: time.Minute}}, Errs: []string{errAPI.Error(), errAPI.Error(), "", ""},
				Asked: []string{"velero", "velero", "velero"},
			},
		},
		"Odd": {
			reason: "A wrong annotation must not cause another read.", source: &source{}, of: []metav1.Object{odd, odd, plain},
			want: want{Settings: []Settings{{}, {}, {Clone: Hold, Hold: HoldUnsafe, KindTimeout: time.Minute}}, Errs: []string{oddErr, oddErr, ""}, Asked: []string{"velero"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := Of(tc.source)
			var got want
			for _, of := range tc.of {
				s, err := settings(of)
				if err != nil {
					got.Settings, got.Errs = append(got.Settings, Settings{}), append(got.Errs, err.Error())

					continue
				}
				got.Settings, got.Errs = append(got.Settings, s), append(got.Errs, "")
			}
			got.Asked = tc.source.asked
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

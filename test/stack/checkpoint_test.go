package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckpoint(t *testing.T) {
	const (
		old    = `{"apiVersion": "v1", "kind": "XR", "metadata": {"name": "old"}}`
		object = `{"apiVersion": "v1", "kind": "XR", "metadata": {"name": "new"}}`
	)
	cases := map[string]struct {
		reason  string
		request string
		visits  []string
		seen    bool
		status  int
	}{
		"Created": {
			reason: "A created object has no former state.", request: `{"uid": "1", "kind": {"group": "g", "kind": "XR"}, "object": ` + object + `, "oldObject": null}`,
			visits: []string{"nothing -> new, status false"}, status: http.StatusOK,
		},
		"Status": {
			reason:  "A status update must differ from other updates.",
			request: `{"uid": "1", "kind": {"group": "g", "kind": "XR"}, "subResource": "status", "object": ` + object + `, "oldObject": ` + old + `}`,
			visits:  []string{"old -> new, status true"}, status: http.StatusOK,
		},
		"DryRun": {
			reason:  "A dry run stores nothing, so it must not be a step.",
			request: `{"uid": "1", "kind": {"group": "g", "kind": "XR"}, "dryRun": true, "object": ` + object + `}`, status: http.StatusOK,
		},
		"Probe": {
			reason:  "The probe must not be a step of the test.",
			request: `{"uid": "1", "kind": {"kind": "ConfigMap"}, "dryRun": true, "object": ` + object + `}`, seen: true, status: http.StatusOK,
		},
		"NoKind": {
			reason: "An object must have its kind.", request: `{"uid": "1", "kind": {"group": "g", "kind": "XR"}, "object": {}}`,
			status: http.StatusBadRequest,
		},
		"NoRequest": {reason: "A review must have a request.", request: `null`, status: http.StatusBadRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var visits []string
			p := &Checkpoint{visit: func(_ context.Context, a Admission) {
				before := "nothing"
				if a.Old != nil {
					before = a.Old.GetName()
				}
				visits = append(visits, fmt.Sprintf("%s -> %s, status %v", before, a.New.GetName(), a.Status))
			}}
			w := httptest.NewRecorder()
			body := `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": ` + tc.request + `}`
			p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)))
			if diff := cmp.Diff(tc.visits, visits); diff != "" || p.seen != tc.seen || w.Code != tc.status {
				t.Errorf("%s Status %d, probe seen: %v, visits -want, +got:\n%s", tc.reason, w.Code, p.seen, diff)
			}
			if w.Code != http.StatusOK {
				return
			}
			var answer struct {
				Kind     string `json:"kind"`
				Response struct {
					UID     string `json:"uid"`
					Allowed bool   `json:"allowed"`
				} `json:"response"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Kind != "AdmissionReview" || answer.Response.UID != "1" || !answer.Response.Allowed {
				t.Errorf("%s the request must be allowed: %v, %s", tc.reason, err, w.Body)
			}
		})
	}
}

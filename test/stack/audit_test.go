package stack

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const auditLog = `{"kind":"Event","stage":"ResponseComplete","requestURI":"/apis/example.org/v1/namespaces/team/buckets/logs/status?x=y",` +
	`"verb":"patch","user":{"username":"stack"},"userAgent":"some-agent","objectRef":{"resource":"buckets","namespace":"team","name":"logs",` +
	`"apiGroup":"example.org","apiVersion":"v1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestObject":{"spec":{}},` +
	`"requestReceivedTimestamp":"2026-01-02T03:04:05.678901Z","stageTimestamp":"2026-01-02T03:04:05.7Z"}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/version?last=a","verb":"get","userAgent":"stack","responseStatus":{"code":200},` +
	`"requestReceivedTimestamp":"2026-01-02T03:04:06.000000Z"}
{"kind":"Event","stage":"ResponseComplete","requestURI":"/version?last=b","verb":"get","userAgent":"stack","resp`

func TestRequestsBefore(t *testing.T) {
	patch := Request{
		At: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC), Done: time.Date(2026, 1, 2, 3, 4, 5, 700000000, time.UTC), User: "stack", UserAgent: "some-agent", Verb: "patch", Group: "example.org", Resource: "buckets",
		Subresource: "status", Namespace: "team", Name: "logs", URI: "/apis/example.org/v1/namespaces/team/buckets/logs/status?x=y", Code: 200, Body: `{"spec":{}}`,
	}
	cases := map[string]struct {
		reason string
		uri    string
		want   []Request
		fails  bool
	}{
		"Found":   {reason: "Only the requests before the mark count.", uri: "/version?last=a", want: []Request{patch}},
		"Partial": {reason: "The mark is not there until its whole line is written.", uri: "/version?last=b", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, read, err := requestsBefore(strings.NewReader(auditLog), tc.uri)
			if (err != nil) != tc.fails {
				t.Errorf("%s\nerror: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if !tc.fails && !strings.HasPrefix(auditLog[read:], `{"kind":"Event","stage":"ResponseComplete","requestURI":"/version?last=b"`) {
				t.Errorf("%s\nthe next read would begin at %q", tc.reason, auditLog[read:])
			}
		})
	}
}

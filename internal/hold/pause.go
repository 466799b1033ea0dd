package hold

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// IsSeenPaused reports whether the controller of u has reported that u, as it is, is paused. Before
// that it may be reconciling an older version of u. Any other report after that proves a reconcile: u
// was created paused, and while it is the controller reports nothing else.
func IsSeenPaused(u *unstructured.Unstructured) bool {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)

	return ok && c.Reason == xp.ReasonReconcilePaused && xp.IsCurrent(u, c)
}

// FailingOf returns the reason why Crossplane can't reconcile u, with a hash of the message without
// its variable parts, so that the same failure is equal; "" if it can or has not reported.
func FailingOf(u *unstructured.Unstructured) string {
	c, ok := xp.ConditionOf(u, xp.ConditionSynced)
	if !ok || c.Status == "True" || c.Reason == xp.ReasonReconcilePaused {
		return ""
	}
	sum := sha256.Sum256([]byte(volatileText.ReplaceAllString(c.Message, "#")))

	return c.Reason + " " + hex.EncodeToString(sum[:8])
}

// volatileText matches UIDs, hashes, versions, ports and times in a message.
var volatileText = regexp.MustCompile(`[0-9a-fA-F-]*\d[0-9a-fA-F-]*`)

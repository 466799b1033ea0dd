package backupitem

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/sirupsen/logrus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// mostAtRisk is how many MRs of a kind at the same risk a backup warns of one by one. Beyond that
// it gives the count.
const mostAtRisk = 10

// riskTexts are why external resources could be created a second time, or never be found, for
// messages about several MRs of a kind.
var riskTexts = map[reason.Code]string{ //nolint:gochecknoglobals // It is constant.
	reason.CreatePending:   "are being created",
	reason.IdentityMissing: "have no external-name",
	reason.NotObserved:     "have an external-name under which upjet has found nothing yet",
}

// fieldName is the field of the log with the external-name that the backup has for an MR without
// one.
const fieldName = "externalName"

// riskOf returns the risk of an MR, "" if there is none.
func riskOf(mr *unstructured.Unstructured) reason.Code {
	switch xp.IdentityOf(mr) {
	case xp.CreatePending:
		return reason.CreatePending
	case xp.Recoverable, xp.Unknown:
		return reason.IdentityMissing
	case xp.Known:
		if xp.IsNeverObserved(mr) {
			return reason.NotObserved
		}
	case xp.NeverCreated:
	}

	return ""
}

// risks counts the MRs of a backup so far, by kind and risk.
type risks struct {
	mu    sync.Mutex
	count map[riskKey]int
}

type riskKey struct {
	schema.GroupKind

	risk reason.Code
	// named is whether the backup has an external-name for them.
	named bool
}

func (r *risks) add(key riskKey) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = map[riskKey]int{}
	}
	r.count[key]++

	return r.count[key]
}

// warnOfRisk warns of an MR at risk, with a text that begins with its name. Above mostAtRisk of a
// kind, it warns of all others once, and logs each as info.
func (t *Tree) warnOfRisk(ctx context.Context, u *unstructured.Unstructured, fields logrus.Fields, format string, args ...any) {
	key := riskKey{GroupKind: u.GroupVersionKind().GroupKind(), risk: riskOf(u), named: fields[fieldName] != nil}
	log := t.log.WithFields(logrus.Fields{"object": xp.String(u), "identity": string(xp.IdentityOf(u))})
	message := key.risk.Messagef(format, args...)
	message.Text = xp.String(u) + " " + message.Text
	n := t.risks.add(key)
	if n <= mostAtRisk {
		warn(log, fields, message)

		return
	}
	if n == mostAtRisk+1 {
		t.warnOfOthers(ctx, u, key)
	}
	write(log, logrus.InfoLevel, fields, message)
}

// warnOfOthers warns of how many MRs of a kind are at a risk. It counts all in the cluster, since
// those in the backup are known only at its end.
func (t *Tree) warnOfOthers(ctx context.Context, u *unstructured.Unstructured, key riskKey) {
	count := 0
	err := t.resolver.each(ctx, u.GroupVersionKind(), "", metav1.ListOptions{}, func(mr *unstructured.Unstructured) {
		if riskOf(mr) == key.risk {
			count++
		}
	})
	many := strconv.Itoa(count)
	if err != nil || count <= mostAtRisk {
		many = fmt.Sprintf("More than %d", mostAtRisk)
	}
	warn(t.log, logrus.Fields{"kind": key.String()}, key.risk.Messagef("%s of the MRs of %s in this cluster %s. This backup warns of %d of them by "+
		"name, and logs each other as information. To list all that are in the backup, run: %s", many, key.GroupKind, riskTexts[key.risk], mostAtRisk,
		xp.NewCommand(xp.Program, "inspect")))
}

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

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// mostAtRisk is how many MRs of a kind at the same risk a backup warns of one by one. Beyond that
// it gives the count.
const mostAtRisk = 10

// A risk is why an external resource could be created a second time, or never be found. It is part
// of messages about several MRs of a kind.
type risk string

const (
	riskInFlight risk = "are being created"
	riskUnnamed  risk = "have no external-name"
	riskUnfound  risk = "have an external-name under which upjet has not found anything yet"
)

// riskOf returns the risk of an MR, "" if there is none.
func riskOf(mr *unstructured.Unstructured) risk {
	switch xp.IdentityOf(mr) {
	case xp.CreatePending:
		return riskInFlight
	case xp.Recoverable, xp.Unknown:
		return riskUnnamed
	case xp.Known:
		if xp.IsNeverObserved(mr) {
			return riskUnfound
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

	risk risk
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

// warnOfRisk warns of an MR at risk. Above mostAtRisk of a kind, it warns of all others once, and
// logs each as info.
func (t *Tree) warnOfRisk(ctx context.Context, u *unstructured.Unstructured, fields logrus.Fields, message string) {
	key := riskKey{GroupKind: u.GroupVersionKind().GroupKind(), risk: riskOf(u)}
	log := t.log.WithFields(logrus.Fields{"object": xp.String(u), "identity": string(xp.IdentityOf(u))}).WithFields(fields)
	n := t.risks.add(key)
	if n <= mostAtRisk {
		log.Warn(message)

		return
	}
	if n == mostAtRisk+1 {
		t.warnOfOthers(ctx, u, key)
	}
	log.Info(message)
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
	message := fmt.Sprintf("%s of the MRs of %s in this cluster %s. This backup warns of no more than %d of them one by one. What it says of each other is in "+
		"its log without being a warning; %s names all that are in the backup", many, key.GroupKind, key.risk, mostAtRisk, xp.NewCommand(xp.Program, "inspect"))
	t.log.WithFields(logrus.Fields{"kind": key.GroupKind.String(), "risk": string(key.risk)}).Warn(message)
}

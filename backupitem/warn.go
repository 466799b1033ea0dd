package backupitem

import (
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// warn logs a message as a warning, which Velero counts.
func warn(log logrus.FieldLogger, fields logrus.Fields, m reason.Message) {
	write(log, logrus.WarnLevel, fields, m)
}

// write logs a message with its code, both at its end and as the field reason.
func write(log logrus.FieldLogger, level logrus.Level, fields logrus.Fields, m reason.Message) {
	for name, value := range fields {
		if s, ok := value.(string); ok {
			fields[name] = reason.Clip(s, reason.LongestField)
		}
	}
	log.WithFields(fields).WithField("reason", string(m.Code)).Log(level, m.String())
}

// unknownSetting returns what is not known of an object if a setting can't be read, and what the
// backup does then.
func unknownSetting(of *unstructured.Unstructured, what string, err error, then string) warning {
	why := reason.SettingsNotRead.Messagef("%s can't be read: %v. %s. Then back up again", what, err, then)
	if code := reason.CodeOf(err); code != "" {
		why = code.Messagef("%v. %s. Correct the settings, then back up again", err, then)
	}

	return warning{of: xp.RefTo(of), to: what, why: why}
}

// mostAtRisk is how many objects of a kind at the same risk a backup warns of one by one.
const mostAtRisk = 10

// A risk is a kind, and what is wrong with objects of it.
type risk struct {
	schema.GroupKind

	what string
}

// warnOfRisk warns of an object at a risk, with a text that follows its name.
func (t *Tree) warnOfRisk(u *unstructured.Unstructured, what string, m reason.Message) {
	m.Text = xp.String(u) + " " + m.Text
	t.warnFew(risk{GroupKind: u.GroupVersionKind().GroupKind(), what: what}, logrus.Fields{"object": xp.String(u)}, m,
		"To list all that are in the backup, run: "+xp.NewCommand(xp.Program, "inspect").String())
}

// warnFew logs a message about an object at a risk. The first mostAtRisk are warnings. The next comes
// with one warning of all others, which ends with the next step, and these are information.
func (t *Tree) warnFew(r risk, fields logrus.Fields, m reason.Message, next string) {
	t.counting.Lock()
	t.atRisk[r]++
	n := t.atRisk[r]
	t.counting.Unlock()
	level := logrus.WarnLevel
	if n > mostAtRisk {
		level = logrus.InfoLevel
	}
	if n == mostAtRisk+1 {
		warn(t.log, logrus.Fields{"kind": r.String()}, m.Code.Messagef("More than %d objects of %s %s. This backup warns of %d of them by name, and logs each "+
			"other as information. %s", mostAtRisk, r.GroupKind, r.what, mostAtRisk, next))
	}
	write(t.log, level, fields, m)
}

// warnOfStore warns of claims, XRs and MRs that publish with an External Secret Store, an alpha
// feature of Crossplane up to v1.20.
func (t *Tree) warnOfStore(u *unstructured.Unstructured) {
	if xp.UsesSecretStore(u) {
		t.warnOfRisk(u, "publish in an External Secret Store", reason.SecretStoreNotCovered.Messagef("publishes in an External Secret Store "+
			"(spec.publishConnectionDetailsTo), which the plugin does not cover. A restore leaves what is there as it is, and the store then refuses the restored "+
			"object. Use spec.writeConnectionSecretToRef instead, then back up again"))
	}
}

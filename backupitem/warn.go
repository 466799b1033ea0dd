package backupitem

import (
	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
func unknownSetting(of *unstructured.Unstructured, what string, err error, then string) gap {
	if code := reason.CodeOf(err); code != "" {
		return gap{of: xp.RefTo(of), what: what, why: code.Messagef("%v. %s. Correct the settings, then back up again", err, then)}
	}

	return gap{of: xp.RefTo(of), what: what, why: reason.SettingsNotRead.Messagef("%s can't be read: %v. %s. Then back up again", what, err, then)}
}

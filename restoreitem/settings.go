package restoreitem

import (
	"errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// unreadSettings returns settings that hold everything until a user looks. To restore nothing would
// lose more. To ignore a setting like hold=all could do what it prevents.
func unreadSettings() setting.Settings {
	return setting.Settings{Clone: setting.Hold, Hold: setting.HoldAll, KindTimeout: setting.DefaultKindTimeout}
}

// isUnreadable reports whether there are settings that can't be read.
func isUnreadable(err error) bool {
	invalid := setting.InvalidError{}

	return errors.As(err, &invalid)
}

// settingsFor returns the settings for an item. If they can't be read, it holds everything, and
// notes that once.
func (a *Adopt) settingsFor(i *item) (setting.Settings, error) {
	settings, err := a.settings(i.restore)
	if !isUnreadable(err) {
		return settings, err
	}
	if !a.warnedUnreadable {
		i.unreadable = true
		i.fail(reason.HeldForSettings.Messagef("%s; so the restore ignores all settings and holds all objects of Crossplane, as with %s=%s. Correct the settings "+
			"for the next restore. If this one needs none, run: %s", reason.ErrorMessage(err), setting.NameHold, setting.HoldAll,
			xp.NewCommand(xp.Program, "release", "--restore").On(i.restoreName())))
	}

	return unreadSettings(), nil
}

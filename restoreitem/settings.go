package restoreitem

import (
	"errors"

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
		i.fail(nil, err.Error()+"; so no setting is heard, and everything of Crossplane's that this restore brings back is held, as with "+setting.NameHold+"="+
			string(setting.HoldAll)+". Correct the settings for the next restore, and if this one needs none, let it go: "+
			xp.NewCommand(xp.Program, "release", "--restore").On(i.restoreName()).String())
	}

	return unreadSettings(), nil
}

package restoreitem

import (
	"errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// unreadSettings are the settings with which nothing is done until somebody has looked. To restore
// nothing would lose more, and to go on without what a person may have wanted, as to hold all, may
// be what that was meant against.
func unreadSettings() setting.Settings {
	return setting.Settings{Clone: setting.Hold, Hold: setting.HoldAll, KindTimeout: setting.DefaultKindTimeout}
}

// isUnreadable reports whether nobody can read the settings that there are.
func isUnreadable(err error) bool {
	invalid := setting.InvalidError{}

	return errors.As(err, &invalid)
}

// settingsFor returns the settings for an item, and has the restore tell once if nobody can read
// them.
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

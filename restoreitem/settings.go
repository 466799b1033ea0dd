package restoreitem

import (
	"errors"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/setting"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// settingsFor returns the settings for an item. Of settings that nobody can read it makes those with which nothing is done until somebody has looked: to
// restore nothing would lose more, and to go on without what a person may have wanted, as to hold all, may be what they were meant against.
func (a *Adopt) settingsFor(i *item) (setting.Settings, error) {
	settings, err := a.settings(i.restore)
	if invalid := (setting.InvalidError{}); !errors.As(err, &invalid) {
		return settings, err
	}
	a.misread.Do(func() {
		i.fail(nil, err.Error()+"; so no setting is heard, and everything of Crossplane's that this restore brings back is held, as with "+setting.NameHold+"="+
			string(setting.HoldAll)+". Correct the settings for the next restore, and if this one needs none, let it go: "+
			xp.NewCommand(xp.Program, "release", "--restore").On(i.restoreName()).String())
	})

	return setting.Settings{Clone: setting.Hold, Hold: setting.HoldAll}, nil
}

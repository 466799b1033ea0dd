// Package explorer takes the steps of everybody who has a part in a restore, in every order that
// there is, in worlds that are small enough for that. What the plugin does in them is done by its
// real code: restoreitem says how an item comes back, and adoption what is next. The others are
// rules, each with the source that it stands for. docs/explorer.md says what is found.
package explorer

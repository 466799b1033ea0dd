// Package drill is the story that the demo tells and the tests check, step by step: a platform,
// instances of it, a backup, the loss of them, a restore, and the judgement of what came back. It
// judges by what the API server and the cloud's journal say, with no code of the plugin.
package drill

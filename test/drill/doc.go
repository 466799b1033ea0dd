// Package drill runs the steps that the demo shows and the tests check: it makes a platform and
// instances of it, backs them up, loses them, restores them, and compares the result with what
// there was. It reads only the API server and the cloud's journal, and uses no code of the plugin.
package drill

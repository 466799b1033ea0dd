// Package hold is what a hold on an object is: the pause and the pin with which the object is
// created, the signed mark that stores them with the user's own settings, and the patches that give
// these settings back, with their field managers. It decides neither when a hold ends nor what must
// be true then; internal/adoption does. It has neither a client nor a clock, and imports only
// internal/reason and internal/xp. Begin with Hold (hold.go), Put (put.go), Key.HoldOf (mark.go) and
// Key.Lift (lift.go).
package hold

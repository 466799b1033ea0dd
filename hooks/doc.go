// Package hooks holds the commands of the program, such as inspect, validate, wait and release,
// which users, Jobs and Velero's restore hooks run. Only main imports it. It must not import the
// plugin's actions: main passes in what needs them (Option). Start reading in root.go; each command
// has a file of its name.
package hooks

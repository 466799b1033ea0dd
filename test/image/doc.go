// Package image builds the plugin's image from its Dockerfile without a container engine, and runs
// it. It knows no more of a Dockerfile than the one of this repository has: anything else is an
// error, so that what is tested here is what an engine builds.
package image

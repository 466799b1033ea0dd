// Package image builds the plugin's image from its Dockerfile without a container engine, and runs
// it. It supports only the instructions of this repository's Dockerfile and fails for others, so
// that it builds the same image as an engine.
package image

// Package pack keeps many objects in little memory: each object is one string of bytes in which
// shared strings are numbers. Unpacking is many times faster than decoding JSON. It knows nothing
// of Kubernetes; any package may import it. Start reading at Packer and Object.
package pack

// Package pack keeps many objects in little memory: an object is one string of bytes, in which what
// objects have in common is a number, until somebody looks into it. To unpack one is many times as
// fast as to decode its JSON.
package pack

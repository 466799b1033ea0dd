package main

import (
	"context"
	"fmt"
	"os"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/stack/build"
)

func main() {
	_, err := build.Ensure(context.Background(), os.Stderr, "provider-helm")
	fmt.Println(err)
}

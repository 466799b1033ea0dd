// Command bench measures on the real stack what the plugin costs, and compares that with its
// targets. It keeps its measurements, so that it continues where it was stopped.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/bench/meter"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == bench.DecodeCommand {
		exit(decode(os.Args[2]))
	}
	full := bench.Full()
	var s bench.Sizes
	flag.IntVar(&s.XRs, "xrs", full.XRs, "How many composite resources to restore.")
	flag.IntVar(&s.MRs, "mrs", full.MRs, "How many managed resources each of them composes.")
	flag.IntVar(&s.Pairs, "pairs", full.Pairs, "How often to measure what is compared.")
	flag.IntVar(&s.Large, "large", full.Large, "How many composite resources there are at the larger size.")
	flag.IntVar(&s.Held, "held", full.Held, "How many held composite resources to poll.")
	flag.IntVar(&s.Objects, "objects", full.Objects, "How many objects there are in the backup to inspect.")
	only := flag.String("only", "", "The stages to measure, separated by commas; all if empty: "+strings.Join(bench.Names(), ", ")+".")
	keep := flag.Bool("keep", false, "Write the figures into docs/dev/performance.md for any sizes.")
	upjet := flag.String("upjet", "", "Measure with managed resources that upjet reconciles, restored with this value of observe-first, such as upjet or false. "+
		"It is not written into the documentation.")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, s, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' }), *upjet, *keep)
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// decode only decodes a backup. Its cost is compared with that of inspect.
func decode(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot open the backup: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.
	n, err := meter.Decode(f)
	fmt.Println(n, "objects")

	return err
}

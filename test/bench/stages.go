package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Stage is a part of the measurements that can be chosen.
type Stage struct {
	// Name of the stage in the flag.
	Name string
	// entries returns the names of its ledger entries.
	entries func(s Sizes) []string
	// each returns about how long one of these takes.
	each func(s Sizes) time.Duration
	run  func(r *Runner, ctx context.Context, entry string, i int) error
}

// numbered returns n names.
func numbered(name string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", name, i+1))
	}

	return names
}

// about estimates how long it takes to prepare and restore that many objects at Velero's limit of
// 100 requests per second.
func about(items, calls int) time.Duration {
	const ready = 20 * time.Second

	return ready + time.Duration(items*calls)*11*time.Millisecond
}

// Stages returns all stages in the order of their measurement.
func Stages() []Stage {
	pairs := func(name string) func(s Sizes) []string {
		return func(s Sizes) []string { return numbered(name, s.Pairs) }
	}
	once := func(name func(s Sizes) string) func(s Sizes) []string {
		return func(s Sizes) []string { return []string{name(s)} }
	}

	return []Stage{
		{
			Name: "start", entries: once(func(Sizes) string { return "start" }),
			each: func(Sizes) time.Duration { return 5 * time.Second }, run: (*Runner).start,
		},
		{
			Name: "inspect", entries: func(s Sizes) []string { return numbered(fmt.Sprintf("inspect-%d", s.Objects), s.Pairs) },
			each: func(s Sizes) time.Duration { return time.Duration(s.Objects) * 400 * time.Microsecond }, run: (*Runner).inspect,
		},
		{
			Name: "inspect", entries: func(s Sizes) []string { return numbered(fmt.Sprintf("inspect-%d", s.Objects/10), s.Pairs) },
			each: func(s Sizes) time.Duration { return time.Duration(s.Objects) * 20 * time.Microsecond }, run: (*Runner).inspectTenth,
		},
		{
			Name: "restore", entries: pairs("restore"),
			each: func(s Sizes) time.Duration { return 2 * about(s.Items(s.XRs), 2) }, run: (*Runner).restore,
		},
		{
			Name: "status", entries: pairs("status"),
			each: func(s Sizes) time.Duration { return 2 * about(s.Items(s.XRs), 3) }, run: (*Runner).status,
		},
		{
			Name: "fast", entries: pairs("fast"),
			each: func(s Sizes) time.Duration { return about(s.Items(s.XRs), 1) }, run: (*Runner).fast,
		},
		{
			Name: "release", entries: pairs("release"),
			each: func(s Sizes) time.Duration { return about(s.Items(s.XRs), 2) + about(s.Items(s.XRs), 1) }, run: (*Runner).release,
		},
		{
			Name: "backup", entries: pairs("backup"),
			each: func(Sizes) time.Duration { return time.Minute }, run: (*Runner).backup,
		},
		{
			Name: "peer", entries: once(func(Sizes) string { return "peer" }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.XRs), 3) }, run: (*Runner).peer,
		},
		{
			Name: "held", entries: once(func(s Sizes) string { return fmt.Sprintf("held-%d", s.Held) }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.Held), 2) + polls*12*time.Second }, run: (*Runner).held,
		},
		{
			Name: "growth", entries: once(func(s Sizes) string { return fmt.Sprintf("held-%d", s.XRs) }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.XRs), 2) + polls*12*time.Second }, run: (*Runner).base,
		},
		{
			Name: "growth", entries: once(func(s Sizes) string { return fmt.Sprintf("grown-%d", s.XRs) }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.XRs), 2) }, run: (*Runner).baseGrown,
		},
		{
			Name: "large", entries: once(func(s Sizes) string { return fmt.Sprintf("held-%d", s.Large) }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.Large), 2) + polls*12*time.Second }, run: (*Runner).large,
		},
		{
			Name: "large", entries: once(func(s Sizes) string { return fmt.Sprintf("grown-%d", s.Large) }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.Large), 2) }, run: (*Runner).largeGrown,
		},
		{
			Name: "alone", entries: once(func(s Sizes) string { return fmt.Sprintf("alone-%d", s.Large) }),
			each: func(s Sizes) time.Duration { return about(s.Items(s.Large), 2) }, run: (*Runner).alone,
		},
	}
}

// Names returns the names of all stages.
func Names() []string {
	var names []string
	for _, s := range Stages() {
		names = append(names, s.Name)
	}

	return slices.Compact(names)
}

package explorer

import (
	"encoding/json"
	"flag"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the replays again")

// replays is the folder from which test/e2e replays on the real stack.
const replays = "../../test/e2e/testdata/replays"

// A replay is a trace to a damage, as test/e2e reads it.
type replay struct {
	Crossplane string  `json:"crossplane"`
	Without    string  `json:"mutation"`
	Reason     string  `json:"reason"`
	Damage     string  `json:"damage"`
	Steps      []frame `json:"steps"`
}

// A frame is a step, with the state of its object after it, and the objects that it has changed.
type frame struct {
	Actor   actor    `json:"actor"`
	Verb    string   `json:"verb"`
	Object  string   `json:"object,omitempty"`
	Changed []string `json:"changed,omitempty"`
	// Owner is "live" or "old", "" if there is none.
	Owner  string `json:"owner,omitempty"`
	Held   bool   `json:"held,omitempty"`
	Paused bool   `json:"paused,omitempty"`
}

func (x *exploration) frames(to uint32) []frame {
	var frames []frame
	for at := to; at != 0; at = x.from[at] {
		was, s, l := &x.states[x.from[at]], &x.states[at], x.by[at]
		f := frame{Actor: l.actor, Verb: l.verb, Object: x.nameOf(int(l.object))}
		for i := range s.objects {
			if s.objects[i] != was.objects[i] {
				f.Changed = append(f.Changed, x.nameOf(i))
			}
		}
		if l.object >= 0 {
			o := s.objects[l.object]
			f.Held, f.Paused = o.mark != 0, o.paused
			switch {
			case o.controller == 0:
			case o.controller.life() == oldLife:
				f.Owner = "old"
			default:
				f.Owner = "live"
			}
		}
		frames = append([]frame{f}, frames...)
	}

	return frames
}

// compareReplay checks that the stored replay is the trace to the first expected damage.
func (b mutationCase) compareReplay(t *testing.T, x *exploration) {
	t.Helper()
	first := damage(1 << bits.TrailingZeros16(uint16(b.want)))
	at, ok := x.found[first]
	if !ok {
		return
	}
	got, err := json.MarshalIndent(replay{b.of.rules.String(), b.name, b.reason, damages[first], x.frames(at)}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	name := strings.ReplaceAll(strings.ReplaceAll(b.of.rules.String()+" "+b.name, ",", ""), " ", "-")
	file := filepath.Join(replays, name+".json")
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the replay %s is outdated; write it with: go test ./internal/explorer -run FindsDamage -update\n-file, +found:\n%s", file, diff)
	}
}

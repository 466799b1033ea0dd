package server

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/test/cloud/api"
)

// journalFile is the only file of a cloud. The resources follow from the journal.
const journalFile = "journal.jsonl"

// A record is a line of the journal file.
type record struct {
	api.Entry

	// Resource after a create or an update. It is nil if the call was refused.
	Resource *api.Resource `json:"resource,omitempty"`
}

type key struct {
	kind api.Kind
	id   string
}

// A store is a journal file with its contents in memory.
type store struct {
	file      *os.File
	entries   []api.Entry
	resources map[key]api.Resource

	// Few callers make nearly all calls, so the entries of one caller share its strings.
	callers map[api.Caller]api.Caller
	ids     map[key]key
}

func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the directory of the cloud: %w", err)
	}

	path := filepath.Join(dir, journalFile)

	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the journal: %w", err)
	}

	s := &store{resources: map[key]api.Resource{}, callers: map[api.Caller]api.Caller{}, ids: map[key]key{}}

	// A cloud that is killed during a write leaves a part of a line. That call was never answered,
	// so it is dropped.
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	for d := json.NewDecoder(bytes.NewReader(whole)); ; {
		rec := record{}
		if err := d.Decode(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("cannot decode entry %d of the journal: %w", len(s.entries)+1, err)
		}

		s.apply(rec)
	}

	if len(whole) < len(b) {
		if err := os.Truncate(path, int64(len(whole))); err != nil {
			return nil, fmt.Errorf("cannot drop the last part of the journal: %w", err)
		}
	}

	if s.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}

	return s, nil
}

// write writes a record with the next sequence number to the file, and then to memory.
func (s *store) write(rec record) error {
	rec.Seq = int64(len(s.entries)) + 1

	b, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("cannot encode an entry of the journal: %w", err)
	}

	if _, err := s.file.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("cannot write to the journal: %w", err)
	}

	s.apply(rec)

	return nil
}

// apply applies a record to the contents in memory. Only this changes a resource, at a call and at
// a restart alike.
func (s *store) apply(rec record) {
	k := s.share(&rec.Entry)
	s.entries = append(s.entries, rec.Entry)

	if rec.Status >= 400 {
		return
	}

	switch rec.Op {
	case api.Create, api.Update:
		s.resources[k] = *rec.Resource
	case api.Delete:
		if rec.Status != http.StatusAccepted {
			delete(s.resources, k)
		}
	case api.Read:
	}

	if r, ok := s.resources[k]; ok && rec.ManagedBy != "" {
		r.ManagedBy = rec.Caller
		s.resources[k] = r
	}
}

// share makes an entry share strings with earlier entries.
func (s *store) share(e *api.Entry) key {
	k, ok := s.ids[key{e.Kind, e.ID}]
	if !ok {
		k = key{e.Kind, e.ID}
		s.ids[k] = k
	}

	e.Kind, e.ID = k.kind, k.id

	c, ok := s.callers[e.Caller]
	if !ok {
		c = e.Caller
		s.callers[c] = c
	}

	e.Caller = c

	return k
}

func (s *store) get(k api.Kind, id string) (api.Resource, bool) {
	r, ok := s.resources[key{k, id}]
	return r, ok
}

func (s *store) list() []api.Resource {
	rs := make([]api.Resource, 0, len(s.resources))
	for _, r := range s.resources {
		rs = append(rs, r)
	}

	slices.SortFunc(rs, func(a, b api.Resource) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})

	return rs
}

// entriesAfter returns the entries after the sequence number: those of the operations, or all if
// there are none.
func (s *store) entriesAfter(since int64, ops map[api.Op]bool) []api.Entry {
	es := []api.Entry{}

	for _, e := range s.entries[min(max(since, 0), int64(len(s.entries))):] {
		if len(ops) == 0 || ops[e.Op] {
			es = append(es, e)
		}
	}

	return es
}

func randomHex() string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // It never fails.

	return hex.EncodeToString(b)
}

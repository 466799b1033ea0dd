// Package archive reads Velero's backups as "velero backup download" writes them: a gzipped tarball
// with a JSON file for each item. It reads a stream and writes no file. A backup is not trusted:
// anyone with write access to the bucket or to an object in the cluster can have changed it. hooks
// and the dry run import the package. Start reading at Read.
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Limits bound what is read of a backup, against input that fills the memory or never ends.
type Limits struct {
	// Entry is the maximal size of a file in bytes, Entries the maximal number of files, and Total
	// the maximal size of the decompressed tarball.
	Entry, Entries, Total int64
	// Kept bounds the memory of all objects in bytes, estimated as if they were not packed.
	Kept int64
	// Name is the maximal length of a file's name.
	Name int
}

// Default returns Limits beyond any real backup: the API server stores no object above a few MiB.
func Default() Limits {
	const mib, gib, million = 1 << 20, 1 << 30, 1_000_000

	return Limits{Entry: 32 * mib, Entries: 4 * million, Total: 64 * gib, Kept: 8 * gib, Name: 1 << 10} //nolint:mnd // Each value has its name beside it.
}

// downloadHint is the next step for a damaged file.
const downloadHint = `download it again with "velero backup download"`

// damaged returns the error of a file that can't be read further, with the cause if it is truncated or
// damaged.
func damaged(where string, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		where += "it is not complete: "
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader), errors.Is(err, gzip.ErrHeader):
		where += "it is damaged: "
	}

	return reason.BackupUnreadable.Errorf("%s%w; %s", where, err, downloadHint)
}

// refused returns the error of an entry that Velero does not write.
func refused(name, why string, args ...any) error {
	return reason.BackupUnreadable.Errorf("cannot accept the entry %q: %s; find out who wrote it", name, fmt.Sprintf(why, args...))
}

// Read reads a backup to its end. Unusable files become Flaws. It fails if the archive cannot be
// read or is not from Velero.
func Read(ctx context.Context, from io.Reader, limits Limits) (*Backup, error) {
	z, err := gzip.NewReader(from)
	if errors.Is(err, io.EOF) {
		return nil, reason.BackupUnreadable.Errorf("it is empty; %s", downloadHint)
	}
	if errors.Is(err, gzip.ErrHeader) {
		return nil, reason.BackupUnreadable.Errorf("it is not compressed with gzip, so it is not a backup of Velero; %s", downloadHint)
	}
	if err != nil {
		return nil, damaged("", err)
	}
	stream, stop := readAhead(&limited{from: z, left: limits.Total, ctx: ctx})
	defer stop() //nolint:errcheck // It never fails.
	r := &reader{
		limits: limits, stream: stream, packer: pack.New(), items: map[xp.Item]pack.Object{}, versions: map[xp.Item]string{},
		backup: &Backup{Versions: map[schema.GroupResource]string{}},
	}
	if err := r.read(); err != nil {
		return nil, err
	}

	return r.finish()
}

// A reader reads one backup.
type reader struct {
	limits Limits
	stream io.Reader
	backup *Backup
	packer *pack.Packer
	items  map[xp.Item]pack.Object
	// content is the buffer for an entry.
	content bytes.Buffer
	// versions are the directories of items that were found in a version's directory.
	versions map[xp.Item]string
	kept     int64
	entries  int64
}

func (r *reader) read() error {
	archive := tar.NewReader(r.stream)
	last := "the beginning"
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// gzip's checksum is at the end of the stream, and only it detects damage.
			if _, err = io.Copy(io.Discard, r.stream); err == nil {
				return nil
			}
			last = "the last entry"
		}
		if err != nil {
			return damaged("after "+last+": ", err)
		}
		if len(header.Name) > r.limits.Name {
			return refused(header.Name[:64]+"…", "its name has %d bytes, and Velero writes at most %d", len(header.Name), r.limits.Name)
		}
		last = fmt.Sprintf("%q", header.Name)
		r.entries++
		if r.entries > r.limits.Entries {
			return reason.BackupUnreadable.Errorf("it has more than %d entries, so it is not a backup of Velero", r.limits.Entries)
		}
		if err := r.entry(header, archive); err != nil {
			return err
		}
	}
}

func (r *reader) entry(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	default:
		return refused(header.Name, "it is a link or a device, and Velero writes only files")
	}
	name, err := clean(header.Name)
	if err != nil {
		return err
	}
	if header.Size > r.limits.Entry {
		return refused(header.Name, "it has %d bytes, and an object in a cluster has at most %d", header.Size, r.limits.Entry)
	}
	p, ok := parse(name)
	p.GroupResource = unique.Make(p.GroupResource).Value() // Many items share the memory of its name.
	switch {
	case name == fileFormat:
		content = io.LimitReader(content, longestFormat)
	case !ok:
		r.flaw(Flaw{Path: name, Why: "it is not where Velero stores items", Ignored: true})

		return r.keep(name, 0)
	case p.version != "":
		r.versioned(p)

		return r.keep(name, 0)
	}
	r.content.Reset()
	if _, err := r.content.ReadFrom(content); err != nil {
		return damaged(fmt.Sprintf("cannot read the entry %q: ", header.Name), err)
	}
	if name == fileFormat {
		r.backup.Format = strings.TrimSpace(r.content.String())

		return nil
	}

	return r.item(name, p.Item, r.content.Bytes())
}

// versioned records an item in a version's directory. Velero restores the copy above it, unless its
// feature EnableAPIGroupVersions is on.
func (r *reader) versioned(p place) {
	version, isPreferred := strings.CutSuffix(p.version, preferred)
	if isPreferred && r.backup.Versions[p.GroupResource] != version {
		r.backup.Versions[p.GroupResource] = strings.Clone(version)
	}
	if _, above := r.items[p.Item]; above {
		return
	}
	if _, ok := r.versions[p.Item]; !ok || isPreferred {
		r.versions[p.Item] = p.version
	}
}

func (r *reader) item(name string, i xp.Item, b []byte) error {
	if _, twice := r.items[i]; twice {
		r.flaw(Flaw{Path: name, Item: i, Why: "the backup has it twice, and Velero restores only the last; find out who wrote it", Ignored: true})
	}
	o, err := decode(r.packer, i, b)
	if err != nil {
		delete(r.items, i)
		r.flaw(Flaw{Path: name, Item: i, Why: err.Error()})

		return r.keep(name, 0)
	}
	i = named(i, o)
	r.items[i] = o

	return r.keep(name, r.packer.Weight())
}

// keep adds the memory of an entry to the total. It fails if that exceeds the limit.
func (r *reader) keep(name string, size int64) error {
	const entry = 512 // This is the cost of its entries in maps and lists.
	if r.kept += size + int64(len(name)) + entry; r.kept > r.limits.Kept {
		return reason.BackupTooLarge.Errorf("cannot keep the entry %q: the objects of the backup need more than %d bytes of memory; inspect a backup of fewer "+
			"namespaces", name, r.limits.Kept)
	}

	return nil
}

func (r *reader) flaw(f Flaw) { r.backup.Flaws = append(r.backup.Flaws, f) }

func (r *reader) finish() (*Backup, error) {
	if r.backup.Format == "" && len(r.items) == 0 {
		return nil, reason.BackupUnreadable.Errorf("it has neither items nor metadata/version, so it is not a backup of Velero; %s", downloadHint)
	}
	found := map[xp.Item]bool{}
	for _, f := range r.backup.Flaws {
		found[f.Item] = true
	}
	for i, version := range r.versions {
		if _, ok := r.items[i]; !ok && !found[i] {
			r.flaw(Flaw{
				Path: strings.Join([]string{dirResources, i.GroupResource.String(), version}, "/"), Item: i, Ignored: true,
				Why: "the backup has it only in the version " + version + ", which Velero restores only with its feature EnableAPIGroupVersions",
			})
		}
	}
	r.backup.Items = make([]Item, 0, len(r.items))
	for i, o := range r.items {
		r.backup.Items = append(r.backup.Items, Item{Item: i, object: o})
	}
	slices.SortFunc(r.backup.Items, func(a, b Item) int { return compare(a.Item, b.Item) })
	slices.SortFunc(r.backup.Flaws, func(a, b Flaw) int {
		return cmp.Or(compare(a.Item, b.Item), strings.Compare(a.Path+a.Why, b.Path+b.Why))
	})

	return r.backup, nil
}

// readAhead returns a reader that reads from another one in the background: decompressing a backup
// takes as long as decoding it. Once it is stopped, from may be read until the next block is full.
func readAhead(from io.Reader) (ahead io.Reader, stop func() error) {
	const block = 256 << 10
	out, in := io.Pipe()
	go func() {
		// A pipe has no buffer, so both of its ends have one: one block is read while another is
		// decoded.
		b := bufio.NewWriterSize(in, block)
		_, err := b.ReadFrom(from)
		in.CloseWithError(cmp.Or(err, b.Flush()))
	}()

	return bufio.NewReaderSize(out, block), out.Close
}

// limited is a stream that fails when it is too long or its context is done.
type limited struct {
	from io.Reader
	left int64
	ctx  context.Context //nolint:containedctx // An io.Reader has no context parameter.
}

var errTooLong = errors.New("it is longer than any backup")

func (l *limited) Read(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, errTooLong
	}

	return n, err //nolint:wrapcheck // Callers compare the error, as with io.EOF.
}

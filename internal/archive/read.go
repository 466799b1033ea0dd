package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/pack"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/xp"
)

// Limits are how much of a backup is read before it is taken for something that is made to fill the
// memory or to never end.
type Limits struct {
	// Entry is how long a file in the archive may be, Entries how many there may be, and Total how
	// long all of it may be.
	Entry, Entries, Total int64
	// Kept is how much memory all of it may take if it were not packed, about.
	Kept int64
	// Name is how long the name of an entry may be.
	Name int
}

// Default returns Limits that no backup reaches: the API server stores nothing longer than a few
// MiB.
func Default() Limits {
	const mib, gib, million = 1 << 20, 1 << 30, 1_000_000

	return Limits{Entry: 32 * mib, Entries: 4 * million, Total: 64 * gib, Kept: 8 * gib, Name: 1 << 10} //nolint:mnd // Each is beside what it is.
}

// again is the next step when a file is damaged.
const again = `download it again with "velero backup download"`

// Read reads a backup to its end. What can't be used of it is among its Flaws; it fails if the
// archive itself can't be read, or is none of Velero's.
func Read(ctx context.Context, from io.Reader, limits Limits) (*Backup, error) {
	z, err := gzip.NewReader(from)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty; " + again)
	}
	if errors.Is(err, gzip.ErrHeader) {
		return nil, errors.New("it is not gzip'd, so it is no backup of Velero's; " + again)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; %s", whole(err), again)
	}
	stream := readAhead(&limited{from: z, left: limits.Total, ctx: ctx})
	defer stream.Close() //nolint:errcheck // It never fails.
	r := &reader{
		limits: limits, stream: stream, packer: pack.New(), items: map[xp.Item]pack.Object{}, versions: map[xp.Item]string{},
		resources: map[schema.GroupResource]schema.GroupResource{},
		backup:    &Backup{Versions: map[schema.GroupResource]string{}},
	}
	if err := r.read(); err != nil {
		return nil, err
	}

	return r.finish()
}

// reader is one reading of a backup.
type reader struct {
	limits Limits
	stream io.Reader
	backup *Backup
	packer *pack.Packer
	items  map[xp.Item]pack.Object
	// content is what an entry is read into.
	content bytes.Buffer
	// resources are those that items were found of.
	resources map[schema.GroupResource]schema.GroupResource
	// versions are the directories that items were found in below that of their resource.
	versions map[xp.Item]string
	kept     int64
	entries  int64
	known    bool
}

func (r *reader) read() error {
	archive := tar.NewReader(r.stream)
	last := "the beginning"
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return r.drain()
		}
		if err != nil {
			return fmt.Errorf("after %s: %w; %s", last, whole(err), again)
		}
		if len(header.Name) > r.limits.Name {
			return fmt.Errorf("cannot accept the entry %q…: its name is %d bytes long, and none of Velero's is longer than %d; find out who has written it",
				header.Name[:64], len(header.Name), r.limits.Name)
		}
		last = fmt.Sprintf("%q", header.Name)
		r.entries++
		if r.entries > r.limits.Entries {
			return fmt.Errorf("it has more than %d entries, so it is no backup of Velero's", r.limits.Entries)
		}
		if err := r.entry(header, archive); err != nil {
			return err
		}
	}
}

// drain reads what follows the archive: gzip's checksum is at the very end, and only that reports
// whether what was read is what was written.
func (r *reader) drain() error {
	if _, err := io.Copy(io.Discard, r.stream); err != nil {
		return fmt.Errorf("after the last entry: %w; %s", whole(err), again)
	}

	return nil
}

func (r *reader) entry(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	default:
		return fmt.Errorf("cannot accept the entry %q: it is a link or a device, and Velero writes nothing but files; find out who has written it", header.Name)
	}
	name, err := clean(header.Name)
	if err != nil {
		return err
	}
	if header.Size > r.limits.Entry {
		return fmt.Errorf("cannot accept the entry %q: it is %d bytes long, and no object in a cluster is longer than %d; find out who has written it",
			header.Name, header.Size, r.limits.Entry)
	}
	if name == fileFormat {
		return r.format(name, content)
	}
	p, ok := parse(name)
	p.GroupResource = r.resource(p.GroupResource)
	switch {
	case !ok:
		r.flaw(Flaw{Path: name, Why: "it is not where Velero has its items", Ignored: true})

		return r.keep(name, 0)
	case p.version != "":
		r.versioned(p)

		return r.keep(name, 0)
	}
	r.content.Reset()
	if _, err := r.content.ReadFrom(content); err != nil {
		return fmt.Errorf("cannot read the entry %q: %w; %s", header.Name, whole(err), again)
	}

	return r.item(name, p.Item, r.content.Bytes())
}

func (r *reader) format(name string, content io.Reader) error {
	const enough = 64
	b, err := io.ReadAll(io.LimitReader(content, enough))
	if err != nil {
		return fmt.Errorf("cannot read the entry %q: %w; %s", name, whole(err), again)
	}
	r.backup.Format, r.known = strings.TrimSpace(string(b)), true

	return nil
}

// resource returns the resource that many items have as one that they share.
func (r *reader) resource(of schema.GroupResource) schema.GroupResource {
	shared, ok := r.resources[of]
	if !ok {
		shared = schema.GroupResource{Group: strings.Clone(of.Group), Resource: strings.Clone(of.Resource)}
		r.resources[shared] = shared
	}

	return shared
}

// versioned remembers a copy of an item for who restores by version. Velero restores the one above
// it unless it is told otherwise.
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
		r.flaw(Flaw{Path: name, Item: i, Why: "it is there twice, and only the last is restored; find out who has written it", Ignored: true})
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

// keep fails if there is more in memory than there may be, with what is kept of an entry.
func (r *reader) keep(name string, size int64) error {
	const entry = 512 // Beside its name it is in maps and lists.
	if r.kept += size + int64(len(name)) + entry; r.kept > r.limits.Kept {
		return fmt.Errorf("cannot keep the entry %q in memory: what is read takes more than %d bytes; inspect a backup of fewer namespaces", name, r.limits.Kept)
	}

	return nil
}

func (r *reader) flaw(f Flaw) { r.backup.Flaws = append(r.backup.Flaws, f) }

func (r *reader) finish() (*Backup, error) {
	if !r.known && len(r.items) == 0 {
		return nil, errors.New(`it has neither items nor metadata/version, so it is no backup of Velero's; ` + again)
	}
	found := map[xp.Item]bool{}
	for _, f := range r.backup.Flaws {
		found[f.Item] = true
	}
	for i, version := range r.versions {
		if _, ok := r.items[i]; !ok && !found[i] {
			r.flaw(Flaw{
				Path: strings.Join([]string{dirResources, i.GroupResource.String(), version}, "/"), Item: i, Ignored: true,
				Why: "it is there in the version " + version + " only; Velero restores it only with its feature EnableAPIGroupVersions",
			})
		}
	}
	r.backup.Items = make([]Item, 0, len(r.items))
	for i, o := range r.items {
		r.backup.Items = append(r.backup.Items, Item{Item: i, object: o})
	}
	slices.SortFunc(r.backup.Items, func(a, b Item) int { return compare(a.Item, b.Item) })
	slices.SortFunc(r.backup.Flaws, func(a, b Flaw) int {
		if n := compare(a.Item, b.Item); n != 0 {
			return n
		}

		return strings.Compare(a.Path+a.Why, b.Path+b.Why)
	})

	return r.backup, nil
}

// whole says of an error that the file ends too early, if that is what it is.
func whole(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("it is not whole: %w", err)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader), errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("it is damaged: %w", err)
	default:
		return err
	}
}

// limited is a stream that ends with an error when it is longer than it may be, or nobody waits for
// it any more.
type limited struct {
	from io.Reader
	left int64
	ctx  context.Context //nolint:containedctx // An io.Reader has no other way to be told.
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

	return n, err //nolint:wrapcheck // A reader's errors are compared, as with io.EOF.
}

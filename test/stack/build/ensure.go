package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// An Artifact is a program that was built.
type Artifact struct {
	// Path of the executable.
	Path string
	// Assets is the directory of the files that belong to it, such as CRDs; "" if it has none.
	Assets string
}

// A Set maps the names of programs to what was built.
type Set map[string]Artifact

// Ensure returns the named programs and builds those that are neither in the cache nor in a folder of
// ProgramsEnv. Without names it returns all that are not OnDemand. It writes its progress to out. It
// fails for an unknown name, for a folder that does not exist, or with the end of the go command's
// output if a program does not build.
func Ensure(ctx context.Context, out io.Writer, wanted ...string) (Set, error) {
	if len(wanted) == 0 {
		wanted = names(func(r Recipe) bool { return !r.OnDemand })
	}
	for _, name := range wanted {
		if !slices.Contains(Names(), name) {
			return nil, fmt.Errorf("cannot build %q: there is no program of that name; there are %v", name, Names())
		}
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	b := &builder{cache: cache, out: out, began: time.Now(), set: Set{}}
	missing, err := b.find(ctx, b.missing(wanted))
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		// A process that needs none of these programs does not wait for this lock.
		if err := b.withLock("lock", func() error { return b.remote(ctx, b.missing(namesOf(missing)), len(wanted)) }); err != nil {
			return nil, err
		}
	}
	if err := b.withLock("lock-local", func() error { return b.own(ctx, wanted) }); err != nil {
		return nil, err
	}

	return b.set, nil
}

type builder struct {
	cache string
	out   io.Writer
	began time.Time
	set   Set
}

// withLock runs a function while it holds a lock, and reports if it has to wait for the lock.
func (b *builder) withLock(name string, do func() error) error {
	unlock, err := lock(filepath.Join(b.cache, name), func() { b.report("waiting for another process that builds") })
	if err != nil {
		return err
	}
	defer unlock()

	return do()
}

// missing returns the recipes of those named that are not in the cache, and puts the others into
// the set.
func (b *builder) missing(names []string) []Recipe {
	var missing []Recipe
	for _, r := range recipes() {
		if !slices.Contains(names, r.Name) {
			continue
		}
		if a, ok := b.cached(r); ok {
			b.set[r.Name] = a

			continue
		}
		missing = append(missing, r)
	}

	return missing
}

// remote builds the missing programs one after the other, since each build takes all cores.
// Meanwhile it fetches the modules of the next program.
func (b *builder) remote(ctx context.Context, missing []Recipe, of int) error {
	if len(missing) == 0 {
		return nil
	}
	b.report("building %d of %d programs, once; they are kept in %s", len(missing), of, b.cache)

	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	fetched := make([]chan error, len(missing))
	for i := range fetched {
		fetched[i] = make(chan error, 1)
	}
	wg.Go(func() {
		for i, r := range missing {
			fetched[i] <- b.fetch(ctx, r)
		}
	})

	for i, r := range missing {
		step := fmt.Sprintf("[%d/%d] %s %s", i+1, len(missing), r.Name, r.Version)
		began := time.Now()
		stop := b.tick(step)
		err := <-fetched[i]
		if err == nil {
			err = b.build(ctx, r)
		}
		stop()
		if err != nil {
			return err
		}
		a, ok := b.cached(r)
		if !ok {
			return fmt.Errorf("cannot find %s %s after building it in %s", r.Name, r.Version, b.dir(r))
		}
		b.set[r.Name] = a
		b.report("%s built in %s", step, time.Since(began).Round(time.Second))
	}

	return nil
}

func (b *builder) report(format string, args ...any) {
	_, _ = fmt.Fprintf(b.out, "%8s  %s\n", time.Since(b.began).Round(time.Second), fmt.Sprintf(format, args...))
}

// tick reports every 15 s that a step is still running, until the returned function is called.
func (b *builder) tick(step string) func() {
	b.report("%s ...", step)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(15 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-done:
				return
			case <-t.C:
				b.report("%s ... still building", step)
			}
		}
	})

	return func() {
		close(done)
		wg.Wait()
	}
}

// programs returns the folder of the programs in the cache.
func (b *builder) programs() string { return filepath.Join(b.cache, "bin") }

func (b *builder) dir(r Recipe) string {
	return filepath.Join(b.programs(), r.Name, r.key())
}

func (b *builder) cached(r Recipe) (Artifact, bool) { return cachedIn(b.programs(), r) }

// cachedIn returns the program of a recipe in the folder of the programs of a cache.
func cachedIn(programs string, r Recipe) (Artifact, bool) {
	dir := filepath.Join(programs, r.Name, r.key())
	a := Artifact{Path: filepath.Join(dir, r.Name)}
	if r.Assets != "" {
		a.Assets = filepath.Join(dir, "assets")
	}
	_, err := os.Stat(a.Path)

	return a, err == nil
}

func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the user's cache directory: %w", err)
	}
	dir := filepath.Join(base, "velero-plugin-for-crossplane")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("cannot make the cache directory: %w", err)
	}

	return dir, nil
}

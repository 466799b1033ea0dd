package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/archive"
	"github.com/crossplane-contrib/velero-plugin-for-crossplane/internal/reason"
)

// oneBackup fails if the arguments and --backup name more than one backup.
func (i *inspect) oneBackup(_ *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fmt.Errorf("cannot inspect more than one BACKUP; there are %d arguments: %s", len(args), strings.Join(args, " "))
	case len(args) == 1 && i.backup != "":
		return fmt.Errorf("cannot inspect both the file %s and the Backup %s: give one", args[0], i.backup)
	case i.schedule != "" && (len(args) == 1 || i.backup != ""):
		return fmt.Errorf("cannot inspect both %s%s and the newest Backup of the schedule %s: give one", strings.Join(args, ""), i.backup, i.schedule)
	case i.backup == "" && i.schedule == "" && i.manifest == "" && (i.download.CACert != "" || i.download.Insecure):
		return errors.New("cannot use --cacert or --insecure-skip-tls-verify without --backup or --from-schedule")
	default:
		return nil
	}
}

// read reads a backup from a file, or from stdin if the name is "-".
func (o *options) read(ctx context.Context, file string) (*archive.Backup, error) {
	from := o.In
	if file == "-" {
		if isTerminal(from) {
			return nil, errors.New("cannot read a backup from the terminal: give a file, or pipe one into stdin")
		}
	} else {
		f, err := os.Open(file) //nolint:gosec // The user names the file.
		if err != nil {
			return nil, reason.BackupUnreadable.Errorf(`cannot read the backup: %w; "velero backup download NAME -o FILE" writes one`, err)
		}
		defer f.Close() //nolint:errcheck // The file is only read.
		if info, err := f.Stat(); err == nil && info.IsDir() {
			return nil, reason.BackupUnreadable.Errorf(`cannot read the backup: %s is a directory; "velero backup download NAME -o FILE" writes the file`, file)
		}
		from = f
	}
	if c, ok := from.(io.Closer); ok {
		// Closing is the only way to interrupt a read from an idle pipe.
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	}

	return readArchive(ctx, from, file)
}

// readArchive reads the archive of a backup.
func readArchive(ctx context.Context, from io.Reader, name string) (*archive.Backup, error) {
	backup, err := archive.Read(ctx, from, archive.Default())
	if err != nil {
		err = cmp.Or(ctx.Err(), err)
		code := cmp.Or(messageOf(err).Code, reason.BackupUnreadable)

		return nil, code.Errorf("cannot read the backup %s: %w", source(name), err)
	}

	return backup, nil
}

// findBackup finds the newest Backup of the schedule.
func (i *inspect) findBackup(ctx context.Context) error {
	cluster, err := i.cluster()
	if err != nil {
		return err
	}
	newest, err := cluster.NewestBackup(ctx, i.velero, i.schedule)
	if err != nil {
		return err // It names the schedule.
	}
	if newest == nil {
		return reason.NotFound.Errorf("there is no Completed Backup of the schedule %s/%s; velero backup get lists them", i.velero, i.schedule)
	}
	i.backup = newest.GetName()

	return nil
}

// readFromStore downloads a Backup and reads it on the way, so it needs no disk.
func (i *inspect) readFromStore(ctx context.Context, name string) (*archive.Backup, error) {
	cluster, err := i.cluster()
	if err != nil {
		return nil, err
	}

	return readFrom(ctx, name, func(ctx context.Context, w io.Writer) error {
		return cluster.BackupContents(ctx, i.velero, name, i.download, w)
	})
}

// readFrom reads what download writes. If the download fails, that is the error.
func readFrom(ctx context.Context, name string, download func(ctx context.Context, w io.Writer) error) (*archive.Backup, error) {
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := download(ctx, in)
		_ = in.CloseWithError(err) // It never fails.
		ended <- err
	}()
	backup, err := readArchive(ctx, out, name)
	if err == nil {
		if _, err = io.Copy(io.Discard, out); err != nil { // What follows the archive must have arrived, too.
			err = fmt.Errorf("cannot read the rest of backup %s: %w", name, err)
		}
	}
	_ = out.Close() // It never fails, and ends a download that is not needed any more.
	if cause := <-ended; cause != nil && !errors.Is(cause, io.ErrClosedPipe) {
		return nil, cause
	}

	return backup, err
}

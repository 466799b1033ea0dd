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

// oneBackup fails unless the arguments are one backup.
func oneBackup(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return errors.New("no BACKUP given; give its file, or - for stdin")
	case 1:
		return nil
	default:
		return fmt.Errorf("cannot inspect more than one BACKUP; there are %d arguments: %s", len(args), strings.Join(args, " "))
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

	backup, err := archive.Read(ctx, from, archive.Default())
	if err != nil {
		err = cmp.Or(ctx.Err(), err)
		code := cmp.Or(messageOf(err).Code, reason.BackupUnreadable)

		return nil, code.Errorf("cannot read the backup %s: %w", source(file), err)
	}

	return backup, nil
}

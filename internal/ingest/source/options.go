package source

import (
	"cmp"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/ingest/source/listing"
	"github.com/dsload/dsload/internal/ingest/source/skip"
)

const (
	defaultPieceBytes     = 256 << 10
	defaultMaxRecordBytes = 4 << 20
	defaultWindowBytes    = 8 << 20
	maxWindowBytes        = 2 << 30 // zstd --ultra --long=31

	// chunkBytes is what one read asks for, and the window's size while records are short.
	chunkBytes = 64 << 10
)

// Options configures a Set. The zero value of a field is its default. "Output" marks the fields
// that may change the records.
type Options struct {
	// Args are paths, globs (with ** for any folders), folders, "-" for Stdin, https:// and http://
	// addresses, or synth:// ones. Output.
	Args []string
	// Format of every input. Output. Default Auto.
	Format Format
	Framing
	Places
	// WindowBytes is the window of a zstd frame that is accepted in any input. Default 8 MiB, what
	// zstd makes without --ultra or --long. An input whose first frame asks for more gets it, and
	// MemoryBytes says so.
	WindowBytes int64
	// FindChat makes Auto distinguish conversations from other JSON. Output.
	FindChat bool
	// IsPair reports whether the fields of a record are a question and its answer; nil for all that have a question.
	IsPair func(names []string) bool
	// Conditions are those that records must meet, at most 64. Inputs and groups of rows in which no record
	// can are left out. Set.Lacking reports one whose field no input has. Output.
	Conditions []Condition
	// MetadataBytes bounds what is kept of the metadata of a file of columns while the set is opened. For
	// a file that has more MemoryBytes says how much it needs, and it cannot be read. Default 0: any.
	MetadataBytes int64
	// KeepBytes is how much of small files, which are read whole to find their format, is kept until they are
	// read. Default 0: nothing.
	KeepBytes int64
	// SkipDamaged makes bad records of what cannot be read of damaged inputs. Output. Default: damage
	// ends reading.
	SkipDamaged bool
	// Include and Exclude are globs that choose among the files of folders and globs: by the name
	// of a file or folder, or, where they hold a slash, by the path from the folder on. What
	// Exclude matches is left out, all of a folder too. Output. Default: all files that hold text.
	Include, Exclude []string
	// Has, where not nil, reports whether an input that a folder or a glob leads to need not be read,
	// since what is built has it already. checksum reads the input: it is that of LinesRead, or "" for a
	// remote one. Output.
	Has func(in Stat, checksum func() (string, error)) (bool, error)
	// Each, where not nil, is told of each file that the arguments lead to, by the set that it was added to, as the last
	// input; or why it is not. Then neither that nor a set without documents is an error of Open.
	Each func(s *Set, in *Input, why skip.Kind, err error) error
	// AllColumns reads all columns of files of columns, whatever Fields and TextField are. Output.
	AllColumns bool
	// Only, where set, replaces the inputs of Args with a range of the inputs of a plan. Output.
	Only *Range
	// Done, where not nil, ends the reading of remote files once it is closed.
	Done <-chan struct{}
	// Notice, where not nil, is called with what a user wants to know while a remote file is waited
	// for.
	Notice func(string)
	// Revision, where not nil, returns the commit at which an earlier run of the same build read a
	// repository, "" for none. Output.
	Revision func(repository string) string

	filter     glob.Filter // Include and Exclude, parsed
	chunkBytes int         // tests make it small
	spare      Spare
}

// Framing and Places are the options of frames and of lists of files. Their zero values have defaults here.
type (
	Framing = frame.Options
	Places  = listing.Options
)

func (o Options) withDefaults() Options {
	o.Format = cmp.Or(o.Format, Auto)
	o.PieceBytes = cmp.Or(o.PieceBytes, defaultPieceBytes)
	o.MaxPieceBytes = cmp.Or(o.MaxPieceBytes, 4*o.PieceBytes)
	o.MaxRecordBytes = cmp.Or(o.MaxRecordBytes, defaultMaxRecordBytes)
	o.WindowBytes = cmp.Or(o.WindowBytes, defaultWindowBytes)
	o.chunkBytes = cmp.Or(o.chunkBytes, chunkBytes)
	if o.Cut == nil {
		o.Cut = frame.CharacterCut
	}
	if o.Fields == nil && o.TextField != "" {
		o.Fields = []string{o.TextField}
	}
	if o.Whole {
		o.PieceBytes, o.MaxPieceBytes, o.TextField = o.MaxRecordBytes, o.MaxRecordBytes, ""
	}
	return o
}

// ofColumns returns the options for files of columns.
func (o *Options) ofColumns() *Options {
	if !o.AllColumns {
		return o
	}
	all := *o
	all.TextField, all.Fields, all.AnyOf = "", nil, nil
	return &all
}

func (o Options) validate() error {
	if _, err := ParseFormat(string(o.Format)); err != nil {
		return err
	}
	switch {
	case len(o.Args) == 0:
		return fault.Of(cause.Usage, "no sources given")
	case o.PieceBytes < 16, o.MaxPieceBytes < o.PieceBytes, o.MaxRecordBytes < 16:
		return fault.Of(cause.Usage, "invalid sizes: a piece of %d to %d bytes, a record of %d bytes; "+
			"each must be at least 16, and the longest piece at least as long as the usual one",
			o.PieceBytes, o.MaxPieceBytes, o.MaxRecordBytes)
	case o.Delimiter >= 0x80 || o.Delimiter == '"' || o.Delimiter == '\n' || o.Delimiter == '\r':
		return fault.Of(cause.Usage, "fields of CSV cannot be separated by %q; "+
			"use an ASCII character that is neither a quote nor a line end", string(rune(o.Delimiter)))
	case o.WindowBytes < 1<<10:
		return fault.Of(cause.Usage, "a zstd window of %d bytes is below the format's minimum of 1 KiB", o.WindowBytes)
	}
	return nil
}

// A Condition is what is asked of a field of each record.
type Condition struct {
	Field string     // its name in the condition
	Names []string   // what a column with the field may be called
	Paths [][]string // where its values may lie in a file of columns, as columnar.Condition has them
	// Folder reports whether the value that a folder's name gives meets the condition; null stands for no
	// value.
	Folder func(value string, null bool) bool
	// CanHold, where not nil, reports whether a row may meet the condition, of which a file of columns says
	// so much.
	CanHold func(Stats) bool
}

// Spare is what readers may spend on decompressing ahead.
type Spare = columnar.Spare

// Stats is what a file of columns says of the values of a column in a group of rows.
type Stats = columnar.Stats

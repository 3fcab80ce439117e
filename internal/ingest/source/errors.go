package source

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// RecordError is one bad record. Reading can continue after it.
type RecordError struct {
	URI    string
	Input  int
	Row    int64  // see Record.Row
	Offset int64  // where the record begins, after decompression; -1 where rows alone count
	Member string // the file of an archive that it lies in, "" for other inputs
	Cause  error
}

func (e *RecordError) Error() string {
	uri := e.URI
	if e.Member != "" {
		uri += ", member " + e.Member
	}
	if e.Offset < 0 {
		return fmt.Sprintf("read %s, row %d: %v", uri, e.Row, e.Cause)
	}
	return fmt.Sprintf("read %s, row %d at byte %d: %v", uri, e.Row, e.Offset, e.Cause)
}

func (e *RecordError) Unwrap() error { return e.Cause }

// Kind returns that of the cause, else fault.Corrupt.
func (e *RecordError) Kind() string { return cmp.Or(fault.KindOf(e.Cause), fault.Corrupt) }

// A DamageError is the cause of a bad record that stands for a part of an input that cannot be read.
type DamageError struct {
	Lost  string // what is lost from here on: WholeFile, WholeMember, or "" for rows that are known
	Whole bool   // all of the member was read: it is its checksum that differs
	Kept  int64  // rows of the file before it, where WholeFile is lost
	Rows  int64  // how many are lost, where Lost is ""; 0 if that is unknown
	Err   error
}

func (e *DamageError) Error() string {
	switch {
	case e.Lost == "" && e.Rows == 0:
		return fmt.Sprintf("%v; an unknown number of rows is lost", e.Err)
	case e.Lost == "" && e.Rows == 1:
		return fmt.Sprintf("%v; 1 row is lost", e.Err)
	case e.Lost == "":
		return fmt.Sprintf("%v; %d rows are lost", e.Err, e.Rows)
	case e.Lost == WholeMember && e.Whole:
		return fmt.Sprintf("%v; all of the member was read, and may be wrong", e.Err)
	case e.Lost == WholeMember:
		return fmt.Sprintf("%v; the rest of the member is lost", e.Err)
	case e.Kept == 0:
		return fmt.Sprintf("%v; no row of %s could be read before", e.Err, e.Lost)
	case e.Kept == 1:
		return fmt.Sprintf("%v; 1 row of %s was read before, the rest of it is lost", e.Err, e.Lost)
	}
	return fmt.Sprintf("%v; %d rows of %s were read before, the rest of it is lost", e.Err, e.Kept, e.Lost)
}

func (e *DamageError) Unwrap() error { return e.Err }

// What a DamageError may say is lost from its place on.
const (
	WholeFile   = "the file"
	WholeMember = "the member"
)

// IsDamage reports whether an error is that an input is damaged: SkipDamaged leaves out what cannot be
// read of it.
func IsDamage(err error) bool {
	var changed *cause.ChangedError
	var need *NeedError
	if errors.As(err, &changed) || errors.As(err, &need) {
		return false
	}
	return errors.Is(err, cause.Corrupt) || errors.Is(err, cause.Truncated) || errors.Is(err, cause.Malformed) ||
		errors.Is(err, cause.TooLarge)
}

// markDamaged notes in an error that the input is damaged, if SkipDamaged may read on after it.
func markDamaged(err error, may bool) error {
	var input *cause.InputError
	if may && errors.As(err, &input) {
		input.Damaged = IsDamage(err)
	}
	return err
}

// skips reports whether what an error is about is left out.
func (o *Options) skips(err error) bool { return o.SkipDamaged && IsDamage(err) }

// A ColumnError means that a file of columns has no such column, or that it does not hold text. It
// matches cause.UnknownField.
type ColumnError struct {
	Has   []string // the columns of text
	Chat  string   // a column of messages, or ""
	Later bool     // other inputs come before the file
	text  string
}

func (e *ColumnError) Error() string {
	has := strings.Join(e.Has[:min(len(e.Has), frame.MaxKeysNamed)], ", ")
	switch {
	case e.Chat != "":
		return fmt.Sprintf("%s; %q looks like the messages of a chat", e.text, e.Chat)
	case has == "":
		return e.text + ", and no other column is text"
	}
	return fmt.Sprintf("%s; the columns of text are %s", e.text, has)
}

// Unwrap returns cause.UnknownField.
func (e *ColumnError) Unwrap() error { return cause.UnknownField }

// NeedError means that a part of an input takes more memory than reading it may.
type NeedError struct {
	What   string
	Advice string
	Bytes  int64 // what it needs
}

func (e *NeedError) Error() string { return e.What + "; " + e.Advice }

// Kind returns fault.Limit.
func (e *NeedError) Kind() string { return fault.Limit }

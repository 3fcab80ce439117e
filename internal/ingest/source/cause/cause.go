// Package cause has the causes for which an input or a record cannot be read, and the errors that name
// the input.
package cause

import (
	"errors"

	"github.com/dsload/dsload/internal/fault"
)

var (
	// TooLarge is the cause where a record that cannot be cut is longer than
	// Options.MaxRecordBytes.
	TooLarge = fault.New(fault.Corrupt, "record too large")
	// Malformed is the cause where a record breaks the rules of its format.
	Malformed = fault.New(fault.Corrupt, "malformed record")
	// UnknownField is the cause where a streamed JSON record has no field of the wanted name.
	UnknownField = fault.New(fault.Corrupt, "unknown field")
	// Records is the cause where records are not below the keys of Options.Records.
	Records = fault.New(fault.Usage, "no records below these keys")
	// Truncated is the cause where compressed data ends before its end mark.
	Truncated = fault.New(fault.Corrupt, "truncated")
	// Corrupt is the cause where compressed data contradicts itself.
	Corrupt = fault.New(fault.Corrupt, "corrupt")
	// Binary is the cause where an input is not text.
	Binary = fault.New(fault.Corrupt, "not text")
	// Unsupported is the cause where an address, a compression or a format is known but cannot
	// be read.
	Unsupported = fault.New(fault.Corrupt, "not supported")
	// NoDocuments is the cause where all inputs together hold no document.
	NoDocuments = fault.New(fault.Corrupt, "no documents")
	// Usage is the cause where an argument or a setting is wrong.
	Usage = fault.New(fault.Usage, "wrong usage")
	// NothingToRead is the cause where a folder, glob or archive gives no file: there are no documents, and
	// the argument is likely a mistake.
	NothingToRead = errors.Join(Usage, NoDocuments)
)

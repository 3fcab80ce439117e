package shard

import (
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/shardfile"
)

// Sentinel errors; test for them with errors.Is. Some have a kind, which errors.As finds with a
// var kind interface{ Kind() string }: "usage" where something cannot be done as it was asked for, "corrupt" where
// data is damaged or is not what it claims to be.
var (
	ErrCorrupt   = shardfile.ErrCorrupt                                    // bytes are not what was written
	ErrTruncated = shardfile.ErrTruncated                                  // a file is shorter than it must be
	ErrTooLarge  = shardfile.ErrTooLarge                                   // a row, file or number beyond the limits of FORMAT.md
	ErrRange     = shardfile.ErrRange                                      // a row number or token id that does not exist
	ErrVersion   = shardfile.NewError("corrupt", "unknown format version") // written by another dsload
	ErrNotFound  = shardfile.NewError("usage", "no dataset here")          // a folder without manifest.json
	ErrReplaced  = errors.New("the dataset was replaced")                  // the folder no longer holds what was opened
	ErrClosed    = errors.New("closed")                                    // use after Close
	ErrNoSplit   = shardfile.NewError("usage", "no such split")            // neither in the dataset nor a name of one
	ErrSchema    = errors.New("row does not match the schema")             // columns missing, unknown or of the wrong length
)

// ErrUnfinished is the ErrNotFound of a folder whose build is unfinished.
var ErrUnfinished = fmt.Errorf("%w yet: its build is unfinished; "+
	"run the same build again to resume it", ErrNotFound)

// Package shard keeps a dataset on disk: Arrow IPC shards, the manifest that makes them a dataset,
// and the checkpoint that lets an unfinished build continue. FORMAT.md is the normative description
// of every byte.
//
//	Builder: Append(row) -> record batch -> open shard -> committed shard -> manifest.json
//	Dataset: manifest.json -> Split -> row by position
//
// Reading a row takes a dataset, a split and a number:
//
//	d, err := shard.Open("data")
//	train, err := d.Split("train")
//	err = train.ReadRow(0, &row)
//
// A Builder owns its folder from OpenBuilder to Close or Finish, by a lock that ends with its
// process. It belongs to one goroutine, and syncs files in others. A Dataset and its SplitReaders are
// safe for concurrent use. All access goes through an FS, so that tests can stop a build at every
// operation (package shardtest).
//
// Invariants:
//
//	I1  Readers trust the manifest only. It is written last, atomically; without it there is no dataset.
//	I2  The bytes of a finished folder depend on the appended rows, the options and the Provenance only: never on when
//	    checkpoints were taken, on crashes, or on the clock. run.json is the only exception.
//	I3  After a crash at any operation, OpenBuilder restores the state of the last Checkpoint that
//	    returned, or of the one in progress: no row before its cursor is lost, and none after it is
//	    kept.
//	I4  Where a record batch or a shard ends is a function of the rows before it.
//	I5  A Builder holds at most BuilderBytes bytes however many rows it takes.
//	I6  A reader accepts exactly the bytes that a writer makes for the same counts. It compares
//	    metadata with what they must be and does not parse them, so a forged header is an error,
//	    never a length to allocate or an offset to read.
package shard

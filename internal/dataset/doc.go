// Package dataset is the room that a dataset is written in: Arrow IPC shards, the manifest that makes them a
// dataset, and the checkpoint that lets an unfinished build continue. Package shard reads them. Create, Append and
// CreatePart open a folder, take its lock or claim, compare the settings of what is there with those that are
// wanted, and return a Writer and where it resumes:
//
//	Create      a dataset of its own
//	Append      more of a finished one
//	CreatePart  one partition of a plan; a Merger makes the dataset
//
// An error that is no failure says why nothing is to be written: ErrFinished, where the folder has it all;
// *shardfile.LockedError, where another process writes there; *SettingsError, where the folder holds another build.
//
// The Writer is a Builder:
//
//	Builder: Row -> record batch -> open shard -> committed shard -> manifest.json
//	Merger:  the parts of a folder -> manifest.json
//
// Whoever gets a Writer closes it. It owns its folder until then, by a lock that ends with its process. It belongs
// to one goroutine, and writes batches, hashes them and syncs files in others. All access goes through a shardfile.FS,
// so that tests can stop a build at every operation (package shardtest).
//
// Invariants:
//
//	I1  The manifest is written last, atomically; without it there is no dataset.
//	I2  The bytes of a finished folder depend on the appended rows, the options and the Provenance only: never on when
//	    checkpoints were taken, on crashes, or on the clock. run.json is the only exception.
//	I3  After a crash at any operation, OpenBuilder restores the state of the last Checkpoint that
//	    returned, or of the one in progress: no row before its cursor is lost, and none after it is
//	    kept.
//	I4  Where a record batch or a shard ends is a function of the rows before it.
//	I5  A Builder holds at most BuilderBytes bytes however many rows it takes.
package dataset

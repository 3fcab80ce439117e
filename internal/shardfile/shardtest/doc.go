// Package shardtest is an in-memory file system for crash tests. It counts operations, can be cut
// at any of them as by a power failure, can make any of them fail, and can be full. It returns the
// image that a disk might hold after the cut: unsynced changes may be present, missing or partial.
//
// A crash may lose, per file, the writes and truncations since its last Sync, each independently,
// and a write may be torn at any byte; per folder, the names created, moved and removed since its
// last SyncDir, each independently. Real file systems keep some order and lose less.
//
// Everything is determined by the calls and the seeds. An FS is safe for concurrent use.
package shardtest

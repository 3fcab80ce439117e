// Package textcache keeps datasets that were built from text that is served as it is.
//
// An entry is a dataset folder in the cache's folder, named by what it was built from: the settings
// of the build, and the names, sizes and times of its sources. So an entry never is out of date; a
// source that changed leads to another one. Beside each entry lies a lock file.
//
//   - Whoever builds an entry holds its lock exclusively, whoever reads it shares it. Locks die with
//     their process, so the death of a builder passes the lock to one that waits, which goes on from
//     the last checkpoint.
//   - The time of the lock file is when the entry was last used.
//   - Evict removes the entries used longest ago until the cache is within its limit. It takes their
//     locks exclusively first, and so leaves out those in use.
//
// Invariants:
//
//	I1  a folder with a manifest is complete: nobody writes into it again;
//	I2  a folder is removed only under its exclusive lock, and its manifest first.
package textcache

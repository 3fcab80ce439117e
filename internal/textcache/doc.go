// Package textcache keeps the datasets that are built when text is served directly.
//
// An entry is a dataset folder in the cache's folder, named by what it was built from: the settings
// of the build, and the names, sizes and times of its sources. So an entry is never out of date; a
// changed source leads to another entry. Each entry has a lock file next to it.
//
//   - A process that builds an entry holds its lock exclusively; processes that read it share the
//     lock. Locks end with their process, so when a builder dies, a waiting process takes over from
//     the last checkpoint.
//   - The modification time of the lock file is when the entry was last used.
//   - Evict removes the least recently used entries until the cache is within its limit. It takes
//     their locks exclusively first, and so skips those in use.
//
// Invariants:
//
//	I1  a folder with a manifest is complete and never written again;
//	I2  a folder is removed only under its exclusive lock, its manifest first;
//	I3  Acquire removes an entry that is damaged, so that it is built again;
//	I4  a cache that other users may write into is not used, nor an entry that another user made.
package textcache

// Package remote reads remote files: at https:// and http:// addresses, in repositories of the
// Hugging Face Hub, and in the buckets of S3, Google Cloud Storage and Azure. It also writes to
// buckets of S3 and Google Cloud Storage.
//
//	address -> Store.Stat -> Object (size, ETag, …)
//	Object -> Store.Open -> File: Read from an offset on, or ReadAt
//
// A File hides the faults of networks. A request that fails for a passing reason is repeated after
// a pause, a body that ends early is continued where it ended, and a connection that stalls is
// replaced by a new one. Every answer is compared with the object: a file that changes while it is
// read is an error, never a mixture.
//
// Ownership: a Store belongs to a build and is shared by its files. Close every File.
//
// Concurrency: a Store may be shared. A File belongs to one goroutine at a time; it owns the
// goroutine that reads ahead, and Close waits for it.
//
// Invariants:
//
//	I1  The bytes of a File are those of one version of its object, or there is an error.
//	I2  No message, URI or other string that leaves the package holds a credential: neither the name
//	    and password of an address, nor the signature of a signed one.
//	I3  A File holds at most FileBytes bytes, and a Store at most StoreBytes, whatever a server sends.
package remote

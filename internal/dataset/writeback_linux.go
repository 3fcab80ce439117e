package dataset

import (
	"os"
	"syscall"
)

// startWriteback makes the kernel begin to write n bytes of the shard to the disk, beside the caller. It does not wait
// for them, and an error is left to the file's Sync.
func (s *openShard) startWriteback(from, n int64) {
	file, ok := s.file.(*os.File)
	if !ok {
		return
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	const write = 2 // SYNC_FILE_RANGE_WRITE
	s.writebacks.Go(func() {
		syncer.Set()
		_ = conn.Control(func(fd uintptr) { _ = syscall.SyncFileRange(int(fd), from, n, write) })
	})
}

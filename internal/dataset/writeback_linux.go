package dataset

import (
	"os"
	"syscall"

	"github.com/dsload/dsload/internal/shardfile"
)

// startWriteback makes the kernel begin to write n bytes of a file to the disk. It does not wait for them, and an
// error is left to the file's Sync.
func startWriteback(f shardfile.File, from, n int64) {
	file, ok := f.(*os.File)
	if !ok {
		return
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return
	}
	const write = 2 // SYNC_FILE_RANGE_WRITE
	go func() {     // a file that was closed meanwhile is not touched
		syncer.Set()
		_ = conn.Control(func(fd uintptr) { _ = syscall.SyncFileRange(int(fd), from, n, write) })
	}()
}

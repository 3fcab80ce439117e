//go:build unix

package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/dsload/dsload/internal/fault"
)

// maxSocketPath is the length of the longest path that fits the address of a unix socket on every
// system.
const maxSocketPath = 103

// ListenUnix listens on a unix socket of mode 0600. It replaces the socket of a dead server, but
// never that of a live one or a file that is not a socket. A lock next to the socket (PATH.lock)
// decides between servers that start at the same time; it is removed before ListenUnix returns, so
// a killed server leaves only its socket. Closing the listener removes the socket.
func ListenUnix(path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("listen on %s: the path is %d bytes long and a socket's may have %d; "+
			"use a shorter one, such as one in /tmp", path, len(path), maxSocketPath)
	}
	lock, err := lockFile(path + ".lock")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Kindf(fault.Usage, "listen on %s: there is no folder %s; make it, or use another path", path,
			filepath.Dir(path))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return nil, fmt.Errorf("listen on %s: %w; use a path in a folder that can be written to", path, err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	defer func() {
		os.Remove(lock.Name()) // before unlocking, so that nobody locks a name that disappears
		lock.Close()
	}()
	l, err := listenLocked(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// listenLocked is ListenUnix while the lock is held.
func listenLocked(path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fault.Kindf(fault.Usage, "the path is a file that is not a socket; remove it or use another path")
	default:
		if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
			conn.Close()
			return nil, ErrInUse
		} else if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w (%w)", ErrInUse, err) // a full queue or no permission: a server is alive
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		// On Linux the file gets the socket's mode at bind, so nobody else can ever connect.
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	if runtime.GOOS != "linux" {
		// Elsewhere only the umask decides about the mode at bind. It is the whole process's: another
		// file that is made at this moment is more private than asked for.
		defer syscall.Umask(syscall.Umask(0o177))
	}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	u := &unixListener{UnixListener: l.(*net.UnixListener), path: path}
	u.SetUnlinkOnClose(false) // the path may belong to another server then
	if u.file, err = os.Lstat(path); err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}

type unixListener struct {
	*net.UnixListener
	path string
	file os.FileInfo // the socket's
	once sync.Once
}

// Close removes the socket if it still belongs to this listener: it may have been removed, and
// another server started at the same path.
func (l *unixListener) Close() error {
	l.once.Do(func() { // another server's socket may later get the same inode number
		if now, err := os.Lstat(l.path); err == nil && l.file != nil && os.SameFile(now, l.file) {
			os.Remove(l.path) // while it still listens, so that nobody mistakes it for a dead server's
		}
	})
	return l.UnixListener.Close()
}

// lockFile opens a file and locks it; the system unlocks it when the process dies.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, ErrInUse
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// The last holder may have removed the file between our open and our lock; then we locked a
		// removed file.
		have, err := f.Stat()
		if now, statErr := os.Stat(path); err == nil && statErr == nil && os.SameFile(have, now) {
			return f, nil
		}
		f.Close()
	}
}

const (
	// tcpReceiveBytes is the size of the receive buffer of TCP connections: requests are small. The
	// kernel doubles it, and its memory counts in a control group.
	tcpReceiveBytes = 16 << 10
	// tcpBacklog is how many connections may wait to be accepted; the kernel holds what they have
	// sent.
	tcpBacklog = 256
)

// ListenTCP listens on HOST:PORT and bounds what the kernel holds for connections that have not
// been accepted.
func ListenTCP(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			// accepted sockets inherit it; any size works
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, tcpReceiveBytes)
		})
	}}
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok {
			err = op.Err // the rest names the operation and the address
		}
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if raw, err := l.(*net.TCPListener).SyscallConn(); err == nil {
		// if this fails, the system's own limit applies
		_ = raw.Control(func(fd uintptr) { _ = syscall.Listen(int(fd), tcpBacklog) })
	}
	return l, nil
}

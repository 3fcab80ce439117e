//go:build unix

package private

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Folder returns an *AccessError unless a folder belongs to this user alone, and others may not write into it.
// It may be a link, of this user.
func Folder(dir string) error {
	link, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner := ownerOf(link); owner != os.Geteuid() {
		return &AccessError{dir, owner, info.Mode()}
	}
	if owner := ownerOf(info); owner != os.Geteuid() || !info.IsDir() || info.Mode().Perm()&othersWrite != 0 {
		return &AccessError{dir, owner, info.Mode()}
	}
	return nil
}

// Entry returns an *AccessError if dir is there, and is not a folder of this user's: another's, or a link.
func Entry(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if owner := ownerOf(info); owner != os.Geteuid() || !info.IsDir() {
		return &AccessError{dir, owner, info.Mode()}
	}
	return nil
}

// Parent returns an *AccessError if another user, who is not root, may rename or remove a folder of this user's in
// dir: it belongs to one, or others may write into it, and it has no sticky bit. The group that is a user's alone,
// as some systems make one for each user, is not another user.
func Parent(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner, mode := ownerOf(info), info.Mode()
	open := fs.FileMode(othersWrite)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && owner != 0 && owner == os.Geteuid() && int(st.Gid) == owner {
		open = 0o002
	}
	if owner != os.Geteuid() && owner != 0 || mode&fs.ModeSticky == 0 && mode.Perm()&open != 0 {
		return &AccessError{dir, owner, mode}
	}
	return nil
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

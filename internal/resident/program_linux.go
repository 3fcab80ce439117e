package resident

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// DropProgram takes the program's own pages out of the resident set, as far as they are those of its
// file. What is needed again comes from the page cache; what only the start needed stays out.
func DropProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	var begin, end uintptr
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) >= 2 && bytes.IndexByte(fields[0], '-') > 0 {
			begin, end = readOnly(fields, self)
		}
		// A mapping with pages of its own was written to, before it was made read-only: they would be lost.
		if end > 0 && len(fields) == 3 && string(fields[0]) == "Anonymous:" && string(fields[1]) == "0" {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, begin, end-begin, syscall.MADV_DONTNEED) // without it they stay
		}
	}
}

// readOnly returns the addresses of a private mapping of the program's file that cannot be written
// to, 0 for any other. fields are those of its line in smaps.
func readOnly(fields [][]byte, self string) (begin, end uintptr) {
	if mode := string(fields[1]); len(fields) < 6 || string(fields[5]) != self || mode != "r-xp" && mode != "r--p" {
		return 0, 0
	}
	from, to, _ := bytes.Cut(fields[0], []byte("-"))
	a, errA := strconv.ParseUint(string(from), 16, 64)
	b, errB := strconv.ParseUint(string(to), 16, 64)
	if errA != nil || errB != nil {
		return 0, 0
	}
	return uintptr(a), uintptr(b)
}

package bytebpe

import (
	"syscall"
	"unsafe"
)

// populate maps the memory of s as if it were written to. That takes half as long as a page fault
// for each page.
func populate[T any](s []T) {
	const populateWrite = 23 // MADV_POPULATE_WRITE
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
	_ = syscall.Madvise(b, populateWrite) // Linux before 5.14 does not know it, and faults come later
}

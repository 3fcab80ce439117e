package columnar

import "io"

// OpenArrow reads the metadata of an Arrow IPC file or stream.
func OpenArrow(at io.ReaderAt, size int64, o Options) (File, error) {
	return nil, unsupported("arrow")
}

// IsArrowStream reports whether an Arrow IPC stream begins here.
func IsArrowStream(head []byte) bool { return false }

package source

import (
	"io"
	"os"

	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/scratch"
	"github.com/dsload/dsload/internal/remote"
)

// needsCopy reports whether a remote file must be copied before it can be read at many places: each
// read is an answer of its own, and nothing shows that all are of one version, or how long it is.
func needsCopy(o *remote.Object) bool { return o.Size < 0 || !o.Identified() }

// readAtPlaces reports whether an input is read at many places rather than from its beginning on.
func (in *Input) readAtPlaces() bool {
	return in.Format.isColumnar() || in.Compression == decompress.Zipped
}

// copied returns a copy of a remote file in a temporary file that has no name, read from its
// beginning to its end, and its size.
func (r *rawFile) copied() (io.ReaderAt, int64, error) {
	if r.copy != nil {
		return r.copy, r.copy.Size(), nil
	}
	file, err := scratch.New(r.dir)
	if err != nil {
		return nil, 0, err
	}
	r.copy = file
	r.leaveCheck()
	buf := make([]byte, sniffBytes)
	for {
		n, err := r.remote.Read(buf)
		if _, failed := file.Write(buf[:n]); failed != nil {
			return nil, 0, &os.PathError{Op: "copy to a temporary file", Path: file.Name(), Err: failed}
		}
		if err == io.EOF {
			return file, file.Size(), nil
		}
		if err != nil {
			r.counted.Err = err
			return nil, 0, err
		}
	}
}

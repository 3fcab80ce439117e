package source

import (
	"path"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
)

// namedKinds are the formats and compressions that the extension of a name announces, and how their
// files are called. Framed snappy is missing: files of bare snappy blocks have the same extension.
var namedKinds = map[string]struct {
	format      Format
	compression decompress.Compression
	name        string
}{
	".parquet": {Parquet, decompress.Plain, "a parquet file"}, ".pq": {Parquet, decompress.Plain, "a parquet file"},
	".arrow": {Arrow, decompress.Plain, "an Arrow file"}, ".arrows": {Arrow, decompress.Plain, "an Arrow stream"},
	".feather": {Arrow, decompress.Plain, "an Arrow file"}, ".ipc": {Arrow, decompress.Plain, "an Arrow file"},
	".gz": {"", decompress.Gzip, "gzip data"}, ".gzip": {"", decompress.Gzip, "gzip data"},
	".tgz": {"", decompress.Gzip, "gzip data"},
	".zst": {"", decompress.Zstd, "zstd data"}, ".zstd": {"", decompress.Zstd, "zstd data"},
	".tzst": {"", decompress.Zstd, "zstd data"},
	".bz2":  {"", decompress.Bzip2, "bzip2 data"}, ".bzip2": {"", decompress.Bzip2, "bzip2 data"},
	".tbz": {"", decompress.Bzip2, "bzip2 data"}, ".tbz2": {"", decompress.Bzip2, "bzip2 data"},
	".xz": {"", decompress.XZ, "xz data"}, ".txz": {"", decompress.XZ, "xz data"},
	".lz4": {"", decompress.LZ4, "lz4 data"},
	".zip": {"", decompress.Zipped, "a zip archive"},
}

// checkBegin refuses an input whose name announces a format or compression, and whose first bytes
// are neither those of it nor text: it is damaged. The format or compression of the input is then
// what its name announces, so that reading it names the damage.
func (in *Input) checkBegin(o *Options, head []byte) error {
	if checkText(head) == nil || decompress.UTF16Order(head) != nil || isTar(head) {
		return nil
	}
	switch {
	case strings.HasPrefix(string(head), "PARE"):
		return fault.Of(cause.Unsupported, "this is an encrypted parquet file; write it again without encryption")
	case strings.HasPrefix(string(head), "FEA1"):
		return fault.Of(cause.Unsupported, "this is a Feather file of version 1; write it again as version 2")
	}
	named, ok := namedKinds[strings.ToLower(path.Ext(in.URI))]
	if !ok || o.Format.isColumnar() && named.format == "" {
		return nil
	}
	in.Format, in.Compression = named.format, named.compression
	return fault.Of(cause.Corrupt, "named like %s, but its first bytes are not; copy the file again",
		named.name)
}

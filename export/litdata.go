package export

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	// litdataChunkBytes is the approximate size of a chunk. litdata downloads and maps whole
	// chunks.
	litdataChunkBytes = 64 << 20
	// litdataChunkItems limits the offsets of a chunk, which precede its data and so stay in
	// memory.
	litdataChunkItems = 256 << 10
	// litdataTypeInt32 is the index of torch.int in litdata's table of types
	// (litdata/constants.py), the type that litgpt reads.
	litdataTypeInt32 = 16
)

// litdataSink writes SPLIT/chunk-0-N.bin and SPLIT/index.json, as litdata's TokensLoader and litgpt
// read them. A chunk is the number of items, uint32 offsets of the items and of the end, and the
// items' int32 ids.
type litdataSink struct {
	dir     string
	from    int
	data    *file // the open chunk's items
	offsets []uint32
	bytes   int64
	tokens  int64
	chunks  []litdataChunk
	wide    []byte
}

type litdataChunk struct {
	ChunkBytes int64  `json:"chunk_bytes"`
	ChunkSize  int    `json:"chunk_size"`
	Dim        int64  `json:"dim"`
	Filename   string `json:"filename"`
}

func newLitdataSink(base string, width int) (*litdataSink, error) {
	s := &litdataSink{dir: base, from: width}
	if err := makeFolders(filepath.Dir(base), filepath.Base(base)); err != nil {
		return nil, err
	}
	return s, s.open()
}

func (s *litdataSink) open() (err error) {
	s.offsets, s.bytes, s.tokens = append(s.offsets[:0], 0), 0, 0
	s.data, err = create(filepath.Join(s.dir, "chunk"))
	return err
}

func (s *litdataSink) begin(int64) {}

func (s *litdataSink) ids(raw []byte, _ *rowExtras) error {
	s.tokens += int64(len(raw) / s.from)
	if s.from == 2 {
		s.wide = appendWide(s.wide[:0], raw, s.from)
		raw = s.wide
	}
	s.bytes += int64(len(raw))
	_, err := s.data.Write(raw)
	return err
}

func (s *litdataSink) end() error {
	if s.bytes > 1<<31 {
		return tooLong(LitData, "a document of more than 2GiB of ids does not fit a chunk; export another format")
	}
	s.offsets = append(s.offsets, uint32(s.bytes))
	if s.bytes < litdataChunkBytes && len(s.offsets) <= litdataChunkItems {
		return nil
	}
	if err := s.chunk(); err != nil {
		return err
	}
	return s.open()
}

// chunk writes the gathered items after their header.
func (s *litdataSink) chunk() error {
	items := len(s.offsets) - 1
	if items == 0 {
		return nil
	}
	name := litdataChunkName(len(s.chunks))
	head := 4 * (1 + len(s.offsets))
	err := writeInto(filepath.Join(s.dir, name), func(w *file) error {
		w.number(uint64(items), 4)
		for _, at := range s.offsets {
			w.number(uint64(uint32(head)+at), 4)
		}
		if err := s.data.Flush(); err != nil {
			return err
		}
		if _, err := s.data.f.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := io.CopyN(w, s.data.f, s.bytes)
		return err
	})
	if err != nil {
		return err
	}
	s.data.discard()
	s.chunks = append(s.chunks, litdataChunk{int64(head) + s.bytes, items, s.tokens, name})
	return nil
}

func (s *litdataSink) finish() error {
	if err := s.chunk(); err != nil {
		return err
	}
	s.data.discard()
	if err := s.removeOldChunks(); err != nil {
		return err
	}
	config := map[string]any{
		"chunk_bytes": litdataChunkBytes, "chunk_size": nil, "compression": nil, "encryption": nil,
		"item_loader": "TokensLoader",
		"data_format": []string{fmt.Sprintf("no_header_tensor:%d", litdataTypeInt32)},
		"data_spec":   `[1, {"type": null, "context": null, "children_spec": []}]`,
	}
	data, err := json.Marshal(map[string]any{"chunks": s.chunks, "config": config})
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(s.dir, litdataName), data); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

// removeOldChunks removes chunks after the last one, which an interrupted export left.
func (s *litdataSink) removeOldChunks() error {
	for i := len(s.chunks); ; i++ {
		err := os.Remove(filepath.Join(s.dir, litdataChunkName(i)))
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *litdataSink) discard() { s.data.discard() }

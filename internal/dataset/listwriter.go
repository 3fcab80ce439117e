package dataset

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/shard"
)

// listWriter writes the entries of a list.
type listWriter struct {
	w     *bufio.Writer
	rows  int64
	entry [shardfile.ListEntryBytes]byte
}

func newListWriter(w io.Writer, shards int64) (*listWriter, error) {
	l := &listWriter{w: bufio.NewWriterSize(w, shardfile.ListPageBytes)}
	head := binary.LittleEndian.AppendUint64([]byte(shardfile.ListMagic), uint64(shards))
	_, err := l.w.Write(head)
	return l, err
}

func (l *listWriter) add(info *shard.ShardInfo) error {
	name, ok := shardfile.ParsePartName(info.Name)
	content, err := hex.DecodeString(info.BLAKE3)
	footer, footerErr := hex.DecodeString(info.Footer)
	if err := errors.Join(err, footerErr); err != nil || !ok || len(content) != 32 || len(footer) != 32 {
		return fmt.Errorf("list shard %s: %w", info.Name, shard.ErrCorrupt)
	}
	l.rows += info.Rows
	number := uint32(name.Index)
	if name.Cut {
		number |= shardfile.ListCutBit
	}
	e := l.entry[:0]
	e = append(append(e, content...), footer...)
	e = binary.LittleEndian.AppendUint64(e, uint64(l.rows))
	e = binary.LittleEndian.AppendUint64(e, uint64(info.Tokens))
	e = binary.LittleEndian.AppendUint64(e, uint64(info.Bytes))
	e = binary.LittleEndian.AppendUint32(e, uint32(name.Part))
	e = binary.LittleEndian.AppendUint32(e, number)
	_, err = l.w.Write(e)
	return err
}

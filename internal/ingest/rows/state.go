package rows

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dsload/dsload/internal/dataset"
)

// The open windows of packing follow the cursor in a checkpoint, after a line feed, as they are:
// they are megabytes, and JSON would double them. All integers are little-endian. A window is the
// number of its pieces (int64); the document (int64), part and length (int32) of each; the ids; and
// the loss mask, a byte a token, where rows have one.

const savedPieceBytes = 16

var errWindow = errors.New("read the open windows of the checkpoint: they are not those of this build")

// Save returns the windows as parts of a checkpoint.
func (p *Packing) Save() (parts [][]byte) {
	for i := range p.windows {
		w := &p.windows[i]
		head := make([]byte, 0, 8+savedPieceBytes*len(w.pieces))
		head = binary.LittleEndian.AppendUint64(head, uint64(len(w.pieces)))
		for _, piece := range w.pieces {
			head = binary.LittleEndian.AppendUint64(head, uint64(piece.document))
			head = binary.LittleEndian.AppendUint32(head, uint32(piece.part))
			head = binary.LittleEndian.AppendUint32(head, uint32(piece.length))
		}
		parts = append(parts, head, w.ids, dataset.MaskBytes(w.mask))
	}
	return parts
}

// Restore fills the windows from what Save returned, joined.
func (p *Packing) Restore(data []byte) error {
	for i := range p.windows {
		rest, err := p.restoreWindow(&p.windows[i], data)
		if err != nil {
			return err
		}
		data = rest
	}
	if len(data) > 0 {
		return fmt.Errorf("%w: %d bytes too many", errWindow, len(data))
	}
	return nil
}

func (p *Packing) restoreWindow(w *window, data []byte) (rest []byte, err error) {
	if len(data) < 8 {
		return nil, errWindow
	}
	pieces := int64(binary.LittleEndian.Uint64(data))
	if data = data[8:]; pieces < 0 || pieces > int64(max(maxPieces(p.Length), p.Length)) ||
		pieces*savedPieceBytes > int64(len(data)) {
		return nil, errWindow
	}
	heads := data[:pieces*savedPieceBytes]
	data = data[len(heads):]
	if pieces == 0 {
		return data, nil
	}
	p.allocate(w)
	for ; len(heads) > 0; heads = heads[savedPieceBytes:] {
		piece := windowPiece{document: int64(binary.LittleEndian.Uint64(heads)), at: w.tokens,
			part: int32(binary.LittleEndian.Uint32(heads[8:])), length: int32(binary.LittleEndian.Uint32(heads[12:]))}
		if piece.length < 1 || int(piece.length) > p.Length || piece.document < 0 || piece.part < 0 {
			return nil, errWindow
		}
		w.pieces = append(w.pieces, piece)
		w.tokens += int64(piece.length)
	}
	ids, masks := w.tokens*int64(p.Schema.IDWidth()), int64(0)
	if p.Schema.LossMask {
		masks = w.tokens
	}
	if ids+masks > int64(len(data)) || ids > int64(cap(w.ids)) {
		return nil, errWindow
	}
	w.ids = append(w.ids, data[:ids]...)
	for _, trained := range data[ids : ids+masks] {
		w.mask = append(w.mask, trained != 0)
	}
	return data[ids+masks:], nil
}

package origins

import (
	"encoding/binary"
	"hash/crc32"
)

// Writer makes pages of the documents that Add records. Its fields are plain data that survive JSON
// unchanged, so a restored Writer continues where the saved one was. The zero Writer is ready to
// use.
type Writer struct {
	Page   []byte `json:"page,omitempty"`   // the page that is being filled, nil before its first document
	Next   int64  `json:"next"`             // the ordinal after the last document
	Input  int    `json:"input"`            // index of the last document's input
	Name   string `json:"name,omitempty"`   // its name
	Record int64  `json:"record"`           // its record
	Step   int64  `json:"step,omitempty"`   // difference between the records of the pending run
	Run    int64  `json:"run,omitempty"`    // number of documents in the pending run
	Pages  int64  `json:"pages,omitempty"`  // full pages given to emit
	Failed bool   `json:"failed,omitempty"` // ordinals did not increase: the file would be wrong
}

// Add records a document. Ordinals must increase. Add calls name if the input changes, and emit for
// a full page, which emit must not keep.
func (w *Writer) Add(ordinal int64, input int, record int64, name func() string, emit func(page []byte) error) error {
	if w.Failed || ordinal < w.Next {
		w.Failed = true
		return nil
	}
	if w.Page == nil || input != w.Input {
		if err := w.enter(ordinal, input, name, emit); err != nil {
			return err
		}
	}
	if gap := ordinal - w.Next; gap > 0 && w.Next > 0 {
		w.flush()
		w.op(opGap, uint64(gap))
	}
	if step := record - w.Record; w.Run > 0 && step == w.Step {
		w.Run++
	} else {
		w.flush()
		w.Step, w.Run = step, 1
	}
	w.Next, w.Record = ordinal+1, record
	if PageBytes-len(w.Page) < 3*opBytes { // a gap, the pending run and the next one must fit
		return w.endPage(emit)
	}
	return nil
}

// enter starts an input, on a new page if need be.
func (w *Writer) enter(ordinal int64, input int, name func() string, emit func([]byte) error) error {
	before := w.Name
	if input != w.Input || w.Name == "" {
		if w.Name = name(); len(w.Name) > maxName {
			w.Name = w.Name[:maxName]
		}
		if w.Page != nil {
			w.flush()
		}
		w.Input, w.Record = input, 0
	}
	if w.Page != nil && PageBytes-len(w.Page) < len(w.Name)+5*opBytes {
		if err := w.endPage(emit); err != nil {
			return err
		}
	}
	if w.Page == nil {
		w.Page = make([]byte, 8, PageBytes)
		w.Page = binary.LittleEndian.AppendUint64(w.Page, uint64(ordinal))
		w.Page = binary.LittleEndian.AppendUint64(w.Page, uint64(w.Record))
		w.Page = binary.AppendUvarint(w.Page, uint64(len(w.Name)))
		w.Page = append(w.Page, w.Name...)
		w.Next = ordinal
		return nil
	}
	shared := 0
	for shared < min(len(before), len(w.Name)) && before[shared] == w.Name[shared] {
		shared++
	}
	w.op(opInput, uint64(shared))
	w.Page = binary.AppendUvarint(w.Page, uint64(len(w.Name)-shared))
	w.Page = append(w.Page, w.Name[shared:]...)
	return nil
}

func (w *Writer) op(kind int, v uint64) { w.Page = binary.AppendUvarint(w.Page, v<<2|uint64(kind)) }

// flush appends the pending run.
func (w *Writer) flush() {
	switch {
	case w.Run == 0:
		return
	case w.Step == 1:
		w.op(opNext, uint64(w.Run))
	default:
		w.op(opStep, uint64(w.Step)<<1^uint64(w.Step>>63))
		w.Page = binary.AppendUvarint(w.Page, uint64(w.Run))
	}
	w.Step, w.Run = 0, 0
}

// endPage passes the page to emit, padded with zeros.
func (w *Writer) endPage(emit func([]byte) error) error {
	page := make([]byte, PageBytes)
	copy(page, w.last())
	w.Page, w.Pages = nil, w.Pages+1
	return emit(page)
}

// last seals the current page.
func (w *Writer) last() []byte {
	w.flush()
	binary.LittleEndian.PutUint32(w.Page[4:], uint32(len(w.Page)))
	binary.LittleEndian.PutUint32(w.Page, crc32.ChecksumIEEE(w.Page[4:]))
	return w.Page
}

// Rest returns the last, partial page of the file, nil if there is none. The Writer must not be
// used afterwards.
func (w *Writer) Rest() []byte {
	if w.Page == nil {
		return nil
	}
	return w.last()
}

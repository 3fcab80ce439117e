package job

import "unsafe"

// Made is the rows of a shard that a worker makes of a whole document, zero for others.
type Made struct {
	Bytes Span // of the rows, back to back, in the bytes of Job.IDs
	Rows  Span // in Job.Lengths and Job.Parts
	Mask  Span // in Job.Mask; only of conversations
	Cuts
}

// Cuts counts what cutting a document does to it, as counts.Counts does.
type Cuts struct{ Truncated, Chunked, LaterRows, UntrainedRows int64 }

// A Block is consecutive documents of a job of which workers made rows, and which differ in nothing that the flusher
// looks at but in what a block adds up. It takes them together where nothing is to be decided document by document.
type Block struct {
	From, To int // in Job.Documents
	Made
	Tokens    int64
	Loss      int64 // those of Tokens that carry loss
	TextIDs   int64 // those of Tokens that are of the texts
	TextBytes int64
	Unused    bool // all documents have the same Unused
}

const (
	// maxBlocks bounds the blocks of a job, in which every other document may be unlike those beside it.
	maxBlocks = 64
	// MaxRows bounds the rows that workers make of a job.
	MaxRows = 2 * MaxRecords
)

// Len returns the number of documents.
func (b *Block) Len() int { return b.To - b.From }

// AddRows keeps the rows that a worker made of document i, when those before it have theirs: their bytes, the tokens of
// each, and their mask. They lie behind those of the block that the document continues, or in the place of its ids, and
// are left out if they reach into the ids of the next document, as those of one with many special tokens do.
func (j *Job) AddRows(i int, data []byte, lengths []int32, mask []bool, loss int, cuts Cuts) {
	d, b := &j.Documents[i], (*Block)(nil)
	at := Made{Span{WorstIDBytes * d.IDs.Start, 0}, Span{len(j.Lengths), len(j.Lengths) + len(lengths)}, Span{d.Mask.Start, 0}, cuts}
	if n := len(j.Blocks); n > 0 && j.Blocks[n-1].To == i && d.continues(&j.Documents[i-1]) {
		b = &j.Blocks[n-1]
		at.Bytes.Start, at.Mask.Start = b.Bytes.End, b.Mask.End
	}
	at.Bytes.End, at.Mask.End = at.Bytes.Start+len(data), at.Mask.Start+len(mask)
	endIDs, endMask := j.roomOf(i)
	if at.Bytes.End > WorstIDBytes*endIDs || at.Mask.End > endMask || at.Rows.End > MaxRows {
		return
	}
	d.Made = at
	copy(at.RowBytes(j), data)
	copy(at.RowMask(j), mask)
	tokens := int64(0)
	for part, n := range lengths {
		tokens += int64(n)
		j.Lengths, j.Parts = append(j.Lengths, n), append(j.Parts, int32(part))
	}
	if b == nil {
		if !d.plain() || len(j.Blocks) == maxBlocks {
			return
		}
		j.Blocks = append(j.Blocks, Block{From: i, Made: Made{Bytes: at.Bytes, Rows: at.Rows, Mask: at.Mask}, Unused: true})
		b = &j.Blocks[len(j.Blocks)-1]
	}
	b.To, b.Bytes.End, b.Rows.End, b.Mask.End = i+1, at.Bytes.End, at.Rows.End, at.Mask.End
	b.Tokens += tokens
	b.Loss += int64(loss)
	b.TextIDs += int64(d.IDs.End - d.IDs.Start)
	b.TextBytes += d.TextBytes
	b.Unused = b.Unused && d.Unused == j.Documents[b.From].Unused
	b.Truncated += cuts.Truncated
	b.Chunked += cuts.Chunked
	b.LaterRows += cuts.LaterRows
	b.UntrainedRows += cuts.UntrainedRows
}

// roomOf returns where the room of document i ends, in Job.IDs and Job.Mask.
func (j *Job) roomOf(i int) (ids, mask int) {
	for i++; i < len(j.Documents); i++ {
		if d := &j.Documents[i]; d.IDs.End > d.IDs.Start {
			return d.IDs.Start, d.Mask.Start
		}
	}
	return len(j.IDs), len(j.Mask)
}

// RowBytes returns the rows, as they lie in a shard.
func (m *Made) RowBytes(j *Job) []byte {
	ids := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(j.IDs))), WorstIDBytes*len(j.IDs))
	return ids[m.Bytes.Start:m.Bytes.End]
}

// RowMask returns the masks of the rows of conversations.
func (m *Made) RowMask(j *Job) []bool { return j.Mask[m.Mask.Start:m.Mask.End] }

// plain reports whether a document may be in a block: there is nothing that the flusher keeps of it alone.
func (d *Document) plain() bool {
	c := d.Conversation
	return d.Replaced == 0 && d.Rows <= 1 && d.Names == nil && (c == nil || c.Unfound == 0 && len(c.UnknownRoles) == 0)
}

// continues reports whether a document may be in the block of the plain one before it.
func (d *Document) continues(p *Document) bool {
	return d.plain() && d.Ordinal == p.Ordinal+1 && d.Row == p.Row+1 && d.Input == p.Input && d.Rows == p.Rows &&
		d.Format == p.Format && d.Nulls == p.Nulls && d.Mapped == p.Mapped && d.Has == p.Has && d.AsText == p.AsText &&
		d.Field == p.Field && d.Looks == p.Looks && d.Conversation.Equal(p.Conversation)
}

// Apart yields the documents that are in no block, by their numbers.
func (j *Job) Apart(yield func(int, *Document) bool) {
	blocks := j.Blocks
	for i := 0; i < len(j.Documents); i++ {
		if len(blocks) > 0 && blocks[0].From == i {
			i, blocks = blocks[0].To-1, blocks[1:]
		} else if !yield(i, &j.Documents[i]) {
			return
		}
	}
}

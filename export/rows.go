package export

// MaxRowTokens is the longest document in formats whose rows are held whole in memory.
const MaxRowTokens = 2 << 20

// document gathers the columns of a document.
type document struct {
	number int64
	input  []byte
	labels []byte
	mask   []bool
}

// rows is the common part of sinks for whole rows: it gathers a document and passes it to add.
type rows struct {
	format string
	width  int // bytes of an id
	doc    document
	add    func(d *document) error
}

func (r *rows) begin(number int64) error {
	if cap(r.doc.input) > 2*pieceBytes {
		r.doc = document{} // do not keep the memory of a long document
	}
	r.doc.number = number
	r.doc.input, r.doc.labels, r.doc.mask = r.doc.input[:0], r.doc.labels[:0], r.doc.mask[:0]
	return nil
}

func (r *rows) ids(raw []byte, extras *rowExtras) error {
	if n := (len(r.doc.input) + len(raw)) / r.width; n > MaxRowTokens {
		return longRow(r.format, r.doc.number)
	}
	r.doc.input = append(r.doc.input, raw...)
	if extras != nil {
		r.doc.labels = append(r.doc.labels, extras.labels...)
		r.doc.mask = append(r.doc.mask, extras.mask...)
	}
	return nil
}

// longRow is the error of a document that is longer than a row.
func longRow(format string, document int64) error {
	return tooLong(format,
		"document %d has more than %d tokens, which a row of this format cannot hold; "+
			"export megatron, nanotron, nanogpt or olmo, "+
			"which have no such limit", document, MaxRowTokens)
}

func (r *rows) end() error { return r.add(&r.doc) }

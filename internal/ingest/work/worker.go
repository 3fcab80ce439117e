// Package work is the second stage of a build: it makes text of records, judges it by the filters, and tokenizes it.
package work

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/wellformed"
	"github.com/zeebo/xxh3"
)

// Config is what the workers of a build have in common.
type Config struct {
	Tokenizer     *tokenize.Tokenizer
	CacheBytes    int            // each worker's word cache
	CausalPairs   bool           // prompt and target make one row
	AsIs          bool           // text without fields is what documents are made of, no template is
	Judges        bool           // documents are judged
	Filter        *filter.Filter // their conditions
	Dedup         filter.Dedup
	Conversations *Conversations           // nil if no input holds any
	Skip          func(*job.Document) bool // reports whether the ids of a document are not needed
}

// A Worker formats and tokenizes jobs, one at a time.
type Worker struct {
	Config
	Rows      RowMaker // nil where workers make no rows
	encoder   *tokenize.Encoder
	sketcher  *filter.Sketcher
	formatter *example.Worker
	waiting   []waiting
	texts     []tokenize.Text // their prompts and targets
	prompts   queue[byte]     // those of the texts that wait, as are targets and spans
	targets   queue[byte]
	spans     queue[chat.Span]
	scratch   example.Formatted  // at the end of prompts and targets
	record    example.Formatted  // a record that is text as it stands
	text      *example.Formatted // the document at hand: scratch or record
	unhashed  bool               // no document is held out by its hash
	pairs     bool               // documents are a prompt and a target
	chat      *chatWorker        // nil if no input holds conversations
	unused    *example.Unused    // the records of the phase
	noted     job.Span           // the last document's span in Job.Unused, of those that have one
	unread    *[]string          // the names that noted stands for, nil for other documents
	most      int                // ids of a job so far
}

// A RowMaker makes Document.Made of the ids of a whole text, behind which the worker leaves it the room that it needs.
type RowMaker interface {
	Room(ids int) int
	Make(j *job.Job, document int)
}

// New returns a worker that has no formatter yet.
func New(c Config) *Worker {
	return &Worker{Config: c, encoder: c.Tokenizer.NewEncoder(EncoderOptions(c.CacheBytes)),
		sketcher: filter.NewSketcher(c.Dedup)}
}

// Begin makes the worker ready for the records of a phase. What it formats ends when stop is closed. unhashed says
// that no document of the phase is held out by its hash.
func (w *Worker) Begin(f *example.Formatter, unhashed bool, stop <-chan struct{}) {
	w.formatter, w.unhashed, w.pairs = f.NewWorker().StopAt(stop), unhashed, f.HasTarget()
	w.unused = nil
	if w.Conversations != nil {
		w.chat = w.Conversations.newWorker(w, stop)
		w.unused = example.NewUnused(w.Filter.FieldNames())
	} else {
		w.unused = example.NewUnused(append(f.AlwaysUsed(), w.Filter.FieldNames()...))
	}
	w.formatter.Note(w.unused)
}

// Trim drops the text buffers that an unusually large record left behind.
func (w *Worker) Trim() {
	if cap(w.prompts.used)+cap(w.targets.used) > job.WorstExpansion*(job.TextBytes+job.PieceBytes) {
		w.prompts, w.targets = queue[byte]{}, queue[byte]{}
		w.scratch, w.record, w.text = example.Formatted{}, example.Formatted{}, nil
	}
}

// Do formats and tokenizes a job. It reports false if a template had to stop: the job is
// unfinished.
func (w *Worker) Do(j *job.Job) bool {
	if cap(j.IDs) == 0 && w.most > 0 {
		j.IDs = make([]uint32, 0, w.most+w.most/8)
	}
	defer func() { w.most = min(max(w.most, len(j.IDs)), job.TextBytes) }()
	j.Unroll()
	w.unused.Trim()
	w.noted, w.unread = job.Span{}, nil
	defer func() { j.Names = w.unused.Names() }()
	for i := range j.Documents {
		d := &j.Documents[i]
		if d.Err != nil || d.Dropped != filter.Kept || w.Judges && !w.judgeFields(j, d) {
			continue
		}
		isChat := w.chat != nil
		if d.Bad = w.format(j, d, j.Raw[d.Raw.Start:d.Raw.End], isChat); d.Bad != nil {
			if errors.Is(d.Bad, example.ErrStopped) {
				w.forgetTexts()
				return false
			}
			continue
		}
		f := w.text
		if w.Judges && !w.judgeText(j, d) {
			continue
		}
		w.noteUnused(j, d, isChat)
		d.TextBytes = int64(len(f.Prompt) + len(f.Target))
		d.Replaced += int64(f.Replaced)
		if !w.unhashed {
			// It decides the document's split. Prompt and target are hashed apart, so that moving text between them makes
			// another document.
			if d.Hash = xxh3.Hash(f.Prompt); len(f.Target) > 0 {
				d.Hash = xxh3.HashSeed(f.Target, d.Hash)
			}
		}
		if w.Skip != nil && w.Skip(d) {
			continue
		}
		w.wait(j, i)
	}
	w.encodeTexts(j)
	w.makeRows(j)
	return true
}

// makeRows makes the rows of all documents of a job, apart from their ids: the code for both is more than a processor
// has room for next to it, and documents in turns would fetch it anew each time.
func (w *Worker) makeRows(j *job.Job) {
	for i := range j.Documents {
		if d := &j.Documents[i]; w.Rows != nil && d.IDs.End > d.IDs.Start && d.Bad == nil && d.First && d.Last {
			w.Rows.Make(j, i)
		}
	}
}

// judgeFields reports whether the fields of a record let it stay. If not, or if the record is bad,
// the document says so.
func (w *Worker) judgeFields(j *job.Job, d *job.Document) bool {
	fields := w.Filter.Fields()
	all := uint64(1)<<len(fields) - 1
	switch {
	case d.Skipped:
		d.Dropped, d.Has = filter.ByWhere, all
		return false
	case d.Decided == all:
		d.Has = all
		return true
	}
	data := j.Raw[d.Raw.Start:d.Raw.End]
	var v filter.Verdict
	switch {
	case len(d.Columns) > 0:
		var at func(int) []byte
		if at, d.Bad = w.formatter.Row(d.Layout(), data); d.Bad == nil {
			v = w.Filter.Row(d.Columns, at, d.Decided)
		}
	case d.Decoded:
		d.Bad = fault.Errorf("%w: the record is text without fields, and {where} asks for %s", example.ErrUnknownField,
			fields[0])
	default:
		v, d.Bad = w.Filter.JSON(data, d.Decided)
	}
	d.Has, d.AsText = v.Has, v.AsText
	if d.Bad == nil && d.Ordinal == 0 && d.Has != all {
		if d.Names = d.Columns; d.Names == nil {
			d.Names = example.FieldNames(data)
		}
	}
	if d.Bad == nil && !v.Holds {
		d.Dropped = filter.ByWhere
	}
	return v.Holds
}

// judgeText reports whether the text of a record lets it stay, and notes the key by which Dedup
// compares it.
func (w *Worker) judgeText(j *job.Job, d *job.Document) bool {
	f := w.text
	if d.Dropped = w.Filter.Text(f.Prompt, f.Target); d.Dropped != filter.Kept {
		return false
	}
	d.Key.Start = len(j.Keys)
	j.Keys = w.sketcher.Append(j.Keys, f.Prompt, f.Target)
	d.Key.End = len(j.Keys)
	return true
}

// noteUnused notes the fields of a record, of which format has made the text, that nothing uses.
func (w *Worker) noteUnused(j *job.Job, d *job.Document, isChat bool) {
	if w.unused == nil {
		return
	}
	if d.Decoded && d.Unread != nil && d.Unread == w.unread {
		d.Unused = w.noted // rows of the same columns
		return
	}
	if isChat {
		w.unused.Begin() // what neither the template nor anything else has read
		for _, name := range w.chat.text.Unread {
			w.unused.Field(name, true)
		}
		for _, name := range w.chat.text.UnreadOfMessages {
			w.unused.OfMessage(name)
		}
	}
	if d.Unread != nil {
		if d.Decoded {
			w.unused.Begin()
		}
		for _, name := range *d.Unread {
			w.unused.Field(name, true)
		}
	} else if d.Decoded {
		return
	}
	numbers, again := w.unused.Numbers()
	if !again || w.noted == (job.Span{}) {
		start := len(j.Unused)
		j.Unused = append(j.Unused, numbers...)
		w.noted = job.Span{Start: start, End: len(j.Unused)}
	}
	d.Unused, w.unread = w.noted, nil
	if d.Decoded {
		w.unread = d.Unread
	}
}

// IsMarkup reports whether a text begins as a page of HTML, perhaps after a declaration or a comment.
func IsMarkup(text []byte) bool {
	if len(text) == 0 || text[0] > '<' && text[0] < utf8.RuneSelf { // most texts begin with a letter
		return false
	}
	text = bytes.TrimLeft(text[:min(len(text), 512)], "\ufeff \t\r\n")
	if len(text) < 2 || text[0] != '<' || bytes.IndexByte([]byte("hH!?"), text[1]) < 0 { // <unk> begins many texts
		return false
	}
	text = bytes.ToLower(text)
	return bytes.HasPrefix(text, []byte("<html")) || bytes.HasPrefix(text, []byte("<!doctype html")) ||
		(bytes.HasPrefix(text, []byte("<!")) || bytes.HasPrefix(text, []byte("<?"))) && bytes.Contains(text, []byte("<html"))
}

// format sets text to that of a document. Text that is valid as it stands is not copied.
func (w *Worker) format(j *job.Job, d *job.Document, raw []byte, isChat bool) (err error) {
	if w.AsIs && d.Decoded && wellformed.Valid(raw) {
		w.record.Prompt, w.text = raw, &w.record
		return nil
	}
	w.makeRoom(j, len(raw))
	if isChat {
		err = w.chat.format(j, &w.scratch, d, raw)
	} else {
		err = w.formatter.Format(&w.scratch, d.Layout(), raw)
		d.Field, d.Object = w.scratch.Field, w.scratch.Printed
	}
	w.text = &w.scratch
	return err
}

// Beginning returns the ids of what precedes byte maxBytes of a document's text, cut at a character, and how many
// bytes these are. The text must be longer.
func (w *Worker) Beginning(d *job.Document, raw []byte, maxBytes int) (ids []uint32, textBytes int64, err error) {
	if err := w.formatter.Format(&w.scratch, d.Layout(), raw); err != nil {
		return nil, 0, err
	}
	text, n := w.scratch.Prompt, maxBytes
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	ids = w.encoder.AppendPiece(nil, text[:n], tokenize.Piece{First: d.First, Last: true})
	return ids, int64(n), w.encoder.Err()
}

// Shown returns the text of the last document, or its prompt. It is valid until the next.
func (w *Worker) Shown() []byte { return w.text.Prompt }

// maxNormalized is what a normalizer may make of a document: twelve times a piece, more than
// any normalization form does.
const maxNormalized = 12 * job.PieceBytes

// EncoderOptions returns the options of every encoder of a build.
func EncoderOptions(cacheBytes int) tokenize.EncoderOptions {
	return tokenize.EncoderOptions{CacheBytes: cacheBytes, MaxNormalized: maxNormalized}
}

// LongRecordLease returns the lease of a job of one record longer than a piece: its buffers, and
// what formatting it takes beyond a worker's scratch.
func LongRecordLease(raw int64, f *example.Formatter, c *Conversations) int64 {
	if c != nil {
		return c.LeaseBytes(raw, 1) + c.ScratchBytes(raw) - c.ScratchBytes(job.PieceBytes)
	}
	return job.LeaseBytes(raw, 1, f.OverheadBytes()) + f.ScratchBytes(raw) - f.ScratchBytes(job.PieceBytes)
}

// A text that a chat template or a tokenizer wrote begins with a control token: one of this tokenizer, or of another
// one, which this one would cut into pieces.

// ControlToken matches a control token as most chat templates write them.
var ControlToken = lazy.Regexp(`<[|｜][^<>|｜\s'"{}]{1,40}[|｜]>`)

// openers are control tokens that others begin texts with.
var openers = []string{"<s>", "<bos>", "<start_of_turn>", "[INST]"}

// maxOpener is the length of the longest control token that is looked for.
const maxOpener = 64

// rendered reports whether a text begins with a control token, and whether with one that the tokenizer lacks.
func (w *Worker) rendered(text []byte) (yes, foreign bool) {
	if len(text) == 0 || text[0] != '<' && text[0] != '[' {
		return false, false
	}
	token := string(text[:1+bytes.IndexAny(text[:min(len(text), maxOpener)], ">]")])
	if id, ok := w.Tokenizer.ID(token); ok && IsSpecial(w.Tokenizer, id) {
		return true, false
	}
	barred := len(token) > 1 && (token[1] == '|' || token[1] == "｜"[0]) // few are, and matching is slow
	foreign = slices.Contains(openers, token) || barred && ControlToken().FindString(token) == token
	return foreign, foreign
}

// isToken reports whether a text that begins with a control token is nothing else.
func isToken(text []byte) bool {
	return bytes.IndexAny(text[:min(len(text), maxOpener)], ">]") == len(bytes.TrimRight(text, " \t\r\n"))-1
}

// IsSpecial reports whether an id is a special token, which is left out of the text that ids stand for.
func IsSpecial(t *tokenize.Tokenizer, id uint32) bool {
	return len(t.AppendText(nil, []uint32{id}, tokenize.DecodeOptions{SkipSpecial: true})) == 0
}

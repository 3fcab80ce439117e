package source

import (
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// openInput opens the input of the position and goes to it.
func (r *Reader) openInput() error {
	var err error
	if r.in, err = r.set.Input(r.at.Input); err != nil {
		return err
	}
	in := &r.in
	r.decided, _ = r.set.opts.judge(in.URI)
	if in.Synth != nil {
		g := &generator{Place: frame.Place{Row: r.at.Row}, spec: in.Synth, offset: r.at.Offset}
		r.open = &openedInput{g, g.At(), g, nil}
		return nil
	}
	raw, err := r.openFile()
	if err != nil {
		return r.inputError(err)
	}
	if in.Format.IsColumnar() {
		return r.openTable(raw)
	}
	// Large files are read on a goroutine of their own.
	raw.concurrent = raw.background != nil || raw.size >= decompress.AheadFrom && (in.Path != "" || in.Compression != decompress.Plain) ||
		raw.size < 0 && in.Compression != decompress.Plain
	r.win.Reset(raw, r.set.opts.chunkBytes, in.framed().windowBytes(&r.set.opts.Framing))
	if in.Store != nil && in.Compression == decompress.Plain && in.archive == "" {
		r.win.KeepState()
	}
	if r.set.cuts(r.at.Input) {
		raw.leaveCheck() // the hash that a server announces is over all of it
	}
	s := &openedInput{input: windowed{raw, &r.win}, raw: raw}
	r.open = s
	inPlace := r.resumesInPlace()
	if origin := r.set.origin(r.at.Input); origin > 0 && !inPlace && !in.Format.layout().header {
		if err := r.seekRange(raw, origin); err != nil {
			return r.inputError(err)
		}
	} else if inPlace && !in.Format.layout().header {
		raw.binary = true // what is in the middle of a text cannot begin with a mark of its encoding
		if err := r.jump(raw); err != nil {
			return r.inputError(err)
		}
	} else if in.archive == "" && r.win.Need(3) && string(r.win.Unread()[:3]) == "\ufeff" {
		r.win.Consume(3)
	}
	f, err := r.newFramer(raw)
	if err != nil {
		return r.inputError(err)
	}
	s.framer, s.place = f, f.At()
	if inPlace && in.Format.layout().header {
		if err := r.jump(raw); err != nil {
			return r.inputError(err)
		}
	}
	return r.resume(raw)
}

// openFile opens the file of the input, or takes the one that was opened before its turn.
func (r *Reader) openFile() (*rawFile, error) {
	r.openAhead()
	raw := r.upcoming[r.at.Input]
	if delete(r.upcoming, r.at.Input); raw != nil {
		return raw, nil
	}
	r.in.kept = r.set.kept.take(r.at.Input)
	raw, err := openRaw(&r.in, &r.set.opts)
	r.in.kept = nil
	if err != nil {
		return nil, err
	}
	if len(r.upcoming) > 0 {
		raw.label = r.in.aheadLabel()
	}
	r.divide(raw)
	return raw, nil
}

// aheadFile is the most that a file may take which is decompressed before its turn. It keeps that while it is read.
const aheadFile = 16 << 20

// aheadShare returns how many files are decompressed before their turn, and what each of them and the one that is read
// may take.
func (r *Reader) aheadShare() (n, bytes int64) {
	spare := &r.set.opts.spare
	n = min(int64(spare.Workers), spare.Bytes/aheadFile)
	return n, min(aheadFile, spare.Bytes/(n+1))
}

// openAhead begins to decompress the files that come next, each on a goroutine. What is wrong with one is left for its
// turn, and so is a large one whose frames are decompressed beside each other then.
func (r *Reader) openAhead() {
	n, share := r.aheadShare()
	for i := r.at.Input + 1; i <= r.at.Input+int(n) && i < r.set.Len(); i++ {
		in, err := r.set.Input(i)
		if err != nil || r.upcoming[i] != nil || !in.isStream() {
			continue
		}
		left := share - in.readerBytes(&r.set.opts)
		if left < 0 || in.textBytes > aheadFile && in.hasFrames(&r.set.opts) {
			continue
		}
		in.kept = r.set.kept.take(i)
		raw, err := openRaw(&in, &r.set.opts)
		if err != nil {
			return
		}
		raw.concurrent, raw.aheadBytes, raw.label = true, left, in.aheadLabel()
		if raw.open() != nil {
			raw.Close()
			return
		}
		if r.upcoming == nil {
			r.upcoming = map[int]*rawFile{}
		}
		r.upcoming[i] = raw
	}
}

// divide lets the frames of the file that is opened be decompressed beside each other, in the memory that those that come
// next leave.
func (r *Reader) divide(raw *rawFile) {
	in, o := &r.in, &r.set.opts
	_, share := r.aheadShare()
	room := o.spare.Bytes - int64(len(r.upcoming))*share + in.readerBytes(o)
	one := in.Compression.MemoryBytes(raw.window)
	n := min(int64(o.spare.Workers), room/(one+decompress.ReadAheadBytes))
	if n < 2 || !in.isStream() {
		return
	}
	if raw.frames = raw.findFrames(); raw.frames != nil {
		raw.lanes, raw.aheadBytes = int(n), room/n-one
	}
}

// hasFrames reports whether frames of the input can be decompressed beside each other.
func (in *Input) hasFrames(o *Options) bool {
	raw, err := openRaw(in, o)
	if err != nil {
		return false // its turn shows why
	}
	defer raw.Close()
	return raw.findFrames() != nil
}

// isStream reports whether the input is a compressed file of this machine that is read from its beginning to its end.
func (in *Input) isStream() bool {
	return in.Path != "" && in.once == nil && in.Compression != decompress.Plain && in.Compression != decompress.Zipped &&
		!in.Format.IsColumnar()
}

// aheadLabel names the goroutine of a file beside which others are decompressed: it is alone where most of it waits for
// its turn.
func (in *Input) aheadLabel() string {
	if in.textBytes > aheadFile {
		return "file"
	}
	return ""
}

// openTable opens a file of columns and goes to the position.
func (r *Reader) openTable(raw *rawFile) error {
	c := &columns{rawFile: raw}
	r.open = &openedInput{input: c, raw: raw}
	t, err := newTableFramer(&r.in, &r.set.opts, raw, r.set.needs.decompressor)
	if err != nil {
		return r.inputError(err)
	}
	c.tableFramer = t
	r.open.framer, r.open.place = t, t.At()
	t.cut.keep, t.cut.sums = r.set.origin(r.at.Input) > 0, r.at.Groups
	if err := r.checkTail(raw); err != nil {
		return r.inputError(err)
	}
	if r.at.Offset == 0 {
		return nil
	}
	if origin := r.set.origin(r.at.Input); origin > 0 && r.at.Row == r.set.only.From.Row {
		if err := t.seekRange(&r.in, &r.set.only.From, &r.at); err != nil {
			return r.inputError(err)
		}
		return nil
	}
	if err := t.resume(&r.in, &r.at); err != nil {
		return r.inputError(err)
	}
	return nil
}

// newFramer makes the framer of the input that is open.
func (r *Reader) newFramer(raw *rawFile) (framer, error) {
	if r.in.archive != "" {
		return newArchive(&r.in, &r.win, &r.set.opts, raw)
	}
	o := &r.set.opts.Framing
	if r.in.Records != o.Records && r.in.Records != "" {
		found := *o
		found.Records, found.Found = r.in.Records, true
		o = &found
	}
	return newFramer(r.in.Format, &r.win, o)
}

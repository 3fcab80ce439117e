package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

// digest is the result of `tokenizer digest` for a file. Documents are its lines, without line
// ends. The hash covers, for each document in order, the number of its ids and the ids, each as a
// little-endian uint32, without special tokens.
type digest struct {
	File      string `json:"file"`
	Documents int64  `json:"documents"`
	Bytes     int64  `json:"bytes"` // in documents, without line ends
	Tokens    int64  `json:"tokens"`
	SHA256    string `json:"sha256"`
}

func newTokenizerDigestCommand() *cobra.Command {
	var asJSON bool
	var f tokenizerFlags
	cmd := &cobra.Command{
		Use:   "digest FILE...",
		Short: "Count documents and tokens of files and hash all ids",
		Long: `Prints a line for each file: documents (lines), bytes, tokens, and the SHA-256 over all ids,
to compare two tokenizers, or two versions of one, on a whole corpus.`,
		Example: `  dsload tokenizer digest corpus.txt
  dsload tokenizer digest --json --tokenizer tokenizer.json a.txt b.txt`,
		Args: someArgs("at least one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTokenizer(&f, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, path := range args {
				d, err := digestFile(cmd, t, path)
				if err != nil {
					return fmt.Errorf("digest %s: %w", path, err)
				}
				text := fmt.Sprintf("%s  %s  %d documents, %d bytes, %d tokens\n", d.SHA256, d.File, d.Documents, d.Bytes, d.Tokens)
				if err := printResult(cmd.OutOrStdout(), asJSON, d, text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return cmd
}

// digestWindow is the size of the text in memory. A longer line is read twice, in pieces, because
// its number of ids comes first.
const digestWindow = 4 << 20

// maxTextBytes limits a text, or a part of one, that cannot be cut. All of it is in memory, and so
// are its ids.
const maxTextBytes = 64 << 20

var errLongText = fault.Kindf(fault.Limit, "a line of more than %s has no place where it can be cut without "+
	"changing its tokens; break the line", formatSize(maxTextBytes))

func digestFile(cmd *cobra.Command, t *tokenize.Tokenizer, path string) (*digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &digester{in: f, t: t, enc: t.NewEncoder(tokenize.EncoderOptions{}), hash: sha256.New(),
		window: make([]byte, 0, digestWindow)}
	d := &r.sum
	d.File = path
	for {
		if err := cmd.Context().Err(); err != nil {
			return nil, err
		}
		err := r.fill()
		if err != nil && err != io.EOF {
			return nil, err
		}
		rest := r.window
		for end := bytes.IndexByte(rest, '\n'); end >= 0; end = bytes.IndexByte(rest, '\n') {
			r.document(rest[:end])
			rest = rest[end+1:]
		}
		if err == io.EOF {
			if len(rest) > 0 {
				r.document(rest)
			}
			break
		}
		r.drop(len(r.window) - len(rest))
		if len(r.window) == cap(r.window) {
			if err := r.longDocument(); err != nil {
				return nil, err
			}
		}
	}
	d.SHA256 = hex.EncodeToString(r.hash.Sum(nil))
	return d, nil
}

// digester reads one file through a window that begins at offset.
type digester struct {
	in     *os.File
	offset int64
	window []byte
	t      *tokenize.Tokenizer
	enc    *tokenize.Encoder
	ids    []uint32
	bytes  []byte
	hash   hash.Hash
	sum    digest
}

// fill reads until the window is full. It returns io.EOF if the file ends.
func (r *digester) fill() error {
	n, err := io.ReadFull(r.in, r.window[len(r.window):cap(r.window)])
	r.window = r.window[:len(r.window)+n]
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return err
}

// drop removes the first n bytes of the window.
func (r *digester) drop(n int) {
	r.offset += int64(n)
	r.window = r.window[:copy(r.window, r.window[n:])]
}

func (r *digester) document(text []byte) {
	r.ids = r.enc.AppendTokens(r.ids[:0], text)
	r.count(len(r.ids))
	r.hashIDs()
	r.sum.Bytes += int64(len(text))
}

func (r *digester) count(tokens int) {
	r.bytes = binary.LittleEndian.AppendUint32(r.bytes[:0], uint32(tokens))
	r.hash.Write(r.bytes)
	r.sum.Documents++
	r.sum.Tokens += int64(tokens)
}

func (r *digester) hashIDs() {
	r.bytes = r.bytes[:0]
	for _, id := range r.ids {
		r.bytes = binary.LittleEndian.AppendUint32(r.bytes, id)
	}
	r.hash.Write(r.bytes)
}

// longDocument digests a line that is longer than the window in two passes: the first counts its
// ids, the second hashes them.
func (r *digester) longDocument() error {
	start := r.offset
	tokens := 0
	if err := r.pieces(func(int) { tokens += len(r.ids) }); err != nil {
		return err
	}
	if _, err := r.in.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("line at byte %d is longer than %s, which needs a file that can be read twice: %w", start,
			formatSize(digestWindow), err)
	}
	r.window, r.offset = r.window[:0], start
	r.count(tokens)
	return r.pieces(func(n int) {
		r.sum.Bytes += int64(n)
		r.hashIDs()
	})
}

// pieces encodes the line at the start of the window in pieces, cut where the ids of both sides are
// independent, and moves the window past it. It calls each with the number of bytes of every piece,
// whose ids are in r.ids.
func (r *digester) pieces(each func(n int)) error {
	for first := true; ; first = false {
		err := r.fill()
		if err != nil && err != io.EOF {
			return err
		}
		end := bytes.IndexByte(r.window, '\n')
		last := end >= 0 || err == io.EOF
		cut := end
		if end < 0 && last {
			cut = len(r.window)
		} else if end < 0 {
			if cut = r.t.SafeCut(r.window); cut == 0 {
				if cap(r.window) >= maxTextBytes {
					return errLongText
				}
				r.window = append(make([]byte, 0, 2*cap(r.window)), r.window...)
				continue
			}
		}
		r.ids = r.enc.AppendPiece(r.ids[:0], r.window[:cut], tokenize.Piece{First: first, Last: last})
		each(cut)
		if last {
			r.drop(min(cut+1, len(r.window)))
			return nil
		}
		r.drop(cut)
	}
}

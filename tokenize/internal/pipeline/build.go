package pipeline

import (
	"fmt"

	"github.com/dsload/dsload/tokenize/internal/added"
	"github.com/dsload/dsload/tokenize/internal/charclass"
	"github.com/dsload/dsload/tokenize/internal/engine/bytebpe"
	"github.com/dsload/dsload/tokenize/internal/engine/plain"
	"github.com/dsload/dsload/tokenize/internal/engine/wordpiece"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/normalize"
	"github.com/dsload/dsload/tokenize/internal/pretokenize"
	"github.com/dsload/dsload/tokenize/internal/spec"
	"github.com/dsload/dsload/tokenize/internal/vocab"
)

// Options configures New.
type Options struct {
	// Plain uses the plain models even if an engine fits. It does not change ids.
	Plain bool
	// Meter counts the memory of the tables; nil counts nothing.
	Meter *spec.Meter
}

// plainKind is the Kind of a pipeline with a plain model.
const plainKind = "general"

// New returns the pipeline of a tokenizer, with the engine that computes its components if there is
// one. Errors wrap those of package spec.
func New(s *spec.Spec, o Options) (*Pipeline, error) {
	nodes := added.Nodes(s.Raw) + added.Nodes(s.Normalized)
	if err := o.Meter.Take(spec.AddedNodeBytes*int64(nodes), "the added tokens"); err != nil {
		return nil, err
	}
	if err := o.Meter.Take(spec.EngineBytes(s.Model), "the tables of the model"); err != nil {
		return nil, err
	}
	var c Config
	var err error
	if c.Added, err = added.New(s.Raw); err != nil {
		return nil, err
	}
	if c.AddedNormalized, err = added.New(s.Normalized); err != nil {
		return nil, err
	}
	c.CutAtSpaces = s.CutsAtSpaces()
	if o.Plain || !c.chooseEngine(s) {
		c.Kind = plainKind
		if err := c.choosePlain(s); err != nil {
			return nil, err
		}
	}
	c.SearchBytes = c.searchBytes(s)
	return &Pipeline{c}, nil
}

// searchBytes returns the most memory that a search for one of the tokenizer's patterns takes,
// unless an engine does it. Searches for the published patterns take hardly any.
func (c *Config) searchBytes(s *spec.Spec) (most int64) {
	search := func(p normalize.Pattern) {
		if p.Expression != nil && !known.CutsAtSpaces(p.Text) {
			most = max(most, p.Expression.SearchBytes())
		}
	}
	if len(c.Normalizer) > 0 {
		for _, component := range s.Normalizer {
			if r, ok := component.(normalize.Replace); ok {
				search(r.Pattern)
			}
		}
	}
	if len(c.PreTokenizer) > 0 {
		for _, component := range s.PreTokenizer {
			if split, ok := component.(pretokenize.Split); ok {
				search(split.Pattern)
			}
		}
	}
	return most
}

// chooseEngine installs the engine that computes the model with the components before it. It
// reports whether there is one; if not, c is unchanged.
func (c *Config) chooseEngine(s *spec.Spec) bool {
	with := *c
	ok := false
	switch m := s.Model.(type) {
	case *spec.Ranks:
		ok = with.ranks(m, s)
	case *spec.BPE:
		if pattern, prefixSpace, byteLevel := s.ByteLevelSplit(); byteLevel {
			ok = with.byteLevel(m, s, pattern, prefixSpace)
		} else {
			ok = with.spacedBPE(m, s)
		}
	case *spec.Unigram:
		ok = with.unigram(m, s)
	case *spec.WordPiece:
		ok = with.wordPiece(m, s)
	case *spec.SentencePiece:
		ok = with.sentencePiece(m, s)
	}
	if ok {
		*c = with
	}
	return ok
}

// choosePlain installs a plain model and a step for every component.
func (c *Config) choosePlain(s *spec.Spec) (err error) {
	c.Normalizer, c.PreTokenizer = normalize.Unroll(s.Normalizer), pretokenize.Unroll(s.PreTokenizer)
	switch m := s.Model.(type) {
	case *spec.BPE:
		c.Model = plain.NewBPE(m)
	case *spec.WordPiece:
		c.Model = plain.NewWordPiece(m)
	case *spec.WordLevel:
		c.Model = plain.NewWordLevel(m)
	case *spec.Unigram:
		c.Model, err = plain.NewUnigram(m)
	case *spec.SentencePiece:
		err = c.plainSentencePiece(m, s)
	case *spec.Ranks:
		err = spec.Unsupportedf("ranks have no plain model")
	default:
		err = fmt.Errorf("%w: model %T", spec.ErrUnsupported, m)
	}
	return err
}

// splits maps the patterns that the byte-level engine has scanners for.
var splits = map[string]bytebpe.Split{
	"": bytebpe.None, known.GPT2: bytebpe.GPT2, known.Llama3: bytebpe.CL100K, known.Qwen2: bytebpe.Qwen2,
	known.O200K: bytebpe.O200K,
}

// ranks lets the engine split text if it knows the pattern, else a pre-tokenizer before it.
func (c *Config) ranks(m *spec.Ranks, s *spec.Spec) bool {
	split, ok := s.PreTokenizer[0].(pretokenize.Split)
	if !ok {
		return false
	}
	engine, fast := splits[known.Canonical(split.Pattern.Text)]
	if !fast {
		engine = bytebpe.None
		if split.Pattern.Expression == nil {
			var err error
			if split.Pattern, err = spec.Compile(split.Pattern.Text); err != nil {
				return false
			}
		}
		c.PreTokenizer = pretokenize.Sequence{split}
	}
	model, err := bytebpe.New(bytebpe.Config{Vocab: m.Vocab, Ranked: true, Pairs: m.Pairs, Split: engine})
	if err != nil {
		return false
	}
	c.Segments, c.Kind, c.RawBytes = segments(model), "byte-level BPE, split "+s.Names.PreTokenizer, true
	if len(c.PreTokenizer) == 0 && holdsBytes(m.Vocab) {
		c.Bytes = m.Vocab
	}
	return true
}

func (c *Config) byteLevel(m *spec.BPE, s *spec.Spec, pattern string, prefixSpace bool) bool {
	split, ok := splits[known.Canonical(pattern)]
	if !ok || m.Prefix != "" || m.Suffix != "" || m.ByteFallback || m.Vocab.Len() > bytebpe.MaxID {
		return false
	}
	for b := range 256 {
		if _, ok := m.Vocab.ID([]byte(charclass.ByteChar(byte(b)))); !ok {
			return false // a byte may be unknown
		}
	}
	raw := byteTokens(m.Vocab, m.IgnoreMerges)
	model, err := bytebpe.New(bytebpe.Config{Vocab: raw, Merges: m.Merges, Split: split, IgnoreMerges: m.IgnoreMerges})
	if err != nil {
		return false
	}
	c.Bytes = raw
	c.Segments, c.Kind = segments(model), "byte-level BPE, split "+split.String()
	c.Normalizer, c.PrefixSpace, c.RawBytes = normalize.Unroll(s.Normalizer), prefixSpace, len(s.Normalizer) == 0
	return true
}

// holdsBytes reports whether every byte is a token, so that no text is without tokens.
func holdsBytes(v *vocab.Table) bool {
	for b := range 256 {
		if _, ok := v.ID([]byte{byte(b)}); !ok {
			return false
		}
	}
	return true
}

// byteTokens maps tokens from the byte-level alphabet back to bytes. Tokens with other characters
// match no text and have none. indexed prepares looking tokens up by their bytes.
func byteTokens(v *vocab.Table, indexed bool) *vocab.Table {
	raw := make([][]byte, v.Len())
	var blob []byte
	for id := range raw {
		t, _ := v.Token(uint32(id))
		if len(t) > cap(blob)-len(blob) {
			blob = make([]byte, 0, max(64<<10, len(t)))
		}
		from := len(blob)
		var ok bool
		if blob, ok = charclass.AppendBytes(blob, t); ok && len(t) > 0 {
			raw[id] = blob[from:len(blob):len(blob)]
		}
	}
	if indexed {
		return vocab.New(raw)
	}
	return vocab.NewList(raw)
}

// wordPiece replaces BertNormalizer and BertPreTokenizer too.
func (c *Config) wordPiece(m *spec.WordPiece, s *spec.Spec) bool {
	if len(s.Normalizer) != 1 || len(s.PreTokenizer) != 1 || c.AddedNormalized != nil || m.MaxChars > 1<<20 ||
		m.Unk < 0 || m.Unk >= int64(m.Vocab.Len()) {
		return false
	}
	n, ok := s.Normalizer[0].(normalize.Bert)
	if _, bert := s.PreTokenizer[0].(pretokenize.Bert); !ok || !bert {
		return false
	}
	model, err := wordpiece.New(wordpiece.Config{
		Pieces: m.Vocab.Tokens(), UnkID: uint32(m.Unk), Prefix: []byte(m.Prefix),
		MaxInputCharsPerWord: int(m.MaxChars), Normalizer: wordpiece.Normalizer(n),
	})
	if err != nil {
		return false
	}
	c.Segments, c.Kind = segments(model), "WordPiece"
	return true
}

// engineModel is the method set of the engines' models; E is their encoder.
type engineModel[E SegmentEncoder] interface {
	NewEncoder(cacheBytes int) E
	SafeCut(text []byte) int
	ResidentBytes() int64
	EncoderBytes(cacheBytes int) int64
}

// plugged adapts an engine's model to Segments.
type plugged[E SegmentEncoder] struct{ engineModel[E] }

// NewEncoder implements Segments.
func (p plugged[E]) NewEncoder(cacheBytes int) SegmentEncoder {
	return p.engineModel.NewEncoder(cacheBytes)
}

func segments[E SegmentEncoder](m engineModel[E]) Segments { return plugged[E]{m} }

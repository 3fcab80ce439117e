package builtin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/internal/engine/bytebpe"
	"github.com/dsload/dsload/tokenize/internal/known"
	"github.com/dsload/dsload/tokenize/internal/vocab"
	"github.com/klauspost/compress/zstd"
	"github.com/pkoukk/tiktoken-go-loader/assets"
)

var update = flag.Bool("update", false, "write the prepared vocabularies anew")

// published reads a .tiktoken file as OpenAI published it.
func published(t *testing.T, name string) (tokens [][]byte) {
	t.Helper()
	file, err := assets.Assets.ReadFile(name + ".tiktoken")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(file) {
		word, rank, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		token, err := base64.StdEncoding.AppendDecode(nil, word)
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.Atoi(string(rank))
		if err != nil {
			t.Fatal(err)
		}
		for id > len(tokens) {
			tokens = append(tokens, nil) // p50k_base has the id of a special token among its ranks
		}
		tokens = append(tokens, token)
	}
	return tokens
}

// encodePrepared returns a prepared vocabulary: the merges as the engine finds them in the ranks.
func encodePrepared(t *testing.T, tokens [][]byte, fingerprint string) []byte {
	t.Helper()
	m, err := bytebpe.New(bytebpe.Config{Vocab: vocab.New(tokens), Ranked: true})
	if err != nil {
		t.Fatal(err)
	}
	pairs := m.Pairs()
	h := header{Tokens: uint32(len(tokens)), Multiplier: pairs.Mul, SlotBits: 32 - uint32(pairs.SlotShift),
		Displacements: uint32(len(pairs.Disp))}
	if _, err := hex.Decode(h.Fingerprint[:], []byte(fingerprint)); err != nil {
		t.Fatal(err)
	}
	for id, token := range tokens {
		h.TextBytes += uint32(len(token))
		if id < len(h.Bytes) {
			h.Bytes[id] = token[0]
		}
	}
	merges := len(tokens) - len(h.Bytes)
	planes, high := make([]byte, 4*merges), make([]byte, merges)
	for _, slot := range pairs.Slots {
		l, r, id := uint32(slot>>44), uint32(slot>>24)&(1<<20-1), int(slot&(1<<24-1))
		if i := id - len(h.Bytes); i >= 0 && i < merges {
			if int(l) >= id || int(r) >= id {
				t.Fatalf("rank %d is a merge of %d and %d, want lower ones", id, l, r)
			}
			planes[i], planes[merges+i], planes[2*merges+i], planes[3*merges+i] = byte(l), byte(l>>8),
				byte(r), byte(r>>8)
			high[i] = byte(l>>16 | r>>16<<4)
		}
	}
	if len(tokens) <= 1<<16 {
		high = nil
	}
	disp := make([]byte, 2*len(pairs.Disp))
	for i, d := range pairs.Disp {
		disp[i], disp[len(pairs.Disp)+i] = byte(d), byte(d>>8)
	}
	var out []byte
	for _, part := range []any{&h, planes, high, disp} {
		if out, err = binary.Append(out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func pack(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// TestPrepared makes the prepared vocabularies from the published ones.
func TestPrepared(t *testing.T) {
	for name, v := range vocabularies {
		k := known.ByName(v.known)
		file := v.known
		if name == "gpt2" {
			file = "r50k_base"
		}
		tokens := published(t, file)
		reference, err := tokenize.FromRanks(tokenize.Ranks{Name: name, Pattern: k.Pattern, Tokens: tokens,
			Special: k.Special(len(tokens))})
		if err != nil {
			t.Fatal(err)
		}
		if v.prepared != nil {
			want := encodePrepared(t, tokens, reference.Fingerprint())
			if *update {
				if err := os.WriteFile(name+".ranks", pack(t, want), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got, err := expand(v.prepared); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s.ranks is not what the published ranks give; write it anew with -update", name)
			}
		}
		if *update {
			continue // the program has the files of before
		}
		got, err := Ranks(name)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got.Tokens, tokens, bytes.Equal) {
			t.Errorf("the tokens of %s are not the published ones", name)
		}
		tok, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if tok.Fingerprint() != reference.Fingerprint() {
			t.Errorf("%s has fingerprint %s, want %s", name, tok.Fingerprint(), reference.Fingerprint())
		}
	}
}

// Command passes is dsload's part of make bench. It encodes the documents of a file several times
// on one goroutine, keeps every id of a pass, and prints what each pass took. The first pass uses a
// fresh encoder; the others reuse it.
//
//	passes TOKENIZER CORPUS PASSES
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/tokenize"
)

// leastBytes is the minimum size of a document, a run of whole lines.
const leastBytes = 2048

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "passes:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: passes TOKENIZER CORPUS PASSES")
	}
	passes, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	t, err := tokenize.Load(args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	docs := documents(text)
	encoder := t.NewEncoder(tokenize.EncoderOptions{})
	encoder.Warm()                                   // part of loading, which is not counted
	encoder.AppendTokens(nil, []byte("hello world")) // the first call is not counted, as for the other tools
	var seconds []float64
	var ids []uint32
	for range passes {
		ids = nil
		runtime.GC() // the previous pass's ids are not a cost of this one
		ids = make([]uint32, 0, len(text)/2)
		before := cputime.Process()
		for _, d := range docs {
			ids = encoder.AppendTokens(ids, d)
		}
		seconds = append(seconds, (cputime.Process() - before).Seconds())
	}
	digest := sha256.New()
	if err := binary.Write(digest, binary.LittleEndian, ids); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"seconds": seconds, "tokens": len(ids), "documents": len(docs), "sha256": hex.EncodeToString(digest.Sum(nil)),
	})
}

// documents cuts text into runs of whole lines, each of at least leastBytes.
func documents(text []byte) [][]byte {
	var docs [][]byte
	start := 0
	for i, c := range text {
		if c == '\n' && i+1-start >= leastBytes {
			docs = append(docs, text[start:i+1])
			start = i + 1
		}
	}
	if start < len(text) {
		docs = append(docs, text[start:])
	}
	return docs
}

package export_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// An export has a line for each document: its rows are joined.
func ExampleRun() {
	d, err := shard.Open("../testdata/datasets/words")
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	tok, err := tokenize.Load(d.Dir())
	if err != nil {
		log.Fatal(err)
	}
	out, err := os.MkdirTemp("", "export")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(out)
	s, err := export.Run(context.Background(), d, export.Options{
		Formats: []string{export.JSONL, export.NanoGPT}, Out: out, Decode: tok.Decode})
	if err != nil {
		log.Fatal(err)
	}
	for _, split := range s.Splits {
		fmt.Printf("%s: %d documents, %d tokens\n", split.Name, split.Documents, split.Tokens)
	}
	lines, err := os.ReadFile(filepath.Join(out, "train.jsonl"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", lines)
	// Output:
	// train: 3 documents, 21 tokens
	// val: 1 documents, 3 tokens
	// {"text": "the cat sat on the mat", "input_ids": [10, 3, 8, 6, 10, 5]}
	// {"text": "the dog saw the cat, and the cat saw the dog", "input_ids": [10, 4, 9, 10, 3, 1, 2, 10, 3, 9, 10, 4]}
	// {"text": "the cat ran", "input_ids": [10, 3, 7]}
}

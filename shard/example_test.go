package shard_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/tokenize"
)

// folder is one that dsload build wrote.
const folder = "../testdata/datasets/words"

func Example() {
	d, err := shard.Open(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	train, err := d.Split("train")
	if err != nil {
		log.Fatal(err)
	}
	for row, err := range train.Rows(0, train.NumRows()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(row.Document, row.Part, row.AppendInputIDs(nil))
	}
	// Output:
	// 0 0 [10 3 8 6 10 5]
	// 1 0 [10 4 9 10 3 1 2 10]
	// 1 1 [3 9 10 4]
	// 2 0 [10 3 7]
}

// A dataset brings its tokenizer, so its rows can be decoded.
func Example_decode() {
	d, err := shard.Open(folder)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	tok, err := tokenize.Load(d.Dir())
	if err != nil {
		log.Fatal(err)
	}
	val, err := d.Split("val")
	if err != nil {
		log.Fatal(err)
	}
	var row shard.Row
	if err := val.ReadRow(0, &row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tok.Decode(row.AppendInputIDs(nil)))
	// Output: the dog sat
}

func ExampleVerify() {
	damage, err := shard.Verify(context.Background(), os.DirFS("../testdata"), "datasets/words", nil)
	if err != nil {
		log.Fatal(err) // there is no dataset
	}
	for _, d := range damage {
		fmt.Println(d.File, d.Err)
	}
	fmt.Println(len(damage), "damaged files")
	// Output: 0 damaged files
}

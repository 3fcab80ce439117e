package stats_test

import (
	"context"
	"fmt"
	"log"

	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/stats"
	"github.com/dsload/dsload/tokenize"
)

func ExampleRun() {
	d, err := shard.Open("../testdata/datasets/words")
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	r, err := stats.Run(context.Background(), d, stats.Options{
		OpenTokenizer: func() (*tokenize.Tokenizer, error) { return tokenize.Load(d.Dir()) }})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range r.Splits {
		fmt.Printf("%s: %d rows, %d documents, %.2f tokens a row\n", s.Name, s.Examples, s.Documents, s.Length.Mean)
	}
	// Output:
	// train: 4 rows, 3 documents, 5.25 tokens a row
	// val: 1 rows, 1 documents, 3.00 tokens a row
}

// Command read is dsload's part of bench/sources/compare.py: it reads the records of files, each alone
// and from its beginning to its end, and prints what that took.
//
//	read [-apart] FILE
//
// -apart leaves the decompression of large files on a goroutine of its own, as a build does; without it
// the processor is kept to one.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/ingest/source"
)

func main() {
	apart := flag.Bool("apart", false, "as many processors as there are")
	flag.Parse()
	if !*apart {
		runtime.GOMAXPROCS(1)
	}
	if err := read(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		os.Exit(1)
	}
}

func read(path string) error {
	o := source.Options{Args: []string{path},
		Framing: source.Framing{TextField: "text", PieceBytes: 64 << 10, MaxPieceBytes: 128 << 10}}
	set, err := source.Open(context.Background(), o)
	if err != nil {
		return err
	}
	defer set.Close()
	start, before := time.Now(), cputime.Process()
	r, err := set.Reader(source.Position{})
	if err != nil {
		return err
	}
	defer r.Close()
	var bytes, documents int64
	var rec source.Record
	buf := make([]byte, 0, 1<<20)
	for {
		data, err := r.Next(buf[:0], &rec)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = rec.Err
		}
		if err != nil {
			return err
		}
		if bytes += int64(len(data)); rec.Last {
			documents++
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"bytes": bytes, "documents": documents,
		"seconds": time.Since(start).Seconds(), "cpu_seconds": (cputime.Process() - before).Seconds(),
		"memory_bytes": set.MemoryBytes()})
}

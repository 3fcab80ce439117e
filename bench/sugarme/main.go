// Command sugarme is the part of make bench that measures github.com/sugarme/tokenizer, in a module
// of its own. It does what bench/tokenize/passes does, and prints the same.
//
//	sugarme TOKENIZER CORPUS PASSES
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sugarme/tokenizer/pretrained"
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() (err error) {
	defer func() { // it panics on what it does not know
		if r := recover(); r != nil {
			err = fmt.Errorf("panics: %v", r)
		}
	}()
	passes, err := strconv.Atoi(os.Args[3])
	if err != nil {
		return err
	}
	t, err := pretrained.FromFile(os.Args[1])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		return err
	}
	var docs []string
	var doc strings.Builder
	for line := range strings.Lines(string(text)) {
		if doc.WriteString(line); doc.Len() >= 2048 {
			docs = append(docs, doc.String())
			doc.Reset()
		}
	}
	if doc.Len() > 0 {
		docs = append(docs, doc.String())
	}
	if _, err := t.EncodeSingle("hello world"); err != nil {
		return err
	}
	seconds := []float64{}
	var ids []byte
	tokens := 0
	for range passes {
		runtime.GC()
		ids, tokens = nil, 0
		before := cpu()
		for _, d := range docs {
			encoding, err := t.EncodeSingle(d, false)
			if err != nil {
				return err
			}
			for _, id := range encoding.Ids {
				ids = binary.LittleEndian.AppendUint32(ids, uint32(id))
			}
			tokens += len(encoding.Ids)
		}
		seconds = append(seconds, (cpu() - before).Seconds())
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"seconds": seconds, "tokens": tokens,
		"documents": len(docs),
		"sha256":    fmt.Sprintf("%x", sha256.Sum256(ids)), "version": "0.3.0"})
}

// cpu returns the CPU time of the process so far.
func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

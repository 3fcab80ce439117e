package main

import (
	"io"
	"os"
	"strings"
)

// heavy is dsload with a standard input that takes 160 MiB of memory while it is read, which a
// build cannot account for.
func heavy() {
	os.Exit(run(os.Args[1:], &ballast{Reader: strings.NewReader("one\ntwo\n")}, os.Stdout, os.Stderr))
}

type ballast struct {
	io.Reader
	held []byte
}

func (b *ballast) Read(p []byte) (int, error) {
	if b.held == nil {
		b.held = make([]byte, 160<<20)
		for i := 0; i < len(b.held); i += 4096 {
			b.held[i] = 1 // an unwritten page takes no memory
		}
	}
	return b.Reader.Read(p)
}

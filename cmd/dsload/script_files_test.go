package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// packFiles writes a file that holds others, by its extension: pack out.tar|out.zip file..., or
// compresses one: pack out.gz file.
func packFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: pack out.tar|out.zip|out.gz file...")
	}
	var out bytes.Buffer
	add, finish := packer(ts, args[0], &out)
	for _, name := range args[1:] {
		add(name, []byte(ts.ReadFile(name)))
	}
	ts.Check(finish())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), out.Bytes(), 0o600))
}

func packer(ts *testscript.TestScript, name string, out *bytes.Buffer) (add func(string, []byte), finish func() error) {
	switch {
	case strings.HasSuffix(name, ".tar"):
		w := tar.NewWriter(out)
		return func(name string, data []byte) {
			ts.Check(w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644}))
			_, err := w.Write(data)
			ts.Check(err)
		}, w.Close
	case strings.HasSuffix(name, ".zip"):
		w := zip.NewWriter(out)
		return func(name string, data []byte) {
			m, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
			ts.Check(err)
			_, err = m.Write(data)
			ts.Check(err)
		}, w.Close
	case strings.HasSuffix(name, ".gz"):
		w := gzip.NewWriter(out)
		return func(_ string, data []byte) {
			_, err := w.Write(data)
			ts.Check(err)
		}, w.Close
	}
	ts.Fatalf("pack %s: want .tar, .zip or .gz", name)
	return nil, nil
}

// harmFile damages a file in place: harm file cut N keeps its first N bytes (-N: drops its last N),
// harm file OLD NEW replaces a text with another of the same length.
func harmFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: harm file cut n | harm file old new")
	}
	data := []byte(ts.ReadFile(args[0]))
	if args[1] == "cut" {
		n, err := strconv.Atoi(args[2])
		ts.Check(err)
		if n < 0 {
			n += len(data)
		}
		data = data[:n]
	} else {
		old, now := []byte(args[1]), []byte(args[2])
		if len(old) != len(now) || !bytes.Contains(data, old) {
			ts.Fatalf("%s does not hold %q, or %q is of another length", args[0], old, now)
		}
		data = bytes.Replace(data, old, now, 1)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

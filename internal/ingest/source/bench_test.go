package source

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsload/dsload/internal/cputime"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/klauspost/compress/zstd"
)

// synthFile writes generated documents of at least size bytes to a file, framed for a format, through a compressor.
func synthFile(t testing.TB, format Format, c decompress.Compression, size int64) string {
	t.Helper()
	address := map[Format]string{WikiText: "wikitext", Text: "wikitext", JSONL: "wikitext", Recipes: "recipes"}[format]
	var out bytes.Buffer
	var w io.WriteCloser
	switch c {
	case decompress.Gzip:
		w = gzip.NewWriter(&out)
	case decompress.Zstd:
		z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		w = nopCloser{&out}
	}
	set := openSet(t, Options{Args: []string{fmt.Sprintf("synth://%s?bytes=%d", address, size)}})
	r, err := set.Reader(Position{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if format == Recipes {
		fmt.Fprintln(w, ",title,ingredients,directions,link,source,NER")
	}
	for {
		var rec Record
		data, err := r.Next(nil, &rec)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch format {
		case WikiText:
			if rec.Ordinal == 0 {
				fmt.Fprint(w, " \n")
			}
			w.Write(data)
		case Recipes:
			fmt.Fprintf(w, "%s\n", data)
		case JSONL:
			for line := range bytes.Lines(data) {
				fmt.Fprintf(w, "{\"id\":%d,\"text\":%q}\n", rec.Ordinal, bytes.TrimSpace(line))
			}
		default:
			w.Write(data)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func BenchmarkRead(b *testing.B) {
	for _, c := range []struct {
		name string
		o    func(b *testing.B) Options
	}{
		{"synth-wikitext", func(*testing.B) Options { return Options{Args: []string{"synth://wikitext?bytes=20MB"}} }},
		{"synth-recipes", func(*testing.B) Options { return Options{Args: []string{"synth://recipes?bytes=20MB"}} }},
		{"text", func(b *testing.B) Options {
			return Options{Args: []string{synthFile(b, WikiText, decompress.Plain, 20e6)}, Format: Text}
		}},
		{"wikitext", func(b *testing.B) Options {
			return Options{Args: []string{synthFile(b, WikiText,
				decompress.Plain, 20e6)}}
		}},
		{"wikitext-gzip", func(b *testing.B) Options {
			return Options{Args: []string{synthFile(b, WikiText,
				decompress.Gzip, 20e6)}}
		}},
		{"wikitext-zstd", func(b *testing.B) Options {
			return Options{Args: []string{synthFile(b, WikiText,
				decompress.Zstd, 20e6)}}
		}},
		{"jsonl", func(b *testing.B) Options {
			return Options{Args: []string{synthFile(b, JSONL, decompress.Plain, 20e6)}}
		}},
		{"recipes", func(b *testing.B) Options {
			return Options{Args: []string{synthFile(b, Recipes, decompress.Plain, 20e6)}}
		}},
		{"real-text", func(b *testing.B) Options {
			return Options{Args: []string{shared(b, "prose/peps.txt"), shared(b, "multilingual/tldr.txt")}}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			set := openSet(b, c.o(b))
			var bytes, documents int64
			buf := make([]byte, 0, 512<<10)
			var rec Record
			before := cputime.Process()
			for b.Loop() {
				r, err := set.Reader(Position{})
				if err != nil {
					b.Fatal(err)
				}
				for {
					data, err := r.Next(buf[:0], &rec)
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					bytes += int64(len(data))
					documents++
				}
				r.Close()
			}
			cpu := (cputime.Process() - before).Seconds()
			b.ReportMetric(float64(bytes)/1e6/cpu, "MB/cpu-s")
			b.ReportMetric(float64(bytes)/float64(documents), "B/doc")
		})
	}
}

package read

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/frame"
)

// TestMapStalls is about a command that gives no answer for a time.
func TestMapStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 7*time.Minute)
		defer cancel()
		var said []string
		m := &Mapping{MapConfig: MapConfig{Notice: func(format string, args ...any) {
			said = append(said, fault.Textf(format, args...).String())
		}}}
		m.asked.Store(2048)
		m.got.Store(7)
		m.waiting.Store(true)
		go func() {
			time.Sleep(5 * time.Minute)
			m.waiting.Store(false)
		}()
		m.watch(ctx, mapStall)
		if len(said) != 3 || !strings.Contains(said[0], "answered 7 of the 2,048 records") {
			t.Errorf("%q", said)
		}
		for _, writing := range []bool{false, true} { // all is answered: the sources may take their time, the command not
			said = nil
			m.got.Store(2048)
			m.waiting.Store(true)
			m.writing.Store(writing)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute+time.Second)
			m.watch(ctx, mapStall)
			cancel()
			if writing != (len(said) == 1) {
				t.Errorf("writing %v: %q", writing, said)
			}
		}
	})
}

// TestWriteTextIsJSON: what is written decodes to the text.
func TestWriteTextIsJSON(t *testing.T) {
	f, err := example.NewFormatter(example.FormatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "plain",
		"\"\\/\b\f\n\r\t\x00\x1f\x7f\u2028 é漢😀", strings.Repeat("x\n", 40000)} {
		var b bytes.Buffer
		l := &mapLine{w: bufio.NewWriter(&b), rows: f.NewWorker()}
		if _, err := l.set(&source.Record{Record: frame.Record{Decoded: true}}, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := l.write(); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["text"] != text ||
			bytes.Count(b.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%.40q became %.40q: %v", text, got, err)
		}
	}
	l := &mapLine{w: bufio.NewWriter(nil)}
	if _, err := l.set(&source.Record{}, []byte(`{"a": 1} 2`)); !errors.Is(err, example.ErrMalformed) {
		t.Errorf("a malformed record: %v", err)
	}
}

package command

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	tailBytes = 4 << 10 // what is kept of stderr
	// saidLines is how many lines of stderr are passed on: a command that logs each record must not bury all else.
	saidLines = 100
)

// tail keeps the end of what is written to it, and passes on the first lines.
type tail struct {
	say func(line string)

	mu   sync.Mutex
	end  []byte
	line []byte // the unfinished line
	said int
}

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	t.end = append(t.end, data[max(0, len(data)-tailBytes):]...)
	if over := len(t.end) - tailBytes; over > 0 {
		t.end = t.end[:copy(t.end, t.end[over:])]
	}
	t.mu.Unlock()
	if t.say != nil {
		t.pass(data)
	}
	return len(data), nil
}

// pass calls say for each line.
func (t *tail) pass(data []byte) {
	for t.said < saidLines && len(data) > 0 {
		part, rest, ended := bytes.Cut(data, []byte("\n"))
		if t.line = append(t.line, part[:min(len(part), tailBytes-min(len(t.line), tailBytes))]...); !ended {
			return
		}
		if text := strings.TrimSpace(string(t.line)); text != "" {
			if t.said++; t.said == saidLines {
				text += " (further lines are not shown)"
			}
			t.say(text)
		}
		data, t.line = rest, t.line[:0]
	}
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.end
	if len(text) == tailBytes { // the first line lacks its beginning
		if at := bytes.IndexByte(text, '\n'); at >= 0 {
			text = text[at+1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), string(utf8.RuneError)))
}

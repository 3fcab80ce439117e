package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/visible"
	"golang.org/x/term"
)

// Names of files, fields and tokens, and the text of a corpus, are not trusted. Everything a
// terminal shows of them passes through this file, so that it can neither move the cursor, nor set
// the title, nor reverse the line. JSON output escapes them by itself.

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printable escapes everything in text that a terminal would act on, except newlines and tabs:
// characters as in visible.Acts, and bytes that are not UTF-8, which some terminals take for control
// characters.
func printable(text string) string {
	start := strings.IndexFunc(text, acts)
	if start < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\r':
			b.WriteString(`\r`)
		case acts(r) && r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case acts(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:n])
		}
		text = text[n:]
	}
	return b.String()
}

// acts reports whether a terminal does anything with r besides showing it.
func acts(r rune) bool { return r != '\n' && r != '\t' && visible.Acts(r) }

// oneLine returns printable text on one line: each run of white space becomes a space.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// warn writes a warning of one line.
func warn(stderr io.Writer, text string) { fmt.Fprintln(stderr, "warning: "+oneLine(text)) }

func writeText(w io.Writer, text string) error {
	_, err := io.WriteString(w, printable(text))
	return err
}

// printResult prints the result of a command: as one JSON object, or as text.
func printResult(w io.Writer, asJSON bool, result any, text string) error {
	if asJSON {
		return json.NewEncoder(w).Encode(result)
	}
	return writeText(w, text)
}

// A terminalWriter makes everything that it writes to a terminal printable, including what is data
// elsewhere: decoded text, JSON strings.
type terminalWriter struct {
	w    io.Writer
	held []byte // the beginning of a character whose rest is still to come
}

func (t *terminalWriter) Write(p []byte) (int, error) {
	text := append(t.held, p...)
	whole := len(text)
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text); i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
			break
		}
	}
	_, err := io.WriteString(t.w, printable(string(text[:whole])))
	t.held = append(t.held[:0], text[whole:]...)
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// unguarded returns what w writes to, if it is a terminalWriter.
func unguarded(w io.Writer) io.Writer {
	if guard, ok := w.(*terminalWriter); ok {
		return guard.w
	}
	return w
}

// flush writes a character that was never finished.
func (t *terminalWriter) flush() {
	_, _ = io.WriteString(t.w, printable(string(t.held))) // nobody is left to report to
}

package source

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/columnar"
)

// Conversations are records of JSON, however they are written.
func TestChatFormats(t *testing.T) {
	const record = `{"messages": [{"role": "user", "content": "q"}]}`
	array := "[" + record + ",\n" + record + "]"
	pretty := "[\n  {\n    \"messages\": [\n    ]\n  },\n  " + record + "\n]\n"
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data   string
		format Format
	}{
		"a.jsonl": {record + "\n" + record + "\n", Chat}, "lines.json": {record + "\n" + record + "\n", Chat},
		"array.json": {array, JSON}, "pretty.json": {pretty, JSON}, "array": {array, JSON},
		"pretty.json.gz": {gzipped(pretty), JSON},
		"objects.txt":    {"{\n\"messages\": []\n}\n{\n\"messages\": []}", JSON},
		"broken.jsonl":   {"{\"messages\": [\n" + record + "\n", Chat},
		"a.tar": {tarred(t, file{"a.json", "[" + record + "]"},
			file{"b.jsonl", record + "\n"}), Chat},
	} {
		set := openSet(t, Options{Args: []string{write(t, dir, name, c.data)}, Format: Chat})
		in, err := set.Input(0)
		if err != nil || in.Format != c.format {
			t.Errorf("%s: %s, %v", name, in.Format, err)
		}
		records, err := readFrom(t, set, Position{})
		if err != nil || len(records) != 2 {
			t.Errorf("%s: %+v, %v", name, records, err)
		}
		for i, r := range records {
			if !strings.HasPrefix(r.data, "{") || r.Err != nil {
				t.Errorf("%s: record %d is %q, %v", name, i, r.data, r.Err)
			}
			rest, err := readFrom(t, set, reread(t, r.next))
			if err != nil || len(rest) != len(records)-i-1 {
				t.Errorf("%s: %d records after record %d, %v", name, len(rest), i, err)
			}
		}
		set.Close()
	}
}

// Conversations are found, unless their records have a text.
func TestFindChat(t *testing.T) {
	const chat, text = `{"id": 1, "messages": [{"role": "user", "content": "q"}]}`, `{"text": "t", "n": 1}`
	const both = `{"messages": [{"role": "user", "content": "q"}], "text": "t"}`
	pretty := strings.ReplaceAll(strings.ReplaceAll(chat, "[", "[\n  "), "{", "{\n  ")
	dir := t.TempDir()
	for name, c := range map[string]struct {
		data    string
		format  Format
		records int
	}{
		"a.jsonl": {chat + "\n" + chat, Chat, 2}, "text.jsonl": {text + "\n" + chat, JSONL, 2},
		"array.json": {"[" + chat + "," + chat + "]", JSONChat, 2}, "array.json.gz": {gzipped("[" + chat + "]"), JSONChat, 1},
		"array": {"[\n" + pretty + ",\n" + pretty + "\n]", JSONChat, 2}, "objects.json": {pretty + "\n" + pretty, JSONChat, 2},
		"below.json": {`{"version": 1, "data": [` + chat + "," + chat + "]}", JSONChat, 2},
		"long.json":  {"[" + strings.Replace(chat, "q", strings.Repeat("q", 2*sniffBytes), 1) + "]", JSONChat, 1},
		"text.json":  {"[" + text + "," + chat + "]", JSON, 2}, "both.json": {"[" + both + "]", JSON, 1},
		"textbelow.json": {`{"data": [` + both + "]}", JSON, 1}, "strings.json": {`["a", "b"]`, JSON, 2},
	} {
		o := Options{Args: []string{write(t, dir, name, c.data)}, FindChat: true, Framing: Framing{Fields: []string{"text"}}}
		set := openSet(t, o)
		in, err := set.Input(0)
		records, bad := readFrom(t, set, Position{})
		if err != nil || bad != nil || in.Format != c.format || len(records) != c.records {
			t.Errorf("%s: %d records as %s, %v, %v", name, len(records), in.Format, err, bad)
		}
		set.Close()
		if o.FindChat = false; c.format.HoldsChat() {
			set := openSet(t, o)
			if in, err := set.Input(0); err != nil || in.Format.HoldsChat() {
				t.Errorf("%s: %s where conversations are not looked for, %v", name, in.Format, err)
			}
			set.Close()
		}
	}
}

// Rows of CSV are conversations as well, alone and in archives.
func TestChatRows(t *testing.T) {
	const rows = "instruction,output\nq,\"a\nb\"\n\nr,c\n"
	dir := t.TempDir()
	for _, path := range []string{write(t, dir, "a.csv", rows), write(t, dir, "a.tsv.gz", gzipped(rows)),
		write(t, dir, "a.tar", tarred(t, file{"a.csv", rows}))} {
		records, err := readFrom(t, openSet(t, Options{Args: []string{path}, Format: Chat}), Position{})
		if err != nil || len(records) != 2 || records[0].data != "q,\"a\nb\"" || records[1].data != "r,c" {
			t.Errorf("%s: %+v, %v", path, records, err)
		}
		for _, r := range records {
			if want := []string{"instruction", "output"}; !slices.Equal(r.Columns, want) {
				t.Errorf("%s: columns %q", path, r.Columns)
			}
		}
	}
}

// Where a file of columns has no text and a list of messages, the error names it.
func TestChatColumn(t *testing.T) {
	err := tableError(&columnar.ColumnError{Column: "text", Has: []string{"prompt"},
		Lists: []string{"tags", "messages"}})
	if !errors.Is(err, cause.UnknownField) || !strings.Contains(err.Error(),
		"\"messages\" looks like the messages of a chat") {
		t.Error(err)
	}
}
